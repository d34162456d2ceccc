"""What a suite says, once its files have been read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scanner.model.json import Json, JsonObject
from scanner.model.policy import Operation
from scanner.model.resource import UserInfo


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of a policy about some objects.

    Objects are named `name` or `namespace/name`, whatever their kind is; no name means all of them. `result` is pass, fail, warn,
    error or skip, `message` a text that some failure must have. `operation` is the request that is simulated: an UPDATE changes
    nothing, a DELETE (of Kyverno's policies alone) has no object but the old one.
    """

    policy: str
    result: str
    resources: tuple[str, ...] = ()
    message: str = ""
    operation: Operation = "CREATE"


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite. `policies` are policies and bindings of any language, `given` what expressions can read of the cluster.

    `images` are what registries say, by reference, `answers` what servers do, by method and URL (without a method, to any), `entries`
    what is in the global context, by name. With `as_command_line` the suite is judged as Kyverno's command line does it.
    """

    name: str
    policies: tuple[JsonObject, ...]
    resources: tuple[JsonObject, ...]
    expectations: tuple[Expectation, ...]
    exceptions: tuple[JsonObject, ...] = ()
    params: tuple[JsonObject, ...] = ()
    namespaces: tuple[JsonObject, ...] = ()
    given: tuple[JsonObject, ...] = ()
    images: Mapping[str, JsonObject] = field(default_factory=dict)
    answers: Mapping[tuple[str, str], JsonObject] = field(default_factory=dict)
    entries: Mapping[str, Json] = field(default_factory=dict)
    user: UserInfo = field(default_factory=UserInfo)
    as_command_line: bool = False
