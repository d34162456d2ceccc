"""The words of a report: everything that turns a noun or a hostile text into something a person reads.

Object names, messages and manifests are written by whoever may create objects. `visible` keeps them text on every
device: control, formatting and bidirectional characters are spelled out, so that nothing moves a cursor, hides, or
reads in another order than it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from math import ceil, floor

from scanner.model.outcome import Check, CheckKind, Errored, Finding, GapKind, Violated, WouldChange
from scanner.model.policy import Binding, ParamRef
from scanner.model.reading import Auditability
from scanner.model.scan import HealthKind, Scan, Scope
from scanner.model.selector import Selector

LONGEST = 6_000
_MINUTE = 60

HEALTH_TITLES = {
    HealthKind.UNBOUND: "Not bound",
    HealthKind.DANGLING_BINDING: "Binding without policy",
    HealthKind.PARAM_KIND: "Param kind not served",
    HealthKind.PARAM_MISSING: "Param not found",
    HealthKind.NO_KIND: "Matches no served kind",
    HealthKind.NO_OBJECT: "Matched no object",
    HealthKind.COMPILE: "Does not compile",
    HealthKind.NOT_AUDITABLE: "Not auditable",
    HealthKind.TYPE_WARNING: "Type warning",
    HealthKind.STALE_STATUS: "Status is stale",
    HealthKind.CONDITION: "Condition not met",
    HealthKind.HIDDEN_ERRORS: "Errors are ignored",
    HealthKind.NEAR_LIMIT: "Cost near the limit",
    HealthKind.DUPLICATE: "Duplicate binding",
    HealthKind.SHADOWED: "Binding without effect",
    HealthKind.NOTE: "Note",
}

HEALTH_MEANINGS = {
    HealthKind.UNBOUND: "No binding puts the policy into force. Preview it with --assume-bound.",
    HealthKind.DANGLING_BINDING: "The binding names a policy that does not exist; the API server ignores it.",
    HealthKind.PARAM_KIND: "The cluster does not serve the kind of the params, so no check can be decided.",
    HealthKind.PARAM_MISSING: "A binding asks for a param that does not exist.",
    HealthKind.NO_KIND: "No kind that the cluster serves is matched: a name in the rules may be wrong.",
    HealthKind.NO_OBJECT: "Kinds are matched, but no object was.",
    HealthKind.COMPILE: "An expression does not compile: failurePolicy decides about every matched object.",
    HealthKind.NOT_AUDITABLE: "The policy asks for something that exists only while a request is made.",
    HealthKind.TYPE_WARNING: "The server's own type check warns: a field that an expression reads may not exist.",
    HealthKind.STALE_STATUS: "The server has not checked this version of the policy yet, so its type warnings say nothing.",
    HealthKind.CONDITION: "A condition in the status of the policy is not met.",
    HealthKind.HIDDEN_ERRORS: "Evaluation fails, and failurePolicy Ignore lets pass what nobody has judged.",
    HealthKind.NEAR_LIMIT: "Evaluating it costs nearly as much as the API server allows.",
    HealthKind.DUPLICATE: "Another binding of the policy says the same, so that every object is judged twice.",
    HealthKind.SHADOWED: "Whatever this binding does, another one of the same policy does as well.",
    HealthKind.NOTE: "Something to know about the policy or binding.",
}
AUDITABILITY = {
    Auditability.FULL: "fully auditable",
    Auditability.REQUESTER: "depends on requester",
    Auditability.OLD_OBJECT: "depends on the old object",
    Auditability.SERVER_SET: "reads server-set fields",
    Auditability.AUTHORIZER: "needs authorizer",
    Auditability.OPERATIONS: "not auditable (operations)",
}
AUDITABILITY_MEANINGS = {
    Auditability.FULL: "What is said about a stored object is what admission would say about it.",
    Auditability.REQUESTER: (
        "It reads who makes the request, or how. Its outcomes, passes included, hold for the requester that this scan "
        "supposed, and are counted apart."
    ),
    Auditability.OLD_OBJECT: (
        "It compares two versions of an object. A CREATE has no old version, and in the simulated UPDATE both are the same."
    ),
    Auditability.SERVER_SET: (
        "It reads what a server or a controller writes into an object: status, uid, creationTimestamp, nodeName. A stored "
        "object has it, a request to create one does not yet."
    ),
    Auditability.AUTHORIZER: "It asks what somebody may do. Where the authorizer may not be asked, its checks are not auditable.",
    Auditability.OPERATIONS: "Its rules name no write of a stored object that this scan could simulate.",
}
GAP_TITLES = {
    GapKind.DISCOVERY: "API group not discovered",
    GapKind.LIST: "List not finished",
    GapKind.DOCUMENT: "Document not read",
    GapKind.OBJECT: "Object not understood",
    GapKind.CONVERSION: "Object not converted",
    GapKind.EVALUATION: "Not evaluated",
}

EVERYTHING = (
    "every namespace",
    "every kind that a bound policy can match",
    "every policy",
    "every binding",
    "whatever the labels",
)

_FILES = "The objects come from files: no server has defaulted, converted or validated them."
_OTHERWISE = "a check that reads who makes the request, or asks the authorizer, can decide otherwise for somebody else."
_DID = {
    "auto": "created it, or updated it without a change where no rule names CREATE,",
    "create": "created it",
    "update": "updated it without a change",
}


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with every character that does not print spelled out, e.g. `\x1b`; `lines` keeps line ends and tabs."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or (lines and mark in "\n\t") else _spelled(mark) for mark in text)


def _spelled(mark: str) -> str:
    return mark.encode("unicode_escape").decode("ascii")


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning and how much of it is missing."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… [{longest:,} of {len(text):,} characters shown; the JSON report has them all]"


def utc(moment: datetime) -> datetime:
    """The moment in UTC; a database that keeps no zone has kept UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def iso(moment: datetime) -> str:
    """RFC 3339 in UTC."""
    return utc(moment).isoformat().replace("+00:00", "Z")


