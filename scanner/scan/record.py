"""Records evaluated pages in the store: coverage, gaps and health of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, count, repeat
from typing import Final, TypeAlias, assert_never

from scanner.audit.population import list_controllers, pack, record_object
from scanner.audit.repeats import RepeatDetector
from scanner.errors import ListFailed
from scanner.health import ObservedCounts, find_observed_problems
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import PolicyKey, policy_label
from scanner.model.population import Controller, GroupKind
from scanner.model.resource import NAMESPACES, Kind, Page, resource_of
from scanner.model.scans.health import Health
from scanner.model.scans.scan import (
    Coverage,
    CoverageState,
    Emptiness,
    ObjectCount,
    PageResult,
    ScanEnd,
    ScanState,
    ServerCounts,
    find_emptiness,
)
from scanner.policies.plan import KindPlan
from scanner.scan.edges import ComparisonEngine, PageSink, Progress
from scanner.scan.intermediates import IntermediateNote, list_intermediate_pages
from scanner.scan.lists import ScanLists
from scanner.scan.options import Options
from scanner.scan.prepare import EvaluationPlan, PreparedScan
from scanner.scan.workers.pool import Job, JobResult, Workers

_INTERRUPTED = "interrupted before every kind was listed"
INTERRUPTION: Final = Gap(GapKind.LIST, "scan", f"{_INTERRUPTED}; scan again")
"""The gap of a scan that a signal has ended before its last list."""


_STORED_AS: Final = {"events.events.k8s.io": "events"}
"""Resources that the server stores, and counts, under another name (pkg/registry/events/rest)."""

_NOT_ONE_MOMENT = (
    "Objects of this kind may be missing, so none of its findings is resolved. Scan again, "
    "when the server is less busy or with another --chunk-size"
)


class ScanRecorder:
    """Writes a scan to the store: pages as they are evaluated; coverage, gaps and health at the end."""

    def __init__(
        self, store: PageSink, scan_id: str, progress: Progress, comparison: ComparisonEngine | None = None
    ) -> None:
        self._comparison = comparison
        self._store = store
        self._scan_id = scan_id
        self._progress = progress
        self.gaps: list[Gap] = []
        self._coverage: list[Coverage] = []
        self._counts = ObservedCounts()
        self._repeats = RepeatDetector()
        self._inconsistencies: list[str] = []
        self._failures: list[ListFailed] = []
        self._controllers: dict[GroupKind, Controller] = {}
        self._namespaced: dict[GroupKind, bool] = {}
        self._metadata_kinds: set[GroupKind] = set()
        self._interrupted = False
        self.notes: list[str] = []
        self._redacted: Counter[PolicyKey] = Counter()
        self._excluded: list[int] = []
        self._at_start, self._at_end = ServerCounts(), ServerCounts()

    def record(self, evaluation: EvaluationPlan, listing: ScanLists, workers: Workers) -> None:
        """List every kind, evaluate its pages and commit their results in order.

        An interrupt ends this early: the kinds that were not listed are recorded as such. Raises StoreError.
        """
        listing.expect(plan.kind for plan in evaluation.plans)
        try:
            steps: Iterator[JobResult | ListEvent] = workers.evaluate_in_order(_list_kinds(evaluation.plans, listing))
            for step in steps:
                self._handle(step, listing, workers)
                if self._comparison and isinstance(step, JobResult):
                    self._comparison.compare_page(step.job.page, step.job.plan, evaluation.page_evaluator)
        except KeyboardInterrupt:
            self._interrupted = True
            self.gaps.append(INTERRUPTION)
            self._coverage.extend(_begin_coverage(plan.kind) for plan in evaluation.plans[len(self._coverage) :])

    def record_namespaces(self, prepared: PreparedScan) -> None:
        """Record the labels of namespaces, unless the scan evaluates Namespaces: they may name the owners of objects.

        Raises StoreError.
        """
        if any(plan.kind == NAMESPACES for plan in prepared.plans):
            return
        context, listing = prepared.context, prepared.listing
        bodies = prepared.evaluation_context.namespaces.items()
        objects = [
            record_object(resource_of(NAMESPACES, body), context.kept_keys)
            for name, body in bodies
            if not listing.excludes(name)
        ]
        if objects:
            self._store.write_controllers(self._scan_id, NAMESPACES, pack(objects))

    def record_controllers(self, plans: Iterable[KindPlan], listing: ScanLists, served: Iterable[Kind]) -> None:
        """List the kinds of controllers that were not evaluated, so that workloads can be resolved. Raises StoreError.

        An interrupted scan lists none of them: the workloads above them are derived.
        """
        served = tuple(served)
        if self._interrupted:
            return
        # The labels of namespaces are recorded already.
        kinds = [*(plan.kind for plan in plans), NAMESPACES]
        try:
            workload_kinds = self._store.workload_kinds(self._scan_id)
            for step in list_intermediate_pages(listing, self._controllers.values(), kinds, served, workload_kinds):
                if isinstance(step, IntermediateNote):
                    self.notes.extend([step.text] if step.needed else [])
                    self._metadata_kinds.discard((step.kind.group, step.kind.kind))
                    continue
                self._add_controllers(list_controllers(step.objects))
                self._store.write_controllers(self._scan_id, step.page.kind, pack(step.objects))
                self._metadata_kinds.add((step.page.kind.group, step.page.kind.kind))
        except KeyboardInterrupt:
            self.gaps.append(INTERRUPTION)
            self._metadata_kinds.clear()
        self._namespaced = {(kind.group, kind.kind): kind.namespaced for kind in served}

    def _add_controllers(self, controllers: Iterable[Controller]) -> None:
        self._controllers.update((controller.group_kind, controller) for controller in controllers)

    def record_counts(self, at_start: ServerCounts, count: Callable[[], ServerCounts]) -> None:
        """Record the API server's own counts before the lists, and after them if there were any before.

        An interrupt ends only this count: every list has ended.
        """
        self._at_start = at_start
        if at_start.counts and not self._interrupted:
            with suppress(KeyboardInterrupt):
                self._at_end = count()

    def _list_object_counts(self, plans: Iterable[KindPlan]) -> Iterator[ObjectCount]:
        """The counts of the kinds, in the order of their lists."""
        for plan, excluded in zip(plans, chain(self._excluded, repeat(0)), strict=False):
            resource = _STORED_AS.get(plan.kind.resource, plan.kind.resource)
            yield ObjectCount(excluded, self._at_start.counts.get(resource), self._at_end.counts.get(resource))

    def end(self, prepared: PreparedScan, finished: datetime, options: Options) -> ScanEnd:
        """The last record of a scan, with health and gaps without duplicates.

        The scan is PARTIAL with a gap or a list that did not end, and unless `options.allow_empty` if it had nothing to evaluate;
        else it is COMPLETE.
        """
        evaluation = prepared.evaluation
        objects = sum(coverage.objects for coverage in self._coverage)
        empty = find_emptiness(bound=bool(evaluation.bound), objects=objects, scope=options.scope)
        empty = Emptiness.NONE if options.allow_empty else empty
        gaps = dict.fromkeys((*self.gaps, *_list_redacted(self._redacted)))
        incomplete = bool(gaps or empty) or any(_is_incomplete(coverage) for coverage in self._coverage)
        after: Iterable[Health] = find_observed_problems(evaluation.bound, self._counts, self._coverage)
        for language in evaluation.languages:
            after = language.adapt_health(after)
        health = {*evaluation.health, *after}
        return ScanEnd(
            finished_at=finished,
            state=ScanState.INCOMPLETE if incomplete else ScanState.COMPLETE,
            coverage=tuple(self._coverage),
            health=tuple(sorted(health)),
            gaps=tuple(gaps),
            outside=evaluation.outside,
            uncovered=evaluation.uncovered,
            opinion=self._comparison.opinion() if self._comparison else None,
            notes=tuple(dict.fromkeys((*prepared.notes, *self.notes))),
            counts=tuple(self._list_object_counts(evaluation.plans)),
            controllers={
                name: self._namespaced.get(name, True) for name in (*self._controllers, *sorted(self._metadata_kinds))
            },
            read_languages=evaluation.read_languages,
            served=frozenset((kind.group, kind.kind) for kind in prepared.served)
            if prepared.discovered
            else frozenset(),
            metadata_kinds=frozenset(self._metadata_kinds),
            emptiness=empty,
            lists=prepared.listing.versions,
            restored=options.restored,
            evaluated_policies=tuple(
                bound.policy.key
                for bound in evaluation.bound
                if not bound.reading.reason and bound.proves_fixes and bound.policy.key not in evaluation.undecided
            ),
        )

    def _handle(self, step: JobResult | ListEvent, listing: ScanLists, workers: Workers) -> None:
        match step:
            case KindStarted():
                self._coverage.append(_begin_coverage(step.kind))
                self._excluded.append(0)
                self._repeats, self._inconsistencies, self._failures = RepeatDetector(), [], []
            case JobResult():
                self._record_page(step, workers)
            case ListFailed():
                self._failures.append(step)
            case KindFinished():
                self._end_kind(step.kind, listing)
            case _ as never:
                assert_never(never)

    def _record_page(self, page_result: JobResult, workers: Workers) -> None:
        page, result = page_result.job.page, page_result.result
        if repeated := self._repeats.find_repeats(result.identities):
            result = workers.evaluate_page(page_result.job, repeated)
        self._repeats.add(result.identities)
        self._inconsistencies.extend(_find_inconsistencies(page, result))
        self._store.write_page(self._scan_id, result)
        self._add_controllers(result.controllers)
        self.gaps.extend(result.gaps)
        self._counts.add(result)
        self._coverage[-1] = _add_page(self._coverage[-1], page, result)
        self._excluded[-1] += result.excluded
        self._redacted.update(result.redacted)
        self._progress(self._coverage[-1])

    def _end_kind(self, kind: Kind, listing: ScanLists) -> None:
        """End the list of a kind; evaluated pages stay valid if a list breaks off."""
        where = f"{kind.api_version}/{kind.kind}"
        self.gaps.extend(Gap(GapKind.LIST, where, error.why) for error in self._failures)
        if note := listing.find_exclusion(kind):
            self._set_state(state=CoverageState.SKIPPED, note=note)
        elif self._failures:
            listed_part = self._coverage[-1].pages > 0 or len(self._failures) < len(listing.namespaces)
            state = CoverageState.PARTIAL if listed_part else CoverageState(self._failures[0].state)
            self._set_state(state=state, note="; ".join(dict.fromkeys(error.why for error in self._failures)))
        elif any(gap.where == where for gap in self.gaps):
            self._set_state(state=CoverageState.PARTIAL, note="part of the list could not be read")
        elif self._inconsistencies:
            self._set_state(state=CoverageState.INCONSISTENT, note="; ".join(self._inconsistencies))
            self.gaps.append(Gap(GapKind.LIST, where, f"{self._coverage[-1].note}. {_NOT_ONE_MOMENT}"))
        else:
            self._set_state(state=CoverageState.LISTED, note="")

    def _set_state(self, *, state: CoverageState, note: str) -> None:
        self._coverage[-1] = replace(self._coverage[-1], state=state, note=note)


@dataclass(frozen=True, slots=True)
class KindStarted:
    """The beginning of the list of a kind."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class KindFinished:
    """The end of the list of a kind."""

    kind: Kind


