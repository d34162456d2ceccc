"""Outcomes, findings and gaps.

An *outcome* is a decision of one check about one object, as kube-apiserver would make it. A *gap* is an item that Assay could not
list, read or evaluate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias, assert_never

from scanner.model.json import Json
from scanner.model.policy import VALIDATING, Action, Operation, PolicyKey
from scanner.model.resource import Resource

# Evidence: the values that decided the outcome of a check, without the object.

FieldPlace: TypeAlias = "tuple[str | int, ...]"
"""The place of a field: the name of its document (`object`, `params` or `namespaceObject`), then keys and indexes."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A part of an expression, or a field, that decided the outcome, and its value.

    `value` is text in CEL's notation, cut and redacted, or the text of an error if `erred`. `path` is the place of the value in
    the object (`spec.containers[2].image`), or below the name of another document (`params.data.limit`); it is empty for a
    computed value. `variable` names the policy variable whose expression has the part. In a language without expressions, the
    expression is the path of a field, and the value of a field that is not set is `not set`.
    """

    expression: str
    value: str
    path: str = ""
    variable: str = ""
    erred: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """The reasons in the order of evaluation, the number of those left out, and an excerpt of the object.

    `excerpt` is the path and the fields of the map around the first deciding field, redacted, at most 512 bytes; empty where
    nothing stands beside that field.
    """

    reasons: tuple[Reason, ...] = ()
    left_out: int = 0
    excerpt: str = ""

    def __bool__(self) -> bool:
        """Return whether there is a reason."""
        return bool(self.reasons)

    def within(self, place: str) -> Evidence:
        """The evidence of a part of an object, whose spec and metadata are at a place of the object."""
        if not place:
            return self
        moved = (replace(reason, path=_OF_OBJECT.sub(rf"\1{place}.\2", reason.path)) for reason in self.reasons)
        return replace(self, reasons=tuple(moved))


_OF_OBJECT: Final = re.compile(r"\A((?:request\.object\.)?)((?:spec|metadata)(?:[.\[]|\Z))")
"""The beginning of a path in the object."""
NO_EVIDENCE = Evidence()


class CheckKind(StrEnum):
    """The part of a policy that a check is. `conditions` and `configuration` concern the whole invocation."""

    VALIDATION = "validation"
    AUDIT_ANNOTATION = "auditAnnotation"
    MUTATION = "mutation"
    CONDITIONS = "matchConditions"
    CONFIGURATION = "configuration"


@dataclass(frozen=True, slots=True, order=True)
class Check:
    """A part of a policy with an outcome: validation i, audit annotation i, mutation i, match conditions, configuration."""

    kind: CheckKind
    index: int = 0
    expression: str = ""

    def __hash__(self) -> int:
        """Without the kind, whose hash is slow: checks are keys of the counts of every object."""
        return hash((self.index, self.expression))


class SkipReason(StrEnum):
    """The reasons why a check of a matched object was not evaluated. The list is closed."""

    CONDITION_FALSE = "conditionFalse"
    NOT_AUDITABLE = "notAuditable"
    EXCEPTION = "exception"
    REDACTED = "redacted"
    NOT_REACHED = "notReached"


@dataclass(frozen=True, slots=True)
class Passed:
    """The object passes the check. `annotation` is the published value of an audit annotation, if any."""

    annotation: str = ""


@dataclass(frozen=True, slots=True)
class Violated:
    """The validation is false. `reason` and `code` are those of the API's denial."""

    message: str
    reason: str = "Invalid"
    code: int = 422


@dataclass(frozen=True, slots=True)
class Change:
    """An operation of RFC 6902: `op` is add, remove or replace; `value` is null for remove.

    `was` is the previous value, for readers: it is no part of the operation.
    """

    op: Literal["add", "remove", "replace"]
    path: str
    value: Json = None
    was: Json = field(default=None, compare=False)

    def to_json(self) -> dict[str, Json]:
        """The operation in the form of RFC 6902."""
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


