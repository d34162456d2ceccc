"""Authorization checks in expressions.

An expression builds a question (`authorizer.group('apps').resource('deployments').check('get')`); a `Decider` in the activation's
`authorizer` answers it. Selectors are passed to the decider unchanged: a selector that does not parse is not an error here.

Rules: `docs/semantics/cel-libraries.md#authorizer`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from msgspec import Struct

from scanner.cel import releases
from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, declare_member
from scanner.cel.functions.named_formats import check_dns1123_label, check_dns1123_subdomain
from scanner.cel.functions.pricing import (
    LIST_COST,
    ONE,
    STRUCT_COST,
    Arguments,
    Cost,
    Operands,
    Outcome,
    limit_cost,
    make_price,
    measure_size,
    take_tenth,
)
from scanner.cel.functions.result_sizes import nothing
from scanner.cel.functions.strings import WHITE_SPACE
from scanner.cel.types.type_system import BOOL, STRING, Type, object_type
from scanner.cel.values.runtime import make_no_overload
from scanner.cel.values.values import Opaque

AUTHORIZER = object_type("kubernetes.authorization.Authorizer")
PATH_CHECK = object_type("kubernetes.authorization.PathCheck")
GROUP_CHECK = object_type("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK = object_type("kubernetes.authorization.ResourceCheck")
DECISION = object_type("kubernetes.authorization.Decision")


class AuthorizerSubject(Struct, frozen=True):
    """The user of an authorization question."""

    username: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """An authorization question about a resource (`version` is `*` then), or about a `path` of the server.

    `field_selector` and `label_selector` are as written, empty for none.
    """

    subject: AuthorizerSubject
    verb: str = ""
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


class AuthorizerAnswer(Struct, frozen=True):
    """The answer of the authorizer. An `error` is not an error of the expression; it accompanies a denial."""

    allowed: bool
    reason: str = ""
    error: str | None = None


class Decider(Protocol):
    """The Protocol of an authorizer."""

    def decide(self, question: Question) -> AuthorizerAnswer:
        """Return the answer; a failure is its `error`."""
        ...


class CachingDecider:
    """A decider that forwards each distinct question to another decider once."""

    __slots__ = ("_answers", "_decider")

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._answers: dict[Question, AuthorizerAnswer] = {}

    def decide(self, question: Question) -> AuthorizerAnswer:
        """Return the first answer to this question; the decider is asked once."""
        answer = self._answers.get(question)
        if answer is None:
            answer = self._answers[question] = self._decider.decide(question)
        return answer


class _Receiver(Opaque):
    """A value that exists for its methods only: `==` rejects it."""

    __slots__ = ()
    EQUAL_AT_ONCE: ClassVar[bool] = True

    def equals(self, other: Opaque) -> bool:  # noqa: ARG002 (the operand does not matter)
        """Raise EvaluationError, as upstream does for every two values of this type."""
        raise make_no_overload()


@dataclass(frozen=True, slots=True, eq=False)
class Authorizer(_Receiver):
    """The value of `authorizer`: builds questions about a subject."""

    TYPE: ClassVar[Type] = AUTHORIZER
    GO_TYPE: ClassVar[str] = "library.authorizerVal"
    decider: Decider
    subject: AuthorizerSubject

    def request_resource(
        self, *, group: str, resource: str, subresource: str = "", namespace: str = "", name: str = ""
    ) -> ResourceCheck:
        """Return the value of `authorizer.requestResource` for a request; a cluster-wide object has no namespace."""
        question = Question(
            self.subject,
            group=group,
            version="*",
            resource=resource,
            subresource=subresource,
            namespace=namespace,
            name=name,
        )
        return ResourceCheck(self.decider, question)


@dataclass(frozen=True, slots=True, eq=False)
class PathCheck(_Receiver):
    """A question about a path that lacks its verb."""

    TYPE: ClassVar[Type] = PATH_CHECK
    GO_TYPE: ClassVar[str] = "library.pathCheckVal"
    decider: Decider
    question: Question


@dataclass(frozen=True, slots=True, eq=False)
class GroupCheck(_Receiver):
    """A question that lacks its resource."""

    TYPE: ClassVar[Type] = GROUP_CHECK
    GO_TYPE: ClassVar[str] = "library.groupCheckVal"
    decider: Decider
    question: Question


@dataclass(frozen=True, slots=True, eq=False)
class ResourceCheck(_Receiver):
    """A question about a resource that lacks its verb."""

    TYPE: ClassVar[Type] = RESOURCE_CHECK
    GO_TYPE: ClassVar[str] = "library.resourceCheckVal"
    decider: Decider
    question: Question

    def narrow(self, **attributes: str) -> ResourceCheck:
        """Return the same question with other attributes, named as the fields of `Question`."""
        return ResourceCheck(self.decider, replace(self.question, **attributes))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class AuthorizerDecision(_Receiver):
    """An answer."""

    TYPE: ClassVar[Type] = DECISION
    GO_TYPE: ClassVar[str] = "library.decisionVal"
    answer: AuthorizerAnswer


def _make_path_check(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip(WHITE_SPACE):
        raise EvaluationError("path must not be empty")
    return PathCheck(authorizer.decider, Question(authorizer.subject, path=path))


def _make_group_check(authorizer: Authorizer, group: str) -> GroupCheck:
    return GroupCheck(authorizer.decider, Question(authorizer.subject, group=group, version="*"))


def _make_service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if check_dns1123_subdomain(name):
        raise EvaluationError("Invalid service account name")
    if check_dns1123_label(namespace):
        raise EvaluationError("Invalid service account namespace")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return Authorizer(authorizer.decider, AuthorizerSubject(f"system:serviceaccount:{namespace}:{name}", groups))


def _make_resource_check(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip(WHITE_SPACE):
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(check.decider, replace(check.question, resource=resource))


def _check(check: PathCheck | ResourceCheck, verb: str) -> AuthorizerDecision:
    return AuthorizerDecision(check.decider.decide(replace(check.question, verb=verb)))


def _is_allowed(decision: AuthorizerDecision) -> bool:
    return decision.answer.allowed


def _declare_narrowing(name: str, attribute: str, id_: str, cost: Cost = ONE) -> Function:
    overload = declare_member(
        id_,
        (RESOURCE_CHECK, STRING),
        RESOURCE_CHECK,
        lambda check, text: check.narrow(**{attribute: text}),
    )
    return Function(name, (overload,), cost=cost, result=nothing)


_CHECK_COST = 350_000
_CHECK = Cost(make_price(lambda _arguments, _result: _CHECK_COST), limit_cost(_CHECK_COST))
_REQUIREMENT_COST = LIST_COST + STRUCT_COST


def _price_selector(arguments: Arguments, _result: Outcome) -> int:
    length = measure_size(arguments[1])
    return LIST_COST + take_tenth(length) + math.ceil(math.ceil(length * 0.5) * float(_REQUIREMENT_COST))


def _bound_selector(operands: Operands) -> float:
    return LIST_COST + operands[1].read + _REQUIREMENT_COST * (operands[1].extent.span / 2 + 1)


_SELECTING = Cost(make_price(_price_selector), _bound_selector)

LIBRARY = Library(
    "kubernetes.authz",
    (
        Function(
            "path",
            (declare_member("authorizer_path", (AUTHORIZER, STRING), PATH_CHECK, _make_path_check),),
            cost=ONE,
            result=nothing,
        ),
        Function(
            "group",
            (declare_member("authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK, _make_group_check),),
            cost=ONE,
            result=nothing,
        ),
        Function(
            "serviceAccount",
            (
                declare_member(
                    "authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER, _make_service_account
                ),
            ),
            cost=ONE,
            result=nothing,
        ),
        Function(
            "resource",
            (declare_member("groupcheck_resource", (GROUP_CHECK, STRING), RESOURCE_CHECK, _make_resource_check),),
            cost=ONE,
            result=nothing,
        ),
        _declare_narrowing("subresource", "subresource", "resourcecheck_subresource"),
        _declare_narrowing("namespace", "namespace", "resourcecheck_namespace"),
        _declare_narrowing("name", "name", "resourcecheck_name"),
        Function(
            "check",
            (
                declare_member("pathcheck_check", (PATH_CHECK, STRING), DECISION, _check),
                declare_member("resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION, _check),
            ),
            cost=_CHECK,
            result=nothing,
        ),
        Function(
            "errored",
            (
                declare_member(
                    "decision_errored", (DECISION,), BOOL, lambda decision: decision.answer.error is not None
                ),
            ),
            cost=ONE,
        ),
        Function(
            "error",
            (declare_member("decision_error", (DECISION,), STRING, lambda decision: decision.answer.error or ""),),
            cost=ONE,
        ),
        Function("allowed", (declare_member("decision_allowed", (DECISION,), BOOL, _is_allowed),), cost=ONE),
        Function(
            "reason",
            (declare_member("decision_reason", (DECISION,), STRING, lambda decision: decision.answer.reason),),
            cost=ONE,
        ),
    ),
)

SELECTORS = Library(
    "kubernetes.authzSelectors",
    tuple(
        _declare_narrowing(name, attribute, id_, _SELECTING)
        for name, attribute, id_ in (
            ("fieldSelector", "field_selector", "authorizer_fieldselector"),
            ("labelSelector", "label_selector", "authorizer_labelselector"),
        )
    ),
    since=releases.SELECTORS.since,
)
