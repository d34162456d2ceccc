"""Our own compiler's replies to the oracle's requests, in the oracle's form."""

from __future__ import annotations

import base64
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, compile_policy
from scanner.admission.cost_budget import EXHAUSTED, RUNTIME, Variables
from scanner.admission.request import Request, make_request_map
from scanner.cel.functions.authorizer import Authorizer, AuthorizerAnswer, AuthorizerSubject, Question
from scanner.cel.functions.quantity import Quantity
from scanner.cel.types.type_system import Type
from scanner.cel.values.times import print_timestamp
from scanner.cel.values.values import Duration, KeyedMap, Message, Opaque, Optional, Struct, Timestamp, UInt
from scanner.model.resource import Kind, UserInfo, resource_of
from scanner.policies.manifest import read_policy
from tests.oracle.subjects import ATTRIBUTES, NAMESPACE

_SLOWEST_SECONDS = 20
_UNKNOWN_COST = -1


class Refusing:
    """A decider that allows nothing."""

    def decide(self, question: Question) -> AuthorizerAnswer:
        return AuthorizerAnswer(allowed=False)


def reply(expression: str, variables: tuple[tuple[str, str], ...], objects: list[Any]) -> dict[str, Any]:
    """Return our reply to a request."""
    try:
        with limited():
            compiled, program = compiled_with(expression, variables)
            outcomes = [_outcome(program, compiled, activation_of(document)) for document in objects]
    except cel.CompileError as error:
        return {"refused": error.detail}
    except Exception as error:  # noqa: BLE001 (any crash is a finding)
        return {"panic": repr(error)}
    return {"resultType": program.result_type.full_name(), "outcomes": outcomes}


@contextmanager
def limited() -> Iterator[None]:
    """Raise TimeoutError in a block that takes too long."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"took more than {_SLOWEST_SECONDS} s")

    # Time of the processor: other programs on the machine do not count.
    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, _SLOWEST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def compiled_with(expression: str, variables: tuple[tuple[str, str], ...]) -> tuple[CompiledPolicy, cel.Program]:
    """Return a policy with these variables, and an expression that may read them. Raises CompileError."""
    entries = [{"name": name, "expression": text} for name, text in variables]
    policy = compile_policy(read_policy({"spec": {"variables": entries}}, language="test"))
    environment = cel.Environment()
    for name, variable in policy.variables.items():
        result = variable.program.result_type if variable.program else cel.DYN
        environment = environment.add_variable(name, result)
    return policy, cel.compile(expression, environment.extend(cel.AUTHORIZATION))


def activation_of(document: Any) -> dict[str, object]:
    """Return the inputs of an expression for an object."""
    kind = Kind("apps", "v1", "Thing", "things", namespaced=True)
    user = ATTRIBUTES["user"]
    info = UserInfo(user["username"], uid=user["uid"], groups=tuple(user["groups"]))
    resource = resource_of(kind, document or {"metadata": {"name": "web", "namespace": "team-1"}})
    request = Request("CREATE", kind, kind, resource, "team-1", NAMESPACE, info)
    authorizer = Authorizer(Refusing(), AuthorizerSubject(info.username, info.groups, info.uid))
    named = {"namespace": "team-1", "name": "web"}
    return {
        "object": document,
        "oldObject": None,
        "request": make_request_map(request),
        "namespaceObject": {key: NAMESPACE[key] for key in ("metadata", "spec", "status")},
        "authorizer": authorizer,
        "authorizer.requestResource": authorizer.request_resource(group="apps", resource="things", **named),
    }


def _outcome(program: cel.Program, policy: CompiledPolicy, activation: Mapping[str, object]) -> dict[str, Any]:
    metered = policy.make_activation(activation, metered=True)
    measured = program.measure(metered)
    variables = metered["variables"]
    cost = measured.cost + (variables.take_unpaid_cost() if isinstance(variables, Variables) else 0)
    if cost > RUNTIME:
        return {"error": EXHAUSTED, "cost": _UNKNOWN_COST}
    if isinstance(measured.outcome, cel.EvaluationError):
        return {"error": str(measured.outcome), "cost": cost}
    return {"value": tagged(measured.outcome), "cost": cost}


def tagged(value: cel.Value) -> dict[str, Any]:
    """Return a value with its type, as the oracle writes it."""
    if isinstance(value, cel.EvaluationError):
        return {"type": "error", "plain": str(value)}
    return {"type": cel.type_name(value), "plain": _plain(value)}


def _scalar(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    return int(value) if type(value) in (int, UInt) else value


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | str() | UInt() | int() | float():
            return _scalar(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Timestamp():
            return print_timestamp(value)
        case Duration():
            return value.nanoseconds
        case list():
            return [tagged(item) for item in value]
        case dict() | KeyedMap():
            return [[tagged(key), tagged(item)] for key, item in value.items()]
        case Optional():
            return [tagged(value.value)] if value.present else []
        case Type():
            return value.name
        case Quantity():
            return f"{value.unscaled}e{value.exponent}"
        case Struct():
            return "{" + " ".join(str((value.find(name) or ("",))[0]) for name in value.absent or value.fields) + "}"
        case Opaque() | Message():
            return str(value) if type(value).__str__ is not Opaque.__str__ else ""
    raise TypeError(type(value).__name__)
