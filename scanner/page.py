"""One raw page in, its outcomes out: the part of the line that needs neither the cluster nor the store.

Objects are decoded, judged by every policy that may match them, and dropped; only counts, findings and gaps leave.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import assert_never

import msgspec
import orjson

from scanner import redact
from scanner.budget import Strain
from scanner.cel.depth import with_room
from scanner.errors import AuthorizerFailed, SchemaUnknown
from scanner.evidence import Evidence, evidence
from scanner.model.json import Json, JsonObject, as_object
from scanner.model.outcome import (
    Check,
    CheckKind,
    Errored,
    Finding,
    Gap,
    GapKind,
    Judgement,
    Outcome,
    Passed,
    Skipped,
    SkipReason,
    Violated,
    WouldChange,
)
from scanner.model.policy import BindingKey, Invocation, PolicyKey
from scanner.model.resource import Kind, Page, Resource, resource_of
from scanner.model.scan import OutcomeName, PageResult, TallyKey
from scanner.plan import KindPlan
from scanner.policies.together import Together, together
from scanner.policies.validating import Bound, Ruling, World, judge
from scanner.sieve import Held, Mesh, Mutating, Sieve

# Where an integer of JSON may begin; the digits within a checksum are none.
_LONG_NUMBER = re.compile(rb"(?:^|[\s:,\[-])[0-9]{19}")
_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else ord(" ") for byte in range(256))  # noqa: PLR2004
_LONG_RUN = b"0" * 19
_INT64 = 2**63
_QUOTED = 200


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
        read = decoded if _may_have_long_numbers(page.data) else orjson.loads
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

    def _drift(self, resource: Resource, mutating: Sequence[Mutating], sheet: _Sheet) -> None:
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
        sheet.tallies.update(_tally(ruling, judgement, bound) for ruling in rulings for judgement in ruling.judgements)
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


def _joint(resource: Resource, mutating: Sequence[Mutating], sheet: _Sheet) -> Together | None:
    """What all policies make of an object that some change: those that leave it alone may not, once others were there."""
    changing: defaultdict[PolicyKey, list[Ruling]] = defaultdict(list)
    for bound, ruling in sheet.changing:
        changing[bound.policy.key].append(ruling)
    acting = [
        (it.bound, ruling)
        for it in mutating
        for ruling in changing.get(it.bound.policy.key) or it.rulings(resource, sheet.world)
    ]
    try:
        found = together(acting, _Resting(resource, mutating, sheet.held | changing.keys()))
    except (SchemaUnknown, AuthorizerFailed):
        return None
    return found and redact.joint(found, acting)


class _Resting:
    """Which policies leave an object as it is: as it is stored, those but the `judged`; as others have made it, the quick tell."""

    def __init__(self, resource: Resource, mutating: Sequence[Mutating], judged: AbstractSet[PolicyKey]) -> None:
        self._resource, self._judged = resource, judged
        self._quicks = {it.bound.policy.key: it.quick for it in mutating}
        self._sizes: dict[int, int] = {}

    def __call__(self, bound: Bound, body: JsonObject) -> bool:
        key, resource = bound.policy.key, self._resource
        if body is resource.body:
            return key not in self._judged
        quick = self._quicks[key]
        return quick is not None and quick.leaves(resource, body, self._size(body))

    def _size(self, body: JsonObject) -> int:
        """The power of two above the sizes of both objects."""
        if id(body) not in self._sizes:
            size = max(_size_of(body), _size_of(self._resource.body))
            self._sizes[id(body)] = 1 << size.bit_length()
        return self._sizes[id(body)]


def _size_of(body: JsonObject) -> int:
    """The bytes of an object as JSON; more than there can be, when it is none that can be written."""
    try:
        return len(orjson.dumps(body))
    except TypeError:
        return sys.maxsize


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


def item_fault(kind: Kind, item: Json) -> str:
    """Why an item of a list is no object of its kind, or an empty string. Lists of built-in kinds leave the kind out."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(metadata, dict):
        return "an item of the list has no metadata"
    stated = item.get("apiVersion") or kind.api_version, item.get("kind") or kind.kind
    if stated != (kind.api_version, kind.kind):
        return f"an item of the list is another object: {stated[0]} {stated[1]}"[:_QUOTED]
    return "" if metadata.get("name") else "an item of the list has no name"


class _List(msgspec.Struct):
    """What is needed of a list: where its items are in the text."""

    items: list[msgspec.Raw] | None


_LIST = msgspec.json.Decoder(_List)


def decode(page: Page) -> list[Json]:
    """The items of a page. Raises ValueError for what is not a list of items."""
    return [decoded(text) for text in listed(page)]


def listed(page: Page) -> list[memoryview]:
    """The JSON texts of a page's items. Raises ValueError for what is not a list of items."""
    try:
        document = with_room(lambda: _LIST.decode(page.data))
    except msgspec.ValidationError:
        raise ValueError("it has no list of items") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return [memoryview(item) for item in document.items or ()]


