"""The words of a report: titles and meanings of the nouns, and functions that make any text safe to print.

Every user who may create objects chooses object names, messages and manifests. `visible` keeps them text on every
device: it writes control, formatting and bidirectional characters as escapes, so that no text moves a cursor, hides, or
reads in another order than it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import ceil, floor

from scanner.model.cause import Cause, CauseKind
from scanner.model.method import ClockDifferences
from scanner.model.outcome import Check, CheckKind, Errored, Finding, GapKind, Violated, WouldChange
from scanner.model.policy import Binding, ParamRef
from scanner.model.reading import Auditability
from scanner.model.scan import HealthKind, Scan, Scope, StoredFinding
from scanner.model.selector import Selector
from scanner.posture.controls import ControlState
from scanner.posture.rule_digests import RulesPart

LONGEST = 6_000
_MINUTE = 60

HEALTH_TITLES = {
    HealthKind.UNBOUND: "Not bound",
    HealthKind.DANGLING_BINDING: "Binding without a policy",
    HealthKind.PARAM_KIND: "Param kind not served",
    HealthKind.PARAM_MISSING: "Param not found",
    HealthKind.NO_KIND: "Matches no served kind",
    HealthKind.NO_OBJECT: "Matched no object",
    HealthKind.COMPILE: "Does not compile",
    HealthKind.NOT_AUDITABLE: "Not auditable",
    HealthKind.TYPE_WARNING: "Type warning",
    HealthKind.STALE_STATUS: "Status is stale",
    HealthKind.CONDITION: "Condition is false",
    HealthKind.HIDDEN_ERRORS: "Errors are ignored",
    HealthKind.NEAR_LIMIT: "Cost near the limit",
    HealthKind.DUPLICATE: "Duplicate binding",
    HealthKind.SHADOWED: "Redundant binding",
    HealthKind.UNKNOWN_FIELD: "Unknown field",
    HealthKind.NOT_SERVED: "Version not served",
    HealthKind.NOTE: "Note",
}

HEALTH_MEANINGS = {
    HealthKind.UNBOUND: "No binding refers to the policy, so it is never evaluated. Preview it with --assume-bound.",
    HealthKind.DANGLING_BINDING: "The binding names a policy that does not exist; the API server ignores it.",
    HealthKind.PARAM_KIND: "The cluster does not serve the kind of the params, so every check fails with an error.",
    HealthKind.PARAM_MISSING: "A binding refers to a param that does not exist.",
    HealthKind.NO_KIND: "The rules match no kind that the cluster serves: check the names in the rules.",
    HealthKind.NO_OBJECT: "The rules match kinds that the cluster serves, but no object.",
    HealthKind.COMPILE: "An expression does not compile: failurePolicy decides for every matched object.",
    HealthKind.NOT_AUDITABLE: "The policy reads data that exists only during a request.",
    HealthKind.TYPE_WARNING: "The API server's type check warns: a field that an expression reads may not exist.",
    HealthKind.STALE_STATUS: "The API server has not checked this version of the policy yet, so its type warnings may be outdated.",
    HealthKind.CONDITION: "A condition in the status of the policy is false.",
    HealthKind.HIDDEN_ERRORS: "Evaluation fails and failurePolicy is Ignore, so objects are admitted unchecked.",
    HealthKind.NEAR_LIMIT: "The evaluation cost is close to the API server's limit.",
    HealthKind.DUPLICATE: "Another binding of the policy is equal, so every object is evaluated twice.",
    HealthKind.SHADOWED: "Another binding of the same policy has all effects of this one.",
    HealthKind.UNKNOWN_FIELD: "The manifest has a field that its kind does not have: kubectl refuses it, and the field has no effect.",
    HealthKind.NOT_SERVED: "The cluster or its release does not serve the version of the manifest, which is evaluated all the same.",
    HealthKind.NOTE: "Information about the policy or binding.",
}
UNOWNED_TITLE = "unowned"
"""The title of the objects without an owner."""


def owner_title(owner: str) -> str:
    """The name of an owner, or the title of the objects without one."""
    return owner or UNOWNED_TITLE


AUDITABILITY = {
    Auditability.FULL: "fully auditable",
    Auditability.REQUESTER: "depends on requester",
    Auditability.OLD_OBJECT: "depends on the old object",
    Auditability.SERVER_SET: "reads server-set fields",
    Auditability.AUTHORIZER: "needs authorizer",
    Auditability.OPERATIONS: "not auditable (operations)",
}
RESOLUTIONS = {
    "fixed": "the workload was fixed",
    "moved": "the object has another workload now",
    "noObjects": "the workload has no objects to evaluate",
    "objectGone": "the object is gone",
    "rulesChanged": "the rules changed",
    "unbound": "the policy is not bound any more",
    "notMatched": "the policy no longer matches the object",
}
"""The reasons of resolutions, after a colon."""

RULES_PARTS = {
    RulesPart.RULES: "policies, bindings, params, exceptions or namespace labels",
    RulesPart.SERVER: "the version of the server",
    RulesPart.ASSAY: "the version of Assay",
}
"""The parts of rules that differ, after a colon."""

RULES_KINDS = {
    CauseKind.POLICY: "policies",
    CauseKind.BINDING: "bindings",
    CauseKind.PARAM: "params",
    CauseKind.EXCEPTION: "exceptions",
    CauseKind.NAMESPACE: "namespace labels",
}
"""The kinds of rules that differ."""

EVENTS = {**dict.fromkeys(RESOLUTIONS, "resolved"), "fixed": "fixed"}
"""The events of a finding's history that have another name in reports."""