ListEvent: TypeAlias = KindStarted | ListFailed | KindFinished


def _list_kinds(plans: Iterable[KindPlan], listing: ScanLists) -> Iterator[Job | ListEvent]:
    """Every kind's pages, namespace by namespace, with consecutive numbers."""
    for plan in plans:
        yield KindStarted(plan.kind)
        numbers = count(1)
        if not listing.find_exclusion(plan.kind):
            for pages in listing.list_pages(plan.kind):
                yield from _list_pages(pages, plan, numbers)
        yield KindFinished(plan.kind)


def _list_pages(pages: Iterator[Page], plan: KindPlan, numbers: Iterator[int]) -> Iterator[Job | ListFailed]:
    try:
        for page in pages:
            yield Job(replace(page, number=next(numbers)), plan)
    except ListFailed as error:
        yield error


def _begin_coverage(kind: Kind) -> Coverage:
    return Coverage(kind.api_version, kind.kind, CoverageState.FAILED, note=_INTERRUPTED)


def _find_inconsistencies(page: Page, result: PageResult) -> Iterator[str]:
    """The reasons why the list so far does not show one moment."""
    if page.inconsistency:
        yield page.inconsistency
    elif result.repeated:
        yield f"page {page.number} repeats {result.repeated} objects, counted once"


def _add_page(coverage: Coverage, page: Page, result: PageResult) -> Coverage:
    """The coverage with one more page; the list is partial until its last page."""
    return replace(
        coverage,
        state=CoverageState.PARTIAL,
        objects=coverage.objects + result.objects,
        evaluated=coverage.evaluated + result.evaluated,
        pages=coverage.pages + 1,
        bytes=coverage.bytes + len(page.data),
        resource_version=coverage.resource_version or page.resource_version,
        seconds=round(coverage.seconds + page.seconds, 3),
        page_digests=coverage.page_digests + result.digest,
    )


def _is_incomplete(coverage: Coverage) -> bool:
    return coverage.state not in (CoverageState.LISTED, CoverageState.SKIPPED)


def _list_redacted(redacted: Mapping[PolicyKey, int]) -> Iterator[Gap]:
    """The checks of a replay that were skipped because of the redaction, by policy: they are neither passed nor violated."""
    for key in sorted(redacted):
        why = f"skipped because they may read what the snapshot withholds: {redacted[key]:,}"
        yield Gap(GapKind.EVALUATION, policy_label(key), why)