def stamp(moment: datetime | None) -> str:
    """A moment as people read it."""
    return "not finished" if moment is None else f"{utc(moment):%Y-%m-%d %H:%M:%S} UTC"


def minute(moment: datetime) -> str:
    """A moment to the minute, in UTC, where there is little room."""
    return f"{utc(moment):%Y-%m-%d %H:%M}"


def duration(start: datetime, end: datetime) -> str:
    """A time span in seconds, minutes or hours."""
    seconds = (utc(end) - utc(start)).total_seconds()
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def plural(number: int, singular: str, several: str = "") -> str:
    """`1 object`, `1,234 objects`."""
    return f"{number:,} {singular if number == 1 else several or singular + 's'}"


def percent_floor(share: float) -> str:
    """A share as a percentage that never says more than there is: 0.99996 is 99.9 %, not 100 %."""
    return f"{floor(share * 1000 + 1e-9) / 10:.1f} %"


def percent_ceil(share: float) -> str:
    """A share as a percentage that never says less than there is."""
    return f"{ceil(share * 1000 - 1e-9) / 10:.1f} %"


def listed(items: Iterable[str]) -> str:
    """`a, b`."""
    return ", ".join(items)


def scope_of(scan: Scan) -> tuple[str, ...]:
    """What was asked to be looked at, in words."""
    scope = scan.scope
    asked = (
        ("namespaces", listed(scope.namespaces)),
        ("kinds", listed(scope.kinds)),
        ("policies", listed(scope.policies)),
        ("bindings", listed(scope.bindings)),
        ("objects with labels", scope.selector),
    )
    return tuple(f"{what} {names}" if names else whole for (what, names), whole in zip(asked, EVERYTHING, strict=True))


def exclusions_of(scope: Scope) -> tuple[str, ...]:
    """What was left out on purpose, in words."""
    excluded = (
        ("namespaces", scope.exclude_namespaces),
        ("kinds", scope.skip_kinds),
    )
    return tuple(f"{what} {listed(names)}" for what, names in excluded if names)


def notes_of(scan: Scan) -> tuple[str, ...]:
    """What a reader must know about the way this scan looked at things."""
    files = () if scan.cluster.source == "cluster" else (_FILES,)
    note = scan.cluster.release.note
    return (*((note,) if note else ()), *files, _judged_as(scan))


def _judged_as(scan: Scan) -> str:
    who = scan.requester.username or "the identity that scanned"
    return f"Every object was judged as if {who} {_DID[scan.scope.operation]} at the time of the scan; {_OTHERWISE}"


def check_title(check: Check) -> str:
    """Which check of a policy this is. Validations are numbered as in `spec.validations`, from 0."""
    match check.kind:
        case CheckKind.VALIDATION:
            return f"validations[{check.index}]"
        case CheckKind.AUDIT_ANNOTATION:
            return f"auditAnnotations[{check.index}]"
        case CheckKind.MUTATION:
            return f"mutations[{check.index}]"
        case CheckKind.CONDITIONS:
            return "matchConditions"
        case CheckKind.CONFIGURATION:
            return "configuration"


def object_name(finding: Finding) -> str:
    """`namespace/name`, or the name of a cluster-scoped object."""
    return f"{finding.namespace}/{finding.name}" if finding.namespace else finding.name


def param_name(namespace: str, name: str) -> str:
    """`namespace/name` of a param, or an empty string when there is none."""
    return f"{namespace}/{name}" if namespace else name


def param_ref(ref: ParamRef | None) -> str:
    """Which params a binding asks for, in words."""
    if ref is None:
        return ""
    where = f" in namespace {ref.namespace}" if ref.namespace else ""
    which = ref.name if ref.selector is None else f"selected by {_selector(ref.selector)}"
    missing = f"; when missing: {ref.parameter_not_found_action}" if ref.parameter_not_found_action else ""
    return f"{which}{where}{missing}"


def _selector(selector: Selector) -> str:
    parts = (f"{it.key} {it.operator} {listed(it.values)}".rstrip() for it in selector.requirements)
    return " and ".join(parts) or "everything"


def auditability(classes: Iterable[Auditability]) -> str:
    """How far an audit can stand for admission, in words; `not known` of a scan by an older version."""
    return listed(AUDITABILITY[it] for it in classes) or "not known"


def binding_note(binding: Binding) -> str:
    """How a binding came to be, when that is not the cluster itself."""
    if binding.assumed:
        return "assumed for this scan"
    return "" if binding.source == "cluster" else f"from {binding.source}"


def told(finding: Finding) -> str:
    """What a finding says, and which policy exceptions or filters keep it from having any effect."""
    message = finding.outcome.message
    return f"{message} [excepted by {finding.excepted_by}]" if finding.excepted_by else message


def result_word(outcome: Violated | WouldChange | Errored) -> str:
    """The word for what does not pass."""
    match outcome:
        case Violated():
            return "Violated"
        case WouldChange():
            return "Drift"
        case Errored():
            return "Error"