CAUSES = {
    CauseKind.POLICY: "the policy changed",
    CauseKind.BINDING: "the binding changed",
    CauseKind.PARAM: "the param changed",
    CauseKind.EXCEPTION: "an exception changed",
    CauseKind.NAMESPACE: "the labels of the namespace changed",
    CauseKind.WAIVER: "a waiver changed",
    CauseKind.FIRST_SCAN: "this was the first scan of the cluster",
    CauseKind.COVERAGE: "the earlier scan did not evaluate it",
    CauseKind.SERVER: "the API server changed",
    CauseKind.ASSAY: "Assay changed",
    CauseKind.OPTIONS: "the options of the scan changed",
    CauseKind.OBJECT_NOT_IN_EARLIER_SCAN: "the object was not in the earlier scan",
    CauseKind.OBJECT_CREATED: "the object was created",
    CauseKind.OBJECT_DELETED: "the object was deleted",
    CauseKind.OBJECT_CHANGED: "the object changed",
}
"""What changed, as a clause."""


def cause_text(cause: Cause) -> str:
    """A cause as a clause: `the policy changed; the object changed, too`."""
    also = ", and ".join(CAUSES[kind] for kind in cause.also)
    return f"{CAUSES[cause.kind]}; {also}, too" if also else CAUSES[cause.kind]


AUDITABILITY_MEANINGS = {
    Auditability.FULL: "The verdict about a stored object is the verdict that admission would give.",
    Auditability.REQUESTER: (
        "Reads the user or the options of the request. Its outcomes, passes included, hold for the simulated user, and are "
        "counted separately."
    ),
    Auditability.OLD_OBJECT: (
        "Compares two versions of an object. A CREATE has no old version, and in the simulated UPDATE both are equal."
    ),
    Auditability.SERVER_SET: (
        "Reads fields that a server or a controller sets: status, uid, creationTimestamp, nodeName. A stored object has "
        "them, a request to create an object does not."
    ),
    Auditability.AUTHORIZER: "Checks the permissions of a user. Without permission to query the authorizer, its checks are not auditable.",
    Auditability.OPERATIONS: "Its rules match no operation that a scan of stored objects can simulate.",
}
CONTROL_STATES = {
    ControlState.MET: "met",
    ControlState.VIOLATED: "violated",
    ControlState.ERRORED: "errored",
    ControlState.NOT_SHOWN: "not shown",
    ControlState.NOT_COVERED: "not covered",
}
"""The states of controls, in sentences."""

