"""The problems of a policy or a binding that depend on no object."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scanner.model.policy import VALIDATING, PolicyKey


class HealthKind(StrEnum):
    """The problems that a policy or binding can have, independent of objects."""

    UNBOUND = "unbound"
    DANGLING_BINDING = "danglingBinding"
    PARAM_KIND = "paramKindNotServed"
    PARAM_MISSING = "paramNotFound"
    NO_KIND = "matchesNoServedKind"
    NO_OBJECT = "matchedNoObject"
    COMPILE = "doesNotCompile"
    NOT_AUDITABLE = "notAuditable"
    TYPE_WARNING = "typeWarning"
    STALE_STATUS = "staleStatus"
    CONDITION = "statusCondition"
    HIDDEN_ERRORS = "hiddenErrors"
    NEAR_LIMIT = "nearCostLimit"
    DUPLICATE = "duplicateBinding"
    SHADOWED = "shadowedBinding"
    NOT_ENFORCED = "notEnforced"
    UNKNOWN_FIELD = "unknownField"
    NOT_SERVED = "versionNotServed"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class Health:
    """A problem of a policy, or of a binding if `binding` is not empty; `language` is the policy's."""

    kind: HealthKind
    policy: str
    binding: str
    detail: str
    language: str = VALIDATING

    @property
    def policy_key(self) -> PolicyKey:
        """Language and name of the policy."""
        return self.language, self.policy
