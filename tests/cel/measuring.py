"""An object to measure expressions on, and all other inputs of expressions."""

from __future__ import annotations

from typing import Any

from scanner.cel import (
    AUTHORIZATION,
    Authorizer,
    AuthorizerAnswer,
    AuthorizerSubject,
    Environment,
    Measurement,
    Question,
    compile,
)

OBJECT: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app": "web", "tier": "front"}},
    "spec": {
        "replicas": 3,
        "ratio": 1.5,
        "paused": False,
        "nothing": None,
        "index": 1,
        "key": "app",
        "text": "abcdefghijklmnopqrstuvwxyz",
        "accents": "éàü😀",
        "numbers": [3, 1, 2],
        "names": ["b", "a", "abcdefghijkl"],
        "mixed": [1, "a", None, 2.5, True, [1], {"a": 1}],
        "empty": [],
        "nested": [[1, 2], [], [3, [4]]],
        "containers": [{"name": "a", "image": "registry.example.com/a:1", "ports": [{"port": 80}]}, {"name": "b"}],
    },
}


class Refusing:
    """A decider that allows nothing."""

    def decide(self, question: Question) -> AuthorizerAnswer:
        del question
        return AuthorizerAnswer(allowed=False)


_AUTHORIZER = Authorizer(Refusing(), AuthorizerSubject("bob", ("dev",)))
ACTIVATION: dict[str, object] = {
    "object": OBJECT,
    "oldObject": None,
    "request": {"operation": "CREATE", "userInfo": {"username": "bob"}},
    "namespaceObject": {"metadata": {"name": "team-1"}},
    "authorizer": _AUTHORIZER,
    "authorizer.requestResource": _AUTHORIZER.request_resource(group="apps", resource="things", namespace="team-1"),
}
ENVIRONMENT = Environment().extend(AUTHORIZATION)


def measured(text: str, **activation: object) -> Measurement:
    """Return the outcome and the cost of an expression."""
    return compile(text, ENVIRONMENT).measure(ACTIVATION | activation)


def cost_of(text: str) -> int:
    """Return the cost of an expression on the object, in cost units."""
    return measured(text).cost
