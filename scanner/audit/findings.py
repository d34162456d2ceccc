"""The identity of a finding across scans, and its effect on admission."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import assert_never

from scanner.model.outcome import (
    Check,
    CheckKind,
    Errored,
    Violated,
    WouldChange,
)
from scanner.model.policy import Invocation
from scanner.model.resource import Resource


def fingerprint(invocation: Invocation, check: Check, resource: Resource, *, by_name: bool) -> str:
    """The identity of a finding across scans: SHA-256 of policy, binding, param, check and object, as 64 hex digits.

    The object is its UID; with `by_name`, and without a UID, it is group, kind, namespace and name.
    """
    policy, binding, param = invocation.policy, invocation.binding, invocation.param
    uid = "" if by_name else resource.uid
    identity = uid or f"{resource.kind.group}/{resource.kind.kind}/{resource.namespace}/{resource.name}"
    place = f"{param.namespace}/{param.name}" if param else ""
    ordinal = _ordinal(invocation, check) if check.index else 0
    digest = _identity_state(
        policy.language, policy.name, binding.name, place, check.kind, check.expression, ordinal
    ).copy()
    digest.update(identity.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@lru_cache(maxsize=4096)
def _identity_state(
    language: str, policy: str, binding: str, param: str, kind: CheckKind, expression: str, ordinal: int
) -> hashlib._Hash:
    """The SHA-256 state over policy, binding, param and check; the caller adds the identity of the object."""
    parts = (language, policy, binding, param, kind.value, expression.strip(), str(ordinal), "")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))


def _ordinal(invocation: Invocation, check: Check) -> int:
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
