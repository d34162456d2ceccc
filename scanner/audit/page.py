"""One raw page in, its outcomes out: the part of the line that needs neither the cluster nor the store.

Objects are decoded, judged by every policy that may match them, and dropped; only counts, findings and gaps leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import assert_never

import orjson

from scanner.admission.context import World
from scanner.admission.cost_budget import Strain
from scanner.admission.dispatch import Bound, Ruling, judge
from scanner.audit import redact
from scanner.audit.evidence import Evidence, evidence
from scanner.audit.fast_path import Mesh, Sieve
from scanner.audit.fast_policy import Held
from scanner.audit.findings import denies, fingerprint
from scanner.audit.items import decoded, item_fault, listed, may_have_long_numbers
from scanner.audit.tally import counted_as, tally_key
from scanner.errors import AuthorizerFailed, SchemaUnknown
from scanner.model.json import Json, as_object
from scanner.model.outcome import (
    Errored,
    Finding,
    Gap,
    GapKind,
    Judgement,
    Passed,
    Skipped,
    Violated,
    WouldChange,
)
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.resource import Kind, Page, Resource, resource_of
from scanner.model.scan import PageResult, TallyKey
from scanner.policies.mutating.together import Together, invocations, together
from scanner.policies.plan import KindPlan


@dataclass(frozen=True, slots=True)
class Judge:
    """What is needed to judge pages; `by_name` identifies objects by name, as for files, instead of by UID."""

    world: World
    exclude_namespaces: tuple[str, ...] = ()
    by_name: bool = False
    sieves: dict[Kind, Sieve] = field(default_factory=dict, compare=False, repr=False)

    def page(self, page: Page, plan: KindPlan, known: AbstractSet[str] = frozenset()) -> PageResult:
        """Judge every object of a page but those that are `known`, and none of them twice."""
        sheet = _Sheet(self.world, gaps=[])
        try:
            items = listed(page)
        except ValueError as error:
            sheet.gaps.append(Gap(GapKind.OBJECT, _where(page.kind), f"the page could not be decoded: {error}"))
            return _result(page, sheet)
        sieve = self.sieves.setdefault(page.kind, Sieve(self.world, plan))
        read = decoded if may_have_long_numbers(page.data) else orjson.loads
        for text in items:
            resource = self._resource(page.kind, text, read, sheet)
            if resource is not None and _is_new(resource, known, sheet):
                sheet.objects += 1
                resource = redact.without_data(resource) if sieve.withholds else resource
                self._object(resource, sieve.mesh(resource.namespace), len(text), sheet)
            # Gone before the next is decoded, whose parts then take its place in memory, and in the processor's caches.
            resource = None
        sieve.empty_into(sheet.tallies, sheet.matched)
        return _result(page, sheet)

    def _resource(
        self, kind: Kind, text: memoryview, read: Callable[[memoryview], Json], sheet: _Sheet
    ) -> Resource | None:
        """The object that a text describes, unless the user left it out or it is none, which is a gap."""
        try:
            item = read(text)
        except ValueError as error:
            sheet.gaps.append(Gap(GapKind.OBJECT, _where(kind), f"an item of the list could not be decoded: {error}"))
            return None
        if fault := item_fault(kind, item):
            sheet.gaps.append(Gap(GapKind.OBJECT, _where(kind), fault))
            return None
        resource = resource_of(kind, {**as_object(item), "apiVersion": kind.api_version, "kind": kind.kind})
        return None if self._excluded(resource.namespace) else resource

    def _excluded(self, namespace: str) -> bool:
        return bool(namespace) and any(fnmatchcase(namespace, pattern) for pattern in self.exclude_namespaces)

    def _object(self, resource: Resource, mesh: Mesh, size: int, sheet: _Sheet) -> None:
        if resource.namespace and self.world.namespace(resource.namespace) is None:
            why = "its namespace was not in the list of namespaces: created or deleted while scanning; scan again"
            sheet.gaps.append(Gap(GapKind.OBJECT, _where(resource.kind, resource), why))
            return
        sheet.changing.clear()
        held = mesh.held_back(resource, size)
        matched = len(held) < len(mesh.shape.quicks)
        for one in held:
            quick = one.test.quick
            matched |= self._ruled(resource, mesh, one, sheet) or self._policy(
                resource, quick.bound, quick.original, sheet
            )
        for bound, original in mesh.shape.judged:
            matched |= self._policy(resource, bound, original, sheet)
        sheet.held = {one.test.quick.bound.policy.key for one in held}
        self._drift(resource, mesh.shape.mutating, sheet)
        sheet.evaluated += matched

    def _ruled(self, resource: Resource, mesh: Mesh, held: Held, sheet: _Sheet) -> bool:
        """Whether a policy that an object does not simply pass could be evaluated without the judge."""
        quick = held.test.quick
        try:
            judgements = quick.judgements(resource, held)
            if judgements is None:
                return False
            judgements = quick.bound.heard(judgements, resource, self.world.namespace(resource.namespace))
            request = quick.request(resource)
            rulings = [Ruling(it, quick.operation, resource, judgements, request) for it in quick.invocations]
            findings = [finding for ruling in rulings for finding in self._findings(ruling, quick.bound)]
        except Exception:  # noqa: BLE001 - the judge will meet it again, and say where
            return False
        sheet.findings += findings
        mesh.rule(quick, ((judgement.check, counted_as(judgement)) for judgement in judgements))
        return True

    def _drift(self, resource: Resource, mutating: Sequence[tuple[Bound, Kind]], sheet: _Sheet) -> None:
        """What mutating policies would change, each by itself and all of them together."""
        try:
            drifts = any(
                isinstance(it.outcome, WouldChange) for _, ruling in sheet.changing for it in ruling.judgements
            )
            joint = _joint(resource, mutating, sheet) if drifts else None
            for bound, ruling in sheet.changing:
                sheet.findings.extend(self._findings(_joined(ruling, joint), bound))
        except Exception as error:  # noqa: BLE001 - see below
            why = f"internal error while its mutating policies were combined: {type(error).__name__}; please report it"
            sheet.gaps.append(Gap(GapKind.EVALUATION, _where(resource.kind, resource), why))

    def _policy(self, resource: Resource, bound: Bound, original: Kind, sheet: _Sheet) -> bool:
        sheet.strain.worst = 0.0
        try:
            rulings = tuple(judge(bound, resource, original, sheet.world))
            changing = tuple((bound, ruling) for ruling in rulings if bound.policy.mutations)
            judged = () if changing else rulings
            findings = tuple(finding for ruling in judged for finding in self._findings(ruling, bound))
        except SchemaUnknown as error:
            sheet.blind(Gap(GapKind.EVALUATION, _where(resource.kind), f"policy {bound.policy.name}: {error}"))
            return False
        except AuthorizerFailed as error:
            why = f"policy {bound.policy.name}: {error}"
            sheet.gaps.append(Gap(GapKind.EVALUATION, _where(resource.kind, resource), why))
            return False
        except Exception as error:  # noqa: BLE001 - a fault of ours must not pass for a verdict, nor stop the scan
            why = f"internal error while policy {bound.policy.name} was evaluated: {type(error).__name__}; please report it"
            sheet.gaps.append(Gap(GapKind.EVALUATION, _where(resource.kind, resource), why))
            return False
        if sheet.strain.worst > sheet.strained.get(bound.policy.key, 0.0):
            sheet.strained[bound.policy.key] = sheet.strain.worst
        sheet.findings.extend(findings)
        sheet.changing.extend(changing)
        sheet.matched.update({ruling.invocation.binding.key for ruling in rulings})
        if bound.policy.param_kind:
            sheet.bare.update(ruling.invocation.binding.key for ruling in rulings if not ruling.judgements)
        sheet.tallies.update(
            tally_key(ruling, judgement, bound) for ruling in rulings for judgement in ruling.judgements
        )
        return bool(rulings)

    def _findings(self, ruling: Ruling, bound: Bound) -> Iterator[Finding]:
        for judgement in ruling.judgements:
            match judgement.outcome:
                case Violated() | WouldChange() | Errored() as outcome:
                    safe = redact.safe(outcome, judgement.check, ruling, bound.compiled)
                    yield self._finding(ruling, judgement, safe, evidence(ruling, judgement, bound))
                case Passed() | Skipped():
                    pass
                case _ as never:
                    assert_never(never)

    def _finding(
        self, ruling: Ruling, judgement: Judgement, outcome: Violated | WouldChange | Errored, why: Evidence
    ) -> Finding:
        invocation, resource, check = ruling.invocation, ruling.resource, judgement.check
        return Finding(
            fingerprint=fingerprint(invocation, check, resource, by_name=self.by_name),
            policy=invocation.policy.name,
            binding=invocation.binding.name,
            param_namespace=invocation.param.namespace if invocation.param else "",
            param_name=invocation.param.name if invocation.param else "",
            check=check,
            outcome=outcome,
            api_version=resource.kind.api_version,
            kind=resource.kind.kind,
            namespace=resource.namespace,
            name=resource.name,
            uid=resource.uid,
            resource_version=resource.resource_version,
            operation=ruling.operation,
            actions=invocation.binding.actions,
            denies=not judgement.excepted_by and denies(outcome, invocation),
            excepted_by=judgement.excepted_by,
            language=invocation.policy.language,
            evidence=why,
        )


def _joint(resource: Resource, mutating: Iterable[tuple[Bound, Kind]], sheet: _Sheet) -> Together | None:
    """What all policies make of an object that some change: those that leave it alone may not, once others were there."""
    acting = [
        (bound, ruling)
        for bound, original in mutating
        for ruling in invocations(bound, resource, original, sheet.world)
    ]
    judged = sheet.held | {bound.policy.key for bound, _ in sheet.changing}
    try:
        found = together(acting, {bound.policy.key for bound, _ in acting} - judged)
    except (SchemaUnknown, AuthorizerFailed):
        return None
    return found and redact.joint(found, acting)


class _Sheet:
    """What a page adds up to while it is judged. `world` is the world of the page, which feels its strain."""

    def __init__(self, world: World, gaps: list[Gap]) -> None:
        self.strain = Strain()
        self.world = replace(world, strain=self.strain)
        self.gaps = gaps
        self.findings: list[Finding] = []
        self.changing: list[tuple[Bound, Ruling]] = []
        self.held: set[PolicyKey] = set()
        self.tallies: Counter[TallyKey] = Counter()
        self.matched: Counter[BindingKey] = Counter()
        self.strained: dict[PolicyKey, float] = {}
        self.bare: Counter[BindingKey] = Counter()
        self.objects = 0
        self.evaluated = 0
        self.identities: dict[str, None] = {}
        self.repeated = 0

    def blind(self, gap: Gap) -> None:
        """What no object of the page can be asked is said once."""
        if gap not in self.gaps:
            self.gaps.append(gap)


def _joined(ruling: Ruling, joint: Together | None) -> Ruling:
    """A ruling that says what other policies do to the same object."""
    if joint is None:
        return ruling
    judgements = tuple(
        replace(it, outcome=_beside(it.outcome, joint)) if isinstance(it.outcome, WouldChange) else it
        for it in ruling.judgements
    )
    return replace(ruling, judgements=judgements)


def _beside(outcome: WouldChange, joint: Together) -> WouldChange:
    return replace(
        outcome,
        together=joint.patch,
        order_matters=joint.order_matters,
        undone=joint.undone,
        refused=joint.refused,
    )


def _result(page: Page, sheet: _Sheet) -> PageResult:
    return PageResult(
        api_version=page.kind.api_version,
        kind=page.kind.kind,
        number=page.number,
        objects=sheet.objects,
        evaluated=sheet.evaluated,
        findings=tuple(sheet.findings),
        tallies=dict(sheet.tallies),
        matched=dict(sheet.matched),
        strained=sheet.strained,
        bare=dict(sheet.bare),
        gaps=tuple(sheet.gaps),
        identities=tuple(sheet.identities),
        repeated=sheet.repeated,
    )


def _is_new(resource: Resource, known: AbstractSet[str], sheet: _Sheet) -> bool:
    """Whether an object comes for the first time. A list that was begun again shows some of them twice."""
    identity = resource.uid or f"{resource.namespace}/{resource.name}"
    if identity in known or identity in sheet.identities:
        sheet.repeated += 1
        return False
    sheet.identities[identity] = None
    return True


def _where(kind: Kind, resource: Resource | None = None) -> str:
    prefix = f"{kind.api_version}/{kind.kind}"
    if resource is None:
        return prefix
    return f"{prefix} {resource.namespace}/{resource.name}" if resource.namespace else f"{prefix} {resource.name}"
