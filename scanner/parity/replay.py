"""Replays a sample of a cluster's objects as dry-run writes.

Nothing is changed: a `DryRunWriter` sends dry runs only. Each object is read again right before it is written, and a difference is
checked twice, so that a change of the object in the meantime is not reported as a difference.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.dispatch import BoundPolicy, InvocationResult, evaluate_object
from scanner.admission.match import could_match
from scanner.admission.server_fields import reads_any
from scanner.audit import redact
from scanner.errors import ListFailed, SchemaUnknown
from scanner.model.json import JsonObject
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Operation
from scanner.model.resource import Kind, Resource, resource_of
from scanner.model.scans.scan import ClusterIdentity
from scanner.parity.answers import GONE, Response, UnrelatedResponse, read_unrelated
from scanner.parity.compare import SILENCE, VerdictComparison, VerdictDifference, compare_verdicts
from scanner.parity.copies import list_changed_paths, make_copy
from scanner.parity.mutations import ExpectedUpdate, compare_update, expect_update
from scanner.parity.pod_security import compare_pod_security, expect_pod_security, find_refusal
from scanner.parity.verdicts import Verdict, list_verdicts
from scanner.policies.mutating import language as mutating
from scanner.policies.mutating.together import list_invocations
from scanner.policies.pod_security.language import LANGUAGE as POD_SECURITY
from scanner.policies.validating.language import LANGUAGE
from scanner.scan.prepare import PreparedScan

_MUTATED: Final = "admission changes what the policy reads before policies see it"
_NOT_EVALUATED: Final = "Assay could not evaluate the policy"
_FOREIGN: Final = "{}: an aggregated API server serves it, or may, and it may ignore dryRun"


class DryRunWriter(Protocol):
    """The part of a cluster that sends dry-run writes."""

    def is_foreign(self, kind: Kind) -> bool:
        """Return whether an aggregated API server serves these objects, or may serve them: it may ignore dryRun."""
        ...

    def read(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """One object as it is now, or None if it was deleted. Raises ListFailed if it cannot be read."""
        ...

    def create(self, kind: Kind, body: JsonObject) -> Response:
        """The response to a dry-run create. Raises ListFailed without one."""
        ...

    def update(self, kind: Kind, body: JsonObject) -> Response:
        """The response to a dry-run update. Raises ListFailed without one."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayedDifference:
    """A difference, and the write that showed it."""

    operation: Operation
    api_version: str
    kind: str
    namespace: str
    name: str
    difference: VerdictDifference


