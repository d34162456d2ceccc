"""The findings of an evaluation: their identity across scans, their effect on admission, and the form that those of a check have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import assert_never

from scanner.admission.dispatch import BoundPolicy, InvocationResult
from scanner.audit import redact
from scanner.audit.evidence import EvidenceParts, collect_evidence
from scanner.model.outcome import (
    Check,
    CheckKind,
    CheckResult,
    Errored,
    Evidence,
    Finding,
    Outcome,
    Passed,
    Skipped,
    SkipReason,
    Violated,
    WouldChange,
)
from scanner.model.policy import Invocation, Operation
from scanner.model.resource import Kind, Resource
from scanner.model.scans.tally import OutcomeName, TallyKey


class FindingForm:
    """The facts that all findings of one check of an invocation share: names, actions, and the beginning of the fingerprint."""

    __slots__ = ("_check", "_denies_violations", "_identity", "_invocation", "_param_name", "_param_namespace")

    def __init__(self, invocation: Invocation, check: Check) -> None:
        """Take the invocation and its check."""
        param = invocation.param
        self._invocation, self._check = invocation, check
        self._param_namespace, self._param_name = (param.namespace, param.name) if param else ("", "")
        self._denies_violations = "Deny" in invocation.binding.actions
        self._identity = _get_identity_state(invocation, check)

    def make_finding(
        self,
        resource: Resource,
        outcome: Violated | WouldChange | Errored,
        evidence: Evidence,
        *,
        operation: Operation,
        excepted_by: str,
        by_name: bool,
    ) -> Finding:
        """The finding about an object; `by_name` identifies the object by name, as for files, instead of by UID."""
        invocation, kind = self._invocation, resource.kind
        policy, binding = invocation.policy, invocation.binding
        return Finding(
            self.compute_fingerprint(resource, by_name=by_name),
            policy.name,
            binding.name,
            self._param_namespace,
            self._param_name,
            self._check,
            outcome,
            kind.api_version,
            kind.kind,
            resource.namespace,
            resource.name,
            resource.uid,
            resource.resource_version,
            operation,
            binding.actions,
            not excepted_by and self._denies(outcome),
            excepted_by,
            policy.language,
            evidence,
        )

    def compute_fingerprint(self, resource: Resource, *, by_name: bool) -> str:
        """The identity of a finding across scans: SHA-256 of policy, binding, param, check and object, as 64 hex digits.

        The object is its UID; with `by_name`, and without a UID, it is group, kind, namespace and name.
        """
        uid = "" if by_name else resource.uid
        identity = uid or f"{resource.kind.group}/{resource.kind.kind}/{resource.namespace}/{resource.name}"
        digest = self._identity.copy()
        digest.update(identity.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def _denies(self, outcome: Violated | WouldChange | Errored) -> bool:
        if outcome.__class__ is Violated:
            return self._denies_violations
        return denies(outcome, self._invocation)


class FindingForms:
    """The forms of an invocation: those of some `checks` are made once, those of other checks for each finding."""

    __slots__ = ("_form_by_check", "_invocation")

    def __init__(self, invocation: Invocation, checks: Iterable[Check] = ()) -> None:
        """Take the invocation; the forms keep the checks alive, so that no others get their ids."""
        self._invocation = invocation
        self._form_by_check = {id(check): FindingForm(invocation, check) for check in checks}

    def get_form(self, check: Check) -> FindingForm:
        """The form of a check."""
        return self._form_by_check.get(id(check)) or FindingForm(self._invocation, check)


def compute_fingerprint(invocation: Invocation, check: Check, resource: Resource, *, by_name: bool) -> str:
    """The identity of a finding across scans; see `FindingForm.compute_fingerprint`."""
    return FindingForm(invocation, check).compute_fingerprint(resource, by_name=by_name)


def _get_identity_state(invocation: Invocation, check: Check) -> hashlib._Hash:
    """The SHA-256 state over policy, binding, param and check, to which the identity of the object is added."""
    policy, binding, param = invocation.policy, invocation.binding, invocation.param
    place = f"{param.namespace}/{param.name}" if param else ""
    ordinal = _count_equal_before(invocation, check) if check.index else 0
    return _hash_identity(policy.language, policy.name, binding.name, place, check.kind, check.expression, ordinal)


@lru_cache(maxsize=4096)
def _hash_identity(
    language: str, policy: str, binding: str, param: str, kind: CheckKind, expression: str, ordinal: int
) -> hashlib._Hash:
    # The last part ends the state with a separator.
    parts = (language, policy, binding, param, kind.value, expression.strip(), str(ordinal), "")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))


def _count_equal_before(invocation: Invocation, check: Check) -> int:
    """The position among checks with the same expression, so that inserting a check changes no other fingerprint."""
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
    """Return whether admission would deny the object because of this outcome, with the actions of the binding."""
    if isinstance(outcome, WouldChange):
        return False
    if isinstance(outcome, Violated):
        return "Deny" in invocation.binding.actions
    return outcome.would_deny and (outcome.always or "Deny" in invocation.binding.actions)


# The name under which a result is counted, and the key of its count.


def name_counted_outcome(check_result: CheckResult) -> OutcomeName:
    """The name under which a check result is counted; violations and errors that an exception or filter exempts count apart."""
    if check_result.excepted_by and isinstance(check_result.outcome, Violated | Errored):
        return OutcomeName.EXCEPTED
    return name_outcome(check_result.outcome)


def name_outcome(outcome: Outcome) -> OutcomeName:
    """The name under which an outcome is counted."""
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


def make_tally_key(
    invocation_result: InvocationResult, check_result: CheckResult, bound: BoundPolicy, listed: Kind
) -> TallyKey:
    """The key under which the result of a check is counted, for an object that was listed in a kind."""
    invocation, resource = invocation_result.invocation, invocation_result.resource
    return TallyKey(
        policy=invocation.policy.name,
        binding=invocation.binding.name,
        param_namespace=invocation.param.namespace if invocation.param else "",
        param_name=invocation.param.name if invocation.param else "",
        check=check_result.check,
        api_version=listed.api_version,
        kind=listed.kind,
        namespace=resource.namespace,
        outcome=name_counted_outcome(check_result),
        requester=check_result.check in bound.requester,
        language=invocation.policy.language,
    )


def make_findings(
    invocation_result: InvocationResult,
    bound: BoundPolicy,
    listed: Kind,
    forms: FindingForms | None = None,
    inputs: Mapping[str, object] | None = None,
    *,
    by_name: bool = False,
    parts: EvidenceParts = EvidenceParts.ALL,
) -> Iterator[Finding]:
    """The findings of an invocation, redacted, about the object in the kind in which it was listed.

    `inputs` are the values that the expressions read, if the caller has them; `by_name` identifies the object by its name. The findings
    have some `parts` of the evidence.
    """
    forms = forms or FindingForms(invocation_result.invocation)
    for check_result in invocation_result.check_results:
        match check_result.outcome:
            case Violated() | WouldChange() | Errored() as outcome:
                evaluated = invocation_result.on(check_result.evaluated)
                yield forms.get_form(check_result.check).make_finding(
                    _change_kind(invocation_result.resource, listed),
                    redact.redact_outcome(outcome, check_result.check, evaluated, bound.compiled),
                    collect_evidence(evaluated, check_result, bound, inputs, parts).within(check_result.place),
                    operation=invocation_result.operation,
                    excepted_by=check_result.excepted_by,
                    by_name=by_name,
                )
            case Passed() | Skipped():
                pass
            case _ as never:
                assert_never(never)


def _change_kind(resource: Resource, kind: Kind) -> Resource:
    return resource if resource.kind is kind else resource._replace(kind=kind)
