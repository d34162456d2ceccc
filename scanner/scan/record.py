"""Records evaluated pages in the store: coverage, gaps and health of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import TypeAlias, assert_never

from scanner.audit.repeats import RepeatDetector
from scanner.errors import ListFailed
from scanner.health import Counted, health_after
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind, Page
from scanner.model.scan import (
    Coverage,
    CoverageState,
    Health,
    PageResult,
    ScanEnd,
    ScanState,
)
from scanner.policies.plan import KindPlan
from scanner.scan.edges import Comparison, Progress, Store
from scanner.scan.lists import ScanLists
from scanner.scan.prepare import EvaluationPlan
from scanner.scan.workers import Job, Judged, Workers

_INTERRUPTED = "interrupted before every kind was listed"


_NOT_ONE_MOMENT = (
    "Objects of this kind may be missing, so none of its findings is resolved. Scan again, "
    "when the server is less busy or with another --chunk-size"
)


class ScanRecorder:
    """The records of a scan: those already in the store, and those to write at the end."""

    def __init__(self, store: Store, scan_id: str, progress: Progress, comparison: Comparison | None = None) -> None:
        self._comparison = comparison
        self._store = store
        self._scan_id = scan_id
        self._progress = progress
        self.gaps: list[Gap] = []
        self._coverage: list[Coverage] = []
        self._counted = Counted()
        self._seen = RepeatDetector()
        self._inconsistencies: list[str] = []
        self._troubles: list[ListFailed] = []

    def judge(self, setting: EvaluationPlan, listing: ScanLists, workers: Workers) -> None:
        """List and evaluate every kind; an interrupted scan still records the kinds that it did not list."""
        listing.expect(line.kind for line in setting.plans)
        try:
            steps: Iterator[Judged | ListEvent] = workers.ordered(_steps(setting.plans, listing))
            for step in steps:
                self._take(step, listing, workers)
                if self._comparison and isinstance(step, Judged):
                    self._comparison.page(step.job.page, step.job.plan, setting.judge)
        except KeyboardInterrupt:
            self.gaps.append(Gap(GapKind.LIST, "scan", f"{_INTERRUPTED}; scan again"))
            self._coverage.extend(_untouched(line.kind) for line in setting.plans[len(self._coverage) :])

    def end(self, setting: EvaluationPlan, finished: datetime) -> ScanEnd:
        """The last record of a scan."""
        incomplete = bool(self.gaps) or any(_incomplete(entry) for entry in self._coverage)
        after: Iterable[Health] = health_after(setting.bound, self._counted, self._coverage)
        for language in setting.languages:
            after = language.observed(after)
        health = {*setting.health, *after}
        return ScanEnd(
            finished_at=finished,
            state=ScanState.PARTIAL if incomplete else ScanState.COMPLETE,
            coverage=tuple(self._coverage),
            health=tuple(sorted(health)),
            gaps=tuple(dict.fromkeys(self.gaps)),
            outside=setting.outside,
            opinion=self._comparison.opinion() if self._comparison else None,
            evaluated_policies=tuple(
                entry.policy.key for entry in setting.bound if not entry.reading.reason and entry.proves_fixes
            ),
        )

    def _take(self, step: Judged | ListEvent, listing: ScanLists, workers: Workers) -> None:
        match step:
            case KindStarted():
                self._coverage.append(_untouched(step.kind))
                self._seen, self._inconsistencies, self._troubles = RepeatDetector(), [], []
            case Judged():
                self._page(step, workers)
            case ListFailed():
                self._troubles.append(step)
            case KindFinished():
                self._close(step.kind, listing)
            case _ as never:
                assert_never(never)

    def _page(self, judged: Judged, workers: Workers) -> None:
        page, result = judged.job.page, judged.result
        if known := self._seen.among(result.identities):
            result = workers.judge(judged.job, known)
        self._seen.add(result.identities)
        self._inconsistencies.extend(_inconsistencies(page, result))
        self._store.page(self._scan_id, result)
        self.gaps.extend(result.gaps)
        self._counted.add(result)
        self._coverage[-1] = _added(self._coverage[-1], page, result)
        self._progress(self._coverage[-1])

    def _close(self, kind: Kind, listing: ScanLists) -> None:
        """End the list of a kind; evaluated pages stay valid if a list breaks off."""
        where = f"{kind.api_version}/{kind.kind}"
        self.gaps.extend(Gap(GapKind.LIST, where, error.why) for error in self._troubles)
        if note := listing.left_out(kind):
            self._cover(state=CoverageState.SKIPPED, note=note)
        elif self._troubles:
            seen = self._coverage[-1].pages > 0 or len(self._troubles) < len(listing.namespaces)
            state = CoverageState.PARTIAL if seen else CoverageState(self._troubles[0].state)
            self._cover(state=state, note="; ".join(dict.fromkeys(error.why for error in self._troubles)))
        elif any(gap.where == where for gap in self.gaps):
            self._cover(state=CoverageState.PARTIAL, note="part of the list could not be read")
        elif self._inconsistencies:
            self._cover(state=CoverageState.INCONSISTENT, note="; ".join(self._inconsistencies))
            self.gaps.append(Gap(GapKind.LIST, where, f"{self._coverage[-1].note}. {_NOT_ONE_MOMENT}"))
        else:
            self._cover(state=CoverageState.LISTED, note="")

    def _cover(self, *, state: CoverageState, note: str) -> None:
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


def _steps(plans: Iterable[KindPlan], listing: ScanLists) -> Iterator[Job | ListEvent]:
    """Every kind's pages, namespace by namespace, with consecutive numbers."""
    for line in plans:
        yield KindStarted(line.kind)
        numbers = count(1)
        if not listing.left_out(line.kind):
            for pages in listing.judged(line.kind):
                yield from _pages(pages, line, numbers)
        yield KindFinished(line.kind)


def _pages(pages: Iterator[Page], line: KindPlan, numbers: Iterator[int]) -> Iterator[Job | ListFailed]:
    try:
        for page in pages:
            yield Job(replace(page, number=next(numbers)), line)
    except ListFailed as error:
        yield error


def _untouched(kind: Kind) -> Coverage:
    return Coverage(kind.api_version, kind.kind, CoverageState.FAILED, note=_INTERRUPTED)


def _inconsistencies(page: Page, result: PageResult) -> Iterator[str]:
    """The reasons why the list so far does not show one moment."""
    if page.inconsistency:
        yield page.inconsistency
    elif result.repeated:
        yield f"page {page.number} repeats {result.repeated} objects, counted once"


def _added(coverage: Coverage, page: Page, result: PageResult) -> Coverage:
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
    )


def _incomplete(coverage: Coverage) -> bool:
    return coverage.state not in (CoverageState.LISTED, CoverageState.SKIPPED)
