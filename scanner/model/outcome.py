"""What can be said about one object by one check, and what could not be seen at all.

An *outcome* is what kube-apiserver itself would decide; a *gap* is what only Assay could not look at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias, assert_never

from scanner.model.evidence import NO_EVIDENCE, Evidence
from scanner.model.json import Json
from scanner.model.policy import VALIDATING, Action, Operation, PolicyKey


class CheckKind(StrEnum):
    """What of a policy speaks. `conditions` and `configuration` speak for the whole invocation."""

    VALIDATION = "validation"
    AUDIT_ANNOTATION = "auditAnnotation"
    MUTATION = "mutation"
    CONDITIONS = "matchConditions"
    CONFIGURATION = "configuration"


@dataclass(frozen=True, slots=True, order=True)
class Check:
    """One question a policy asks: validation i, audit annotation i, mutation i, its match conditions, its configuration."""

    kind: CheckKind
    index: int = 0
    expression: str = ""


class SkipReason(StrEnum):
    """Why a check of a matched object was not decided. The list is closed."""

    CONDITION_FALSE = "conditionFalse"
    NOT_AUDITABLE = "notAuditable"
    EXCEPTION = "exception"
    REDACTED = "redacted"
    NOT_REACHED = "notReached"


@dataclass(frozen=True, slots=True)
class Passed:
    """Admission would have no objection. `annotation` is the published value of an audit annotation, if any."""

    annotation: str = ""


@dataclass(frozen=True, slots=True)
class Violated:
    """The validation is not true. `reason` and `code` are those of the API's denial."""

    message: str
    reason: str = "Invalid"
    code: int = 422


@dataclass(frozen=True, slots=True)
class Change:
    """One operation of RFC 6902: `op` is add, remove or replace; `value` is null for remove.

    `was` is what stood there before, for readers: it is no part of the operation.
    """

    op: Literal["add", "remove", "replace"]
    path: str
    value: Json = None
    was: Json = field(default=None, compare=False)

    def json(self) -> dict[str, Json]:
        """The operation as RFC 6902 writes it."""
        return {"op": self.op, "path": self.path, **({} if self.op == "remove" else {"value": self.value})}

    def __str__(self) -> str:
        """The operation as a line of a diff."""
        match self.op:
            case "add":
                return f"+ {self.path}: {_compact(self.value)}"
            case "remove":
                return f"- {self.path}: {_compact(self.was)}"
            case "replace":
                return f"~ {self.path}: {_compact(self.was)} → {_compact(self.value)}"
            case _ as never:
                assert_never(never)


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)


_AGAIN = "! applied a second time, the policy would change the object once more"
_OTHERS = "! other policies or bindings act on this object too"
_ORDER = ", and the result depends on their order, which is random on a server"
_NAMES = "; in the order of their names"


@dataclass(frozen=True, slots=True)
class WouldChange:
    """The mutation would change the object, were it written today: drift, not a violation.

    `patch` is minimal and applies to the object as the mutations before this one leave it. `converges` tells whether the
    policy, applied a second time, would change nothing more. Where other policies or bindings change what comes of it,
    `together` is what all of them do to the object in the order of their names, unless they leave it as it is (`undone`), and
    `order_matters` tells whether another order ends elsewhere. `refused` is the text with which all of them, or some order of
    them, refuse the object.
    """

    patch: tuple[Change, ...]
    converges: bool = True
    together: tuple[Change, ...] = ()
    order_matters: bool = False
    undone: bool = False
    refused: str = ""

    @property
    def message(self) -> str:
        """The patch as a diff, a line for each operation, and what else there is to know."""
        lines = [*map(str, self.patch)]
        if not self.converges:
            lines.append(_AGAIN)
        return "\n".join([*lines, *self._with_others()])

    def _with_others(self) -> Iterator[str]:
        """What all policies make of the object, where that is something else."""
        others = f"{_OTHERS}{_ORDER if self.order_matters else ''}"
        if self.together:
            yield f"{others}{_NAMES}, all of them would make of it:"
            yield from (f"  {change}" for change in self.together)
        elif self.undone:
            yield f"{others}{_NAMES}, all of them would leave it as it is"
        if self.refused and (self.together or self.undone):
            yield f"! in another order, they refuse the object: {self.refused}"
        elif self.refused:
            yield f"{others}{_NAMES}, they refuse the object: {self.refused}"


@dataclass(frozen=True, slots=True)
class Errored:
    """Evaluation went wrong; `would_deny` tells whether failurePolicy makes admission refuse the object.

    `always` marks errors that deny whatever the binding's actions are.
    """

    message: str
    would_deny: bool
    always: bool = False
    reason: str = "Invalid"
    code: int = 422


@dataclass(frozen=True, slots=True)
class Skipped:
    """The check was not decided, for one of a closed list of reasons. `detail` names the condition or the cause."""

    reason: SkipReason
    detail: str = ""


Outcome: TypeAlias = Passed | Violated | WouldChange | Errored | Skipped


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one check. An invocation that was matched yields exactly one per check.

    `excepted_by` names the policy exceptions that keep this outcome from having any effect, after what keeps requests for the
    object from the policy.
    """

    check: Check
    outcome: Outcome
    excepted_by: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not pass, as it is stored and reported: it stands alone, without the object.

    `fingerprint` is 64 hex digits, stable across scans. `object_*` identify the object in the version that was
    evaluated; `actions` are the binding's; `denies` says whether admission would refuse the object; `language` is that of
    the policy, of which another language may have one of the same name; `evidence` are the values that decided.
    """

    fingerprint: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    check: Check
    outcome: Violated | WouldChange | Errored
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    operation: Operation
    actions: tuple[Action, ...]
    denies: bool
    excepted_by: str = ""
    language: str = VALIDATING
    evidence: Evidence = NO_EVIDENCE

    @property
    def policy_key(self) -> PolicyKey:
        """Whose finding it is."""
        return self.language, self.policy


class GapKind(StrEnum):
    """What Assay could not look at."""

    DISCOVERY = "discovery"
    LIST = "list"
    DOCUMENT = "document"
    OBJECT = "object"
    CONVERSION = "conversion"
    EVALUATION = "evaluation"


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """What was not seen, where, and why. `where` is a file and document, a kind or an object."""

    kind: GapKind
    where: str
    why: str