CONTROL_MEANINGS = {
    ControlState.MET: "Every object that its policies can match was evaluated, at least one passed, and nothing is open.",
    ControlState.VIOLATED: "An object violates a policy.",
    ControlState.ERRORED: "The evaluation of a policy failed for an object, whether admission would deny the object or admit it.",
    ControlState.NOT_SHOWN: "The scan does not show that the control is met, for the reasons beside it.",
    ControlState.NOT_COVERED: "No policy that serves the control is bound.",
}

GAP_TITLES = {
    GapKind.DISCOVERY: "API group not discovered",
    GapKind.LIST: "List not finished",
    GapKind.DOCUMENT: "Document not read",
    GapKind.OBJECT: "Object not readable",
    GapKind.CONVERSION: "Object not converted",
    GapKind.EVALUATION: "Not evaluated",
}

EVERYTHING = (
    "every namespace",
    "every kind that a bound policy can match",
    "every policy",
    "every binding",
    "objects with any labels",
)


_FILES = "The objects come from files: no server has defaulted, converted or validated them."
_OTHER_USERS = "Checks that depend on the user may differ for other users."
_REQUESTS = {
    "auto": ("CREATE requests", " (as no-op UPDATEs where no rule matches CREATE)"),
    "create": ("CREATE requests", ""),
    "update": ("no-op UPDATE requests", ""),
}


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with every character that does not print as an escape such as `\x1b`; `lines` keeps line ends and tabs."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or (lines and character in "\n\t") else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its first `longest` characters with a note of its length."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… [{longest:,} of {len(text):,} characters shown; the JSON report has the whole text]"