@dataclass(slots=True)
class Parity:
    """The result of a replay.

    `objects` were written in `writes` dry runs; `missing` counts missing permissions, `left_out` has the kinds that were not
    written on purpose, with the reason.
    """

    cluster: ClusterIdentity
    user: str
    objects: int = 0
    writes: int = 0
    agreed: int = 0
    differences: list[ReplayedDifference] = field(default_factory=list)
    unseen: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Return whether no comparison failed for a missing response or permission."""
        return not self.gaps and not self.missing


@dataclass(frozen=True, slots=True)
class _WriteSubject:
    """An object to write, in the kind of the request."""

    kind: Kind
    namespace: str
    name: str


Progress = Callable[[Parity], None]


def verify(
    prepared: PreparedScan, writer: DryRunWriter, *, sample: int, seed: int, progress: Progress = lambda _: None
) -> Parity:
    """Replay the verdicts on `sample` objects, chosen evenly among the kinds that policies match, and count the differences.

    The same `seed` chooses the same objects of the same cluster. Raises ClusterError when the server does not respond.
    """
    parity = Parity(prepared.cluster, prepared.evaluation_context.user.username, gaps=list(prepared.gaps))
    replay = _Replay(prepared, writer, parity)
    for subject in _sample_objects(prepared, writer, parity, sample, random.Random(seed)):  # noqa: S311 - a sample, no secret
        parity.objects += 1
        replay.replay_object(subject)
        progress(parity)
    return parity


def _sample_objects(
    prepared: PreparedScan, writer: DryRunWriter, parity: Parity, sample: int, chance: random.Random
) -> Iterator[_WriteSubject]:
    """The objects of the sample, in turn from each kind; objects of one kind are equally likely."""
    kinds = dict.fromkeys(original for plan in prepared.plans for _, original in plan.policies)
    for kind in filter(writer.is_foreign, kinds):
        parity.left_out.append(_FOREIGN.format(kind.resource))
    own_kinds = sorted(kind for kind in kinds if not writer.is_foreign(kind))
    reservoirs = [_sample_kind(prepared, kind, parity, sample, chance) for kind in own_kinds]
    count = 0
    for turn in range(sample):
        for reservoir in reservoirs:
            if turn < len(reservoir) and count < sample:
                count += 1
                yield reservoir[turn]


def _sample_kind(
    prepared: PreparedScan, kind: Kind, parity: Parity, size: int, chance: random.Random
) -> list[_WriteSubject]:
    sample: list[_WriteSubject] = []
    try:
        for count, resource in enumerate(prepared.list_objects(kind), start=1):
            subject = _WriteSubject(kind, resource.namespace, resource.name)
            if len(sample) < size:
                sample.append(subject)
            # Reservoir sampling: the length of the list is unknown until its end.
            elif (place := chance.randrange(count)) < size:
                sample[place] = subject
    except (ListFailed, ValueError) as error:
        parity.gaps.append(Gap(GapKind.LIST, f"{kind.api_version}/{kind.kind}", str(error)))
    chance.shuffle(sample)
    return sample


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The result of one write: a comparison, or (`unrelated`) the reason why there is none."""

    verdicts: tuple[Verdict, ...] = ()
    comparison: VerdictComparison = field(default_factory=VerdictComparison)
    unrelated: UnrelatedResponse | None = None

    @property
    def is_doubtful(self) -> bool:
        """Return whether a second attempt could have another result."""
        return bool(self.comparison.differences) or (self.unrelated is not None and self.unrelated.stale)


