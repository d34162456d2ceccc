"""The titles and meanings of the nouns in a report: health, causes, auditability, controls, gaps, checks and outcomes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from scanner.model.outcome import Check, CheckKind, Errored, Finding, GapKind, Violated, WouldChange
from scanner.model.policy import Binding
from scanner.model.reading import Auditability
from scanner.model.scans.cause import Cause, CauseKind
from scanner.model.scans.health import HealthKind
from scanner.posture.control_namespaces import NamespaceState
from scanner.posture.controls import ControlState
from scanner.posture.history.rule_digests import RulesPart
from scanner.report.text.numbers import join_texts

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
    HealthKind.NOT_ENFORCED: "Not enforced",
    HealthKind.UNKNOWN_FIELD: "Unknown field",
    HealthKind.NOT_SERVED: "Version not served",
    HealthKind.NOTE: "Note",
}

HEALTH_MEANINGS = {
    HealthKind.UNBOUND: "No binding refers to the policy, so it is never evaluated. Preview it with `assay preview --bind`.",
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
    HealthKind.NOT_ENFORCED: "Admission does not evaluate the policy, or one of its variants.",
    HealthKind.UNKNOWN_FIELD: "The manifest has a field that its kind does not have: kubectl refuses it, and the field has no effect.",
    HealthKind.NOT_SERVED: "The cluster or its release does not serve the version of the manifest, which is evaluated all the same.",
    HealthKind.NOTE: "Information about the policy or binding.",
}


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
    RulesPart.KYVERNO: "the release of Kyverno",
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
    CauseKind.KYVERNO: "the release of Kyverno changed",
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

NAMESPACE_STATES = {
    NamespaceState.ENFORCED: "enforced",
    NamespaceState.PODS_REFUSED: "pods refused",
    NamespaceState.WARNED: "warned or audited only",
    NamespaceState.ACCEPTED: "waived or exempt",
    NamespaceState.NO_POLICY: "no policy",
    NamespaceState.NO_OBJECT: "no object",
}
"""The answers of admission about a control in a namespace, in words."""

NAMESPACE_MEANINGS = {
    NamespaceState.ENFORCED: "Admission refuses an object that violates the control.",
    NamespaceState.PODS_REFUSED: "Admission admits such a workload, and refuses its pods.",
    NamespaceState.WARNED: "Admission admits such an object, and warns of it or audits it, or the evaluation failed and was ignored.",
    NamespaceState.ACCEPTED: "A finding is waived, or an exemption or exception exempts an object.",
    NamespaceState.NO_POLICY: "No binding evaluated the objects by a check of the control.",
    NamespaceState.NO_OBJECT: "The namespace has no object to which the policies of the control apply.",
}

CONTROL_MEANINGS = {
    ControlState.MET: "Every object that its policies can match was evaluated, at least one passed, nothing is open, and admission refuses violations.",
    ControlState.VIOLATED: "An object violates a check of the control.",
    ControlState.ERRORED: "The evaluation of a check failed for an object, whether admission would deny the object or admit it.",
    ControlState.NOT_SHOWN: "The scan does not show that the control is met, for the reasons beside it.",
    ControlState.NOT_COVERED: "No binding puts a check of the control into force.",
}

GAP_TITLES = {
    GapKind.DISCOVERY: "API group not discovered",
    GapKind.LIST: "List not finished",
    GapKind.DOCUMENT: "Document not read",
    GapKind.OBJECT: "Object not readable",
    GapKind.CONVERSION: "Object not converted",
    GapKind.EVALUATION: "Not evaluated",
}


ACTION_WORDS: Final = {"RefusePods": "refuse pods"}
"""The actions that no manifest can name, in words; the others are written as in manifests."""


def name_actions(actions: Iterable[str]) -> tuple[str, ...]:
    """The actions of bindings for a reader; data have the names of the model."""
    return tuple(ACTION_WORDS.get(action, action) for action in actions)


_NAME: Final = re.compile(
    r"(?!(?:true|false|null|object|oldObject|request|params|namespaceObject|variables)$)[A-Za-z]\w*", re.ASCII
)
"""The name of a check of a language without expressions: no word of CEL."""


def check_title(check: Check) -> str:
    """The name of a check, such as `hostNamespaces` of Pod Security, else the field of the policy that has it: `validations[0]`."""
    if _NAME.fullmatch(check.expression):
        return check.expression
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


def auditability(classes: Iterable[Auditability]) -> str:
    """The auditability classes in words; `not known` for a scan by an older version."""
    return join_texts(AUDITABILITY[auditability] for auditability in classes) or "not known"


def binding_note(binding: Binding) -> str:
    """The origin of a binding, empty for a binding of the cluster."""
    if binding.assumed:
        return "assumed for this scan"
    return "" if binding.source == "cluster" else f"from {binding.source}"


def message_of(finding: Finding) -> str:
    """The message of a finding, with the policy exceptions or filters that exempt the object."""
    message = finding.outcome.message
    return f"{message} [excepted by {finding.excepted_by}]" if finding.excepted_by else message


_FAILED: Final = "failed expression: "
_ERRORED: Final = re.compile(r"expression '.*' resulted in error: (.+)", re.DOTALL)


def without_expression(message: str) -> str:
    """The message of an evaluation that failed, without its expression; another message as it is."""
    errored = _ERRORED.fullmatch(message)
    return f"evaluation fails: {errored[1]}" if errored else message


def sentence_of(finding: Finding, title: str) -> str:
    """What is wrong, on one line, for a list: the message, but without an expression; a policy without messages has its `title`.

    The messages that the API server makes of an expression are those of `admission.results` and `admission.cost_budget`.
    """
    message = finding.outcome.message
    message = title if message.startswith(_FAILED) else without_expression(message)
    excepted = f" [excepted by {finding.excepted_by}]" if finding.excepted_by else ""
    return f"{'; '.join(' '.join(line.split()) for line in message.splitlines())}{excepted}"


def result_word(outcome: Violated | WouldChange | Errored) -> str:
    """The word for an outcome that is no pass."""
    match outcome:
        case Violated():
            return "Violated"
        case WouldChange():
            return "Drift"
        case Errored():
            return "Errored"