_AGAIN = "! not idempotent: applying the policy again changes the object again"
_OTHERS = "! other policies or bindings also change this object"
_ORDER = ", and the result depends on their order, which an API server does not define"
_BY_NAME = "; applied in the order of their names"


@dataclass(frozen=True, slots=True)
class WouldChange:
    """The mutation would change the object if it were written now: drift, not a violation.

    `patch` is minimal and applies to the object after the mutations before this one. `converges` is false if the policy, applied
    again, would change the object again. If other policies or bindings also change the object, `together` has the changes of all
    of them in the order of their names, or `undone` is true if these change nothing, and `order_matters` is true if another order
    has another result. `refused` is the message with which all of them, in some order, deny the object.
    """

    patch: tuple[Change, ...]
    converges: bool = True
    together: tuple[Change, ...] = ()
    order_matters: bool = False
    undone: bool = False
    refused: str = ""

    @property
    def message(self) -> str:
        """The patch as a diff with a line for each operation, and lines about the other policies."""
        lines = [*map(str, self.patch)]
        if not self.converges:
            lines.append(_AGAIN)
        return "\n".join([*lines, *self._describe_others()])

    def _describe_others(self) -> Iterator[str]:
        """The result of all policies together, if it differs."""
        others = f"{_OTHERS}{_ORDER if self.order_matters else ''}"
        if self.together:
            yield f"{others}{_BY_NAME}, all of them together would make these changes:"
            yield from (f"  {change}" for change in self.together)
        elif self.undone:
            yield f"{others}{_BY_NAME}, all of them together would change nothing"
        if self.refused and (self.together or self.undone):
            yield f"! applied in another order, they deny the object: {self.refused}"
        elif self.refused:
            yield f"{others}{_BY_NAME}, they deny the object: {self.refused}"


@dataclass(frozen=True, slots=True)
class Errored:
    """The evaluation failed; `would_deny` is true if failurePolicy makes admission deny the object.

    `always` marks errors that deny with any actions of the binding.
    """

    message: str
    would_deny: bool
    always: bool = False
    reason: str = "Invalid"
    code: int = 422


@dataclass(frozen=True, slots=True)
class Skipped:
    """The check was not evaluated. `detail` names the condition or the cause."""

    reason: SkipReason
    detail: str = ""


Outcome: TypeAlias = Passed | Violated | WouldChange | Errored | Skipped


class CheckResult(NamedTuple):
    """The outcome of one check. A matched invocation has exactly one for each check.

    A tuple, because every finding has one: a frozen dataclass takes several times as long.

    `excepted_by` names the filters and policy exceptions that exempt the object, so that the outcome has no effect. `fields` are the
    fields that decided, the most telling first, in a language without expressions; else evidence explains the expressions.
    `evaluated` is the object that the expressions read, if it is not that of the request but made of the part at `place` in it.
    """

    check: Check
    outcome: Outcome
    excepted_by: str = ""
    fields: tuple[FieldPlace, ...] = ()
    evaluated: Resource | None = None
    place: str = ""


class Finding(NamedTuple):
    """A violation, an error or drift, as it is stored and reported, without the object.

    A tuple, because clusters have many: a frozen dataclass of so many fields takes several times as long.

    `fingerprint` is 64 hex digits, stable across scans. `api_version` to `resource_version` identify the object in the
    evaluated version; `actions` are the binding's; `denies` is true if admission would deny the object; `language` is the
    policy's, because policies of two languages may have one name; `evidence` has the values that decided.
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
        """Language and name of the policy."""
        return self.language, self.policy

    @property
    def severity_key(self) -> tuple[PolicyKey, str]:
        """The policy and the expression of the check, which have the severity."""
        return self.policy_key, self.check.expression


class GapKind(StrEnum):
    """The item that Assay could not list, read or evaluate."""

    DISCOVERY = "discovery"
    LIST = "list"
    DOCUMENT = "document"
    OBJECT = "object"
    CONVERSION = "conversion"
    EVALUATION = "evaluation"


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """An item that Assay could not list, read or evaluate. `where` is a file and document, a kind, a policy or an object."""

    kind: GapKind
    where: str
    why: str