class _Replay:
    """Writes the objects, and counts the results."""

    def __init__(self, prepared: PreparedScan, writer: DryRunWriter, parity: Parity) -> None:
        self._context = prepared.evaluation_context
        self._requested = prepared.evaluation.page_evaluator.add_defaults
        self._writer = writer
        self._parity = parity
        self._seen = frozenset(plan.kind for plan in prepared.plans)
        bound = prepared.evaluation.bound
        self._bounds = tuple(each for each in bound if each.policy.language == LANGUAGE)
        self._compiled = {bound.policy.name: bound.compiled for bound in self._bounds}
        self._pod_security = tuple(each for each in bound if each.policy.language == POD_SECURITY)
        mutating_policies = (each for each in bound if each.policy.language == mutating.LANGUAGE)
        self._mutators = tuple(sorted(mutating_policies, key=lambda each: each.policy.key))

    def replay_object(self, subject: _WriteSubject) -> None:
        """Replay every verdict on an object."""
        operations = [operation for operation in self._context.operations if self._can_reach(subject.kind, operation)]
        try:
            views = self._read_views(subject) if operations else {}
            for operation in operations:
                attempt = self._replay_write(subject, operation, views)
                # The object may have changed between the read and the write.
                if attempt.is_doubtful:
                    views = self._read_views(subject)
                    attempt = self._replay_write(subject, operation, views)
                self._count(subject, operation, attempt)
            self._replay_mutations(subject)
            self._replay_pod_security(subject)
        except ListFailed as error:
            gap = Gap(GapKind.LIST, f"{subject.kind.api_version}/{subject.kind.kind}", error.why)
            self._parity.gaps.extend([gap] if gap not in self._parity.gaps else [])

    def _replay_mutations(self, subject: _WriteSubject) -> None:
        """Send one no-op dry-run UPDATE; its response shows the result of all mutating policies."""
        if "UPDATE" not in self._context.operations:
            return
        # A difference counts if the second attempt has it too: the object may have changed between the read and the write.
        for last in (False, True):
            resource = self._read_view(subject, subject.kind) if self._mutators else None
            expectation = self._expect_update(subject, resource) if resource else None
            if resource is None or expectation is None:
                return
            self._parity.writes += 1
            comparison = self._send_update(expectation, subject.kind, resource.body)
            if last or not comparison.differences:
                self._count(subject, "UPDATE", _Attempt(comparison=comparison))
                return

    def _replay_pod_security(self, subject: _WriteSubject) -> None:
        """Send one dry-run CREATE of a copy; its response shows what Pod Security refuses or warns of."""
        if "CREATE" not in self._context.operations or not self._pod_security:
            return
        context = self._context.replace_operations(("CREATE",))
        # A difference counts if the second attempt has it too: the object may have changed between the read and the write.
        for last in (False, True):
            resource = self._read_view(subject, subject.kind)
            results = (
                [
                    each
                    for bound in self._pod_security
                    for each in evaluate_object(bound, resource, subject.kind, context)
                ]
                if resource
                else []
            )
            expected = expect_pod_security(results)
            if resource is None or expected is None:
                return
            self._parity.writes += 1
            response = self._writer.create(subject.kind, make_copy(subject.kind, resource.body))
            unrelated = None if find_refusal(response) else read_unrelated(response, "CREATE", subject.kind.resource)
            if unrelated:
                self._parity.unseen[unrelated.reason] += expected.seen
                self._parity.missing.update([unrelated.permission] if unrelated.permission else [])
                return
            comparison = compare_pod_security(expected, response)
            if last or not comparison.differences:
                self._count(subject, "CREATE", _Attempt(comparison=comparison))
                return

    def _send_update(self, expectation: ExpectedUpdate, kind: Kind, body: JsonObject) -> VerdictComparison:
        try:
            return compare_update(expectation, self._writer.update(kind, body))
        except ListFailed:
            if expectation.ends_connection:
                # The server panics on this mutation, as expected.
                return VerdictComparison(agreed=1)
            raise

    def _expect_update(self, subject: _WriteSubject, resource: Resource) -> ExpectedUpdate | None:
        context = self._context.replace_operations(("UPDATE",))
        try:
            acting = (
                (bound, invocation_result)
                for bound in self._mutators
                for invocation_result in list_invocations(bound, resource, subject.kind, context)
            )
            return expect_update(resource, acting)
        except SchemaUnknown as error:
            gap = Gap(GapKind.EVALUATION, f"{subject.kind.api_version}/{subject.kind.kind}", str(error))
            self._parity.gaps.extend([gap] if gap not in self._parity.gaps else [])
            return None

    def _can_reach(self, kind: Kind, operation: Operation) -> bool:
        """Return whether a request can reach some policy."""
        return any(_names_operation(bound, operation, self._list_family(kind)) for bound in self._bounds)

    def _list_family(self, kind: Kind) -> tuple[Kind, ...]:
        """The kind of a request, and the other kinds of the same objects that some policy evaluates."""
        return (kind, *(other for other in self._context.equivalents.get(kind, ()) if other in self._seen))

    def _read_views(self, subject: _WriteSubject) -> dict[Kind, Resource]:
        """The current object in every kind in which a policy may evaluate it; empty if it was deleted."""
        views = {kind: self._read_view(subject, kind) for kind in self._list_family(subject.kind)}
        present = {kind: resource for kind, resource in views.items() if resource is not None}
        return present if len(present) == len(views) else {}

    def _replay_write(
        self, subject: _WriteSubject, operation: Operation, resources: Mapping[Kind, Resource]
    ) -> _Attempt:
        if not resources:
            return _Attempt(unrelated=UnrelatedResponse(GONE, stale=True))
        invocation_results = self._evaluate(subject, operation, resources)
        verdicts = list_verdicts(invocation_results, self._compiled)
        response = self._write(subject, operation, resources[subject.kind])
        self._parity.writes += 1
        unrelated = read_unrelated(response, operation, subject.kind.resource)
        if unrelated:
            return _Attempt(verdicts, unrelated=unrelated)
        comparison = compare_verdicts(verdicts, response)
        if comparison.differences:
            self._explain(comparison, response, resources[subject.kind], invocation_results)
        return _Attempt(verdicts, comparison)

    def _evaluate(
        self, subject: _WriteSubject, operation: Operation, resources: Mapping[Kind, Resource]
    ) -> tuple[InvocationResult, ...]:
        context = self._context.replace_operations((operation,))
        results: list[InvocationResult] = []
        for bound in self._bounds:
            try:
                for resource in resources.values():
                    results.extend(evaluate_object(bound, resource, subject.kind, context))
            except Exception as error:  # noqa: BLE001 - a bug of Assay must not count as a verdict, nor end the replay
                reason = f"internal error while it was evaluated: {type(error).__name__}; please report it"
                self._parity.gaps.append(Gap(GapKind.EVALUATION, f"policy {bound.policy.name}", reason))
        return tuple(results)

    def _read_view(self, subject: _WriteSubject, kind: Kind) -> Resource | None:
        body = self._writer.read(kind, subject.namespace, subject.name)
        if body is None:
            return None
        relabelled = {**body, "apiVersion": kind.api_version, "kind": kind.kind}
        return resource_of(kind, self._requested(kind, relabelled))

    def _write(self, subject: _WriteSubject, operation: Operation, resource: Resource) -> Response:
        if operation == "CREATE":
            return self._writer.create(subject.kind, make_copy(subject.kind, resource.body))
        return self._writer.update(subject.kind, resource.body)

    def _explain(
        self,
        comparison: VerdictComparison,
        response: Response,
        sent: Resource,
        invocation_results: Sequence[InvocationResult],
    ) -> None:
        """Drop differences that admission itself explains, and redact the others."""
        after = self._get_admitted(response, sent)
        changed = list_changed_paths(sent.body, after) if after else ()
        params = tuple(invocation_result.invocation.param for invocation_result in invocation_results)
        compiled = (
            (self._compiled[invocation_result.invocation.policy.name], invocation_result)
            for invocation_result in invocation_results
        )
        secretive = redact.may_contain_secrets(compiled)
        unevaluated = {
            gap.where.removeprefix("policy ") for gap in self._parity.gaps if gap.where.startswith("policy ")
        }
        unexplained = []
        for difference in comparison.differences:
            if difference.policy in unevaluated:
                comparison.unseen[_NOT_EVALUATED] += 1
            elif changed and reads_any(_list_reads(self._compiled.get(difference.policy)), changed):
                comparison.unseen[_MUTATED] += 1
            else:
                unexplained.append(
                    replace(difference, server=_redact_message(difference.server, sent, params, secretive=secretive))
                )
        comparison.differences = unexplained

    def _get_admitted(self, response: Response, sent: Resource) -> JsonObject:
        """The object after admission: in the response, else in the response to a no-op update."""
        if response.body:
            return response.body
        self._parity.writes += 1
        return self._writer.update(sent.kind, sent.body).body

    def _count(self, subject: _WriteSubject, operation: Operation, attempt: _Attempt) -> None:
        parity, unrelated = self._parity, attempt.unrelated
        parity.agreed += attempt.comparison.agreed
        parity.unseen.update(attempt.comparison.unseen)
        parity.differences.extend(
            ReplayedDifference(
                operation, subject.kind.api_version, subject.kind.kind, subject.namespace, subject.name, difference
            )
            for difference in attempt.comparison.differences
        )
        if unrelated and attempt.verdicts:
            parity.unseen[unrelated.reason] += len(attempt.verdicts)
        if unrelated and unrelated.permission:
            parity.missing[unrelated.permission] += 1


def _names_operation(bound: BoundPolicy, operation: Operation, kinds: tuple[Kind, ...]) -> bool:
    """Return whether some rule names the operation for one of these kinds."""
    rules = bound.policy.match.rules if bound.policy.match else ()
    return not rules or any(could_match(rule, kind, (operation,)) for rule in rules for kind in kinds)


def _list_reads(compiled: CompiledPolicy | None) -> tuple[tuple[str, ...], ...]:
    """Every access path of a policy's expressions."""
    if compiled is None:
        return ()
    return tuple(path for _, expression in compiled.expressions() for path in expression.paths)


def _redact_message(text: str, resource: Resource, params: Iterable[Resource | None], *, secretive: bool) -> str:
    """The server's message, redacted, because an expression may have taken parts of it from a Secret."""
    if text == SILENCE:
        return text
    response = redact.redact_answer(text, resource, *params)
    return redact.WITHHELD_ANY if secretive and response != redact.WITHHELD else response