def utc(moment: datetime) -> datetime:
    """The moment in UTC; a moment without a zone, as some databases return it, is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def iso(moment: datetime) -> str:
    """RFC 3339 in UTC."""
    return utc(moment).isoformat().replace("+00:00", "Z")


def stamp(moment: datetime | None) -> str:
    """`2026-01-31 09:05:00 UTC`, or `not finished`."""
    return "not finished" if moment is None else f"{utc(moment):%Y-%m-%d %H:%M:%S} UTC"


def minute(moment: datetime) -> str:
    """`2026-01-31 09:05`, in UTC, for narrow columns."""
    return f"{utc(moment):%Y-%m-%d %H:%M}"


def duration(start: datetime, end: datetime) -> str:
    """The time between two moments, as text in seconds, minutes or hours."""
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
    """A share (0 to 1) as a percentage with one decimal, rounded down: 0.99996 is 99.9 %, not 100 %."""
    return f"{floor(share * 1000 + 1e-9) / 10:.1f} %"


def percent_ceil(share: float) -> str:
    """A share (0 to 1) as a percentage with one decimal, rounded up."""
    return f"{ceil(share * 1000 - 1e-9) / 10:.1f} %"


def listed(items: Iterable[str]) -> str:
    """The items as text: `a, b`."""
    return ", ".join(items)


def scope_of(scan: Scan) -> tuple[str, ...]:
    """The scope of a scan, in words."""
    scope = scan.scope
    limits = (
        ("namespaces", listed(scope.namespaces)),
        ("kinds", listed(scope.kinds)),
        ("policies", listed(scope.policies)),
        ("bindings", listed(scope.bindings)),
        ("objects with labels", scope.selector),
    )
    return tuple(
        f"{noun} {names}" if names else everything for (noun, names), everything in zip(limits, EVERYTHING, strict=True)
    )


def exclusions_of(scope: Scope) -> tuple[str, ...]:
    """The namespaces and kinds that the user excluded, in words."""
    excluded = (
        ("namespaces", scope.exclude_namespaces),
        ("kinds", scope.skip_kinds),
    )
    return tuple(f"{noun} {listed(names)}" for noun, names in excluded if names)


def notes_of(scan: Scan, clocks: ClockDifferences) -> tuple[str, ...]:
    """The notes about how this scan evaluated the objects, and about its date."""
    files = () if scan.cluster.source == "cluster" else (_FILES,)
    first = filter(None, (clocks_note(clocks, scan.started_at), scan.cluster.release.note))
    return (*first, *files, _simulated(scan), *scan.notes)


def clocks_note(clocks: ClockDifferences, started: datetime) -> str:
    """The note about clocks that differed by more than five minutes, given the date of the beginning; empty if they agreed."""
    if not clocks.differ:
        return ""
    own = started - timedelta(seconds=clocks.latest)
    shown = (
        f"{stamp(own + timedelta(seconds=seconds))} {place}"
        for place, seconds in (
            ("on the machine of the scan", 0),
            ("on the API server", clocks.api_server),
            ("in PostgreSQL", clocks.database),
        )
        if seconds is not None
    )
    return (
        f"The clocks differed by more than five minutes when the scan began: {listed(shown)}. "
        "The scan is dated by the latest of them. Correct the clocks that are wrong."
    )


def _simulated(scan: Scan) -> str:
    user = scan.requester.username or "the user that scanned"
    requests, otherwise = _REQUESTS[scan.scope.operation]
    return f"Objects were evaluated as {requests} by {user}{otherwise}. {_OTHER_USERS}"


def check_title(check: Check) -> str:
    """The field of the policy that has the check: `validations[0]`."""
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


def workload_name(stored: StoredFinding) -> str:
    """`Deployment web`, with a mark if derived; empty if the workload is not known, or is the object itself.

    A workload that has a namespace is in that of the object.
    """
    workload, finding = stored.workload, stored.finding
    if workload is None:
        return ""
    own = finding.api_version, finding.kind, finding.namespace, finding.name
    if own == (workload.api_version, workload.kind, workload.namespace, workload.name):
        return ""
    return f"{workload.kind} {workload.name}{' (derived)' if workload.derived else ''}"


def param_name(namespace: str, name: str) -> str:
    """`namespace/name` of a param, or an empty string when there is none."""
    return f"{namespace}/{name}" if namespace else name


def param_ref(ref: ParamRef | None) -> str:
    """The params of a binding, in words."""
    if ref is None:
        return ""
    where = f" in namespace {ref.namespace}" if ref.namespace else ""
    params = ref.name if ref.selector is None else f"selected by {_selector(ref.selector)}"
    missing = f"; if missing: {ref.parameter_not_found_action}" if ref.parameter_not_found_action else ""
    return f"{params}{where}{missing}"


def _selector(selector: Selector) -> str:
    parts = (f"{label.key} {label.operator} {listed(label.values)}".rstrip() for label in selector.requirements)
    return " and ".join(parts) or "everything"


def auditability(classes: Iterable[Auditability]) -> str:
    """The auditability classes in words; `not known` for a scan by an older version."""
    return listed(AUDITABILITY[auditability] for auditability in classes) or "not known"


def binding_note(binding: Binding) -> str:
    """The origin of a binding, empty for a binding of the cluster."""
    if binding.assumed:
        return "assumed for this scan"
    return "" if binding.source == "cluster" else f"from {binding.source}"


def message_of(finding: Finding) -> str:
    """The message of a finding, with the policy exceptions or filters that exempt the object."""
    message = finding.outcome.message
    return f"{message} [excepted by {finding.excepted_by}]" if finding.excepted_by else message


def result_word(outcome: Violated | WouldChange | Errored) -> str:
    """The word for an outcome that is no pass."""
    match outcome:
        case Violated():
            return "Violated"
        case WouldChange():
            return "Drift"
        case Errored():
            return "Errored"
