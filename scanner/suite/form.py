"""A suite and its expectations, with the contents of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scanner.model.json import Json, JsonObject
from scanner.model.policy import Operation
from scanner.model.resource import UserInfo


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected result of a policy for some objects.

    `resources` are names or `namespace/name`s of objects of any kind; none means all objects. `result` is pass, fail, warn, error
    or skip, `message` the expected message of a failure. `operation` is the simulated request: an UPDATE changes nothing, a DELETE
    (for Kyverno's policies alone) has the old object only.
    """

    policy: str
    result: str
    resources: tuple[str, ...] = ()
    message: str = ""
    operation: Operation = "CREATE"


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite. `policies` are policies and bindings of any language, `given` the objects that expressions can read.

    `images` are image data by reference, `answers` HTTP responses by method and URL (an empty method stands for all), `entries` the
    global context by name. With `as_command_line` the suite is evaluated as the Kyverno CLI does.
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