def decoded(text: memoryview) -> Json:
    """The value of a JSON text. Raises ValueError for what is none."""
    value: Json = orjson.loads(text)
    return _in_range(value) if _may_have_long_numbers(bytes(text)) and _LONG_NUMBER.search(text) else value


def _may_have_long_numbers(text: bytes) -> bool:
    """Whether there are so many digits in a row that they could be a number beyond 64 bits."""
    return _LONG_RUN in text.translate(_DIGITS)


def _in_range(value: Json) -> Json:
    """The API server's decoder makes doubles of integers beyond 64 bits."""
    if isinstance(value, dict):
        return {key: _in_range(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_range(item) for item in value]
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return float(value)
    return value


def fingerprint(invocation: Invocation, check: Check, resource: Resource, *, by_name: bool) -> str:
    """64 hex digits that name one finding across scans: who says what about which object."""
    policy, binding, param = invocation.policy, invocation.binding, invocation.param
    uid = "" if by_name else resource.uid
    identity = uid or f"{resource.kind.group}/{resource.kind.kind}/{resource.namespace}/{resource.name}"
    place = f"{param.namespace}/{param.name}" if param else ""
    ordinal = _ordinal(invocation, check) if check.index else 0
    digest = _who(policy.language, policy.name, binding.name, place, check.kind, check.expression, ordinal).copy()
    digest.update(identity.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@lru_cache(maxsize=4096)
def _who(
    language: str, policy: str, binding: str, param: str, kind: CheckKind, expression: str, ordinal: int
) -> hashlib._Hash:
    """The digest of who says it, to which what it is said about is added."""
    parts = (language, policy, binding, param, kind.value, expression.strip(), str(ordinal), "")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))


def _ordinal(invocation: Invocation, check: Check) -> int:
    """Which one this is among checks with the same expression, so that inserting a check renames no other."""
    policy = invocation.policy
    match check.kind:
        case CheckKind.VALIDATION:
            texts = [validation.expression for validation in policy.validations]
        case CheckKind.AUDIT_ANNOTATION:
            texts = [annotation.value_expression for annotation in policy.audit_annotations]
        case CheckKind.MUTATION:
            texts = [mutation.expression for mutation in policy.mutations]
        case CheckKind.CONDITIONS | CheckKind.CONFIGURATION:
            return 0
        case _ as never:
            assert_never(never)
    return sum(text.strip() == check.expression.strip() for text in texts[: check.index])


def denies(outcome: Violated | WouldChange | Errored, invocation: Invocation) -> bool:
    """Whether admission would refuse the object because of this outcome."""
    if isinstance(outcome, WouldChange):
        return False
    if isinstance(outcome, Violated):
        return "Deny" in invocation.binding.actions
    return outcome.would_deny and (outcome.always or "Deny" in invocation.binding.actions)


def counted_as(judgement: Judgement) -> OutcomeName:
    """Under which name a judgement is counted: what an exception or a filter takes the effect from is apart from all else."""
    if judgement.excepted_by and isinstance(judgement.outcome, Violated | Errored):
        return OutcomeName.EXCEPTED
    return outcome_name(judgement.outcome)


def outcome_name(outcome: Outcome) -> OutcomeName:
    """Under which name an outcome is counted."""
    match outcome:
        case Passed():
            return OutcomeName.PASSED
        case Violated():
            return OutcomeName.VIOLATED
        case WouldChange():
            return OutcomeName.WOULD_CHANGE
        case Errored(would_deny=would_deny):
            return OutcomeName.ERRORED_DENY if would_deny else OutcomeName.ERRORED_ADMIT
        case Skipped(reason=SkipReason.NOT_AUDITABLE):
            return OutcomeName.NOT_AUDITABLE
        case Skipped():
            return OutcomeName.SKIPPED
        case _ as never:
            assert_never(never)


def _tally(ruling: Ruling, judgement: Judgement, bound: Bound) -> TallyKey:
    invocation, resource = ruling.invocation, ruling.resource
    return TallyKey(
        policy=invocation.policy.name,
        binding=invocation.binding.name,
        param_namespace=invocation.param.namespace if invocation.param else "",
        param_name=invocation.param.name if invocation.param else "",
        check=judgement.check,
        api_version=resource.kind.api_version,
        kind=resource.kind.kind,
        namespace=resource.namespace,
        outcome=counted_as(judgement),
        requester=judgement.check in bound.requester,
        language=invocation.policy.language,
    )


def _where(kind: Kind, resource: Resource | None = None) -> str:
    prefix = f"{kind.api_version}/{kind.kind}"
    if resource is None:
        return prefix
    return f"{prefix} {resource.namespace}/{resource.name}" if resource.namespace else f"{prefix} {resource.name}"
