"""The secret texts of an object, found once for all of its findings, and their removal from other texts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from operator import is_

from scanner.audit.sensitive_fields import MASK, names_secret
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.resource import Resource

# Shorter values are no secrets, and masking them would leave nothing readable.
SHORTEST_SECRET = 3
_SHORTEST_ENV = 6
_POD_SPECS = (
    ("spec",),
    ("template", "spec"),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
)
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def is_secret(resource: Resource | None) -> bool:
    """Return whether an object is a Secret."""
    return resource is not None and (resource.kind.group, resource.kind.kind) == ("", "Secret")


def hidden_values(*resources: Resource | None) -> frozenset[str]:
    """The secret values of objects: those of Secrets, plain and decoded, and those of environment variables.

    Values of less than 3 characters, and of variables of less than 6, are left out.
    """
    return frozenset(_values(resources))


def without(text: str, values: Iterable[str]) -> str:
    """The text with every occurrence of a value masked; where values overlap, the whole stretch is one mask."""
    hidden = sorted(span for value in values for span in _occurrences(value, text))
    if not hidden:
        return text
    shown: list[str] = []
    position = 0
    for start, end in hidden:
        if start >= position:
            shown += [text[position:start], MASK]
        position = max(position, end)
    return "".join([*shown, text[position:]])


def _occurrences(value: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(value)
    while start >= 0:
        yield start, start + len(value)
        start = text.find(value, start + 1)


def _values(resources: Iterable[Resource | None]) -> Iterator[str]:
    for resource in resources:
        if resource is None:
            continue
        if is_secret(resource):
            yield from _secret_values(resource)
        else:
            yield from _env_values(resource.body)


def _secret_values(resource: Resource) -> Iterator[str]:
    fields = {**resource.body, **resource.withheld}
    encoded = [as_text(value) for value in as_object(fields.get("data")).values()]
    plain = [as_text(value) for value in as_object(fields.get("stringData")).values()]
    for value in (*encoded, *map(_decoded, encoded), *plain):
        if len(value) >= SHORTEST_SECRET:
            yield value


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _env_values(body: Json) -> Iterator[str]:
    for variable in _env(body):
        value = as_text(dig(variable, "value"))
        if len(value) >= _SHORTEST_ENV:
            yield value


def secret_variables(body: JsonObject) -> list[str]:
    """The values of environment variables with names like those of passwords and tokens.

    Runs for every object, so it is fast.
    """
    return [
        value
        for containers in _container_lists(body)
        for container in as_list(containers)
        if (env := as_object(container).get("env"))
        for variable in as_list(env)
        if (type(variable) is dict or isinstance(variable, Mapping))  # the first is faster, and almost always true
        if isinstance(name := variable.get("name"), str) and names_secret(name)
        if len(value := as_text(variable.get("value"))) >= _SHORTEST_ENV
    ]


def _container_lists(body: JsonObject) -> list[Json]:
    """The lists of containers of an object, in every place that may have a pod template."""
    outer = as_object(body.get("spec"))
    specs = [outer]
    if "template" in body:
        specs.append(as_object(dig(body, "template", "spec")))
    if "template" in outer:
        specs.append(as_object(dig(outer, "template", "spec")))
    if "jobTemplate" in outer:
        specs.append(as_object(dig(outer, "jobTemplate", "spec", "template", "spec")))
    return [spec[name] for spec in specs for name in _CONTAINERS if name in spec]


def _env(body: Json) -> Iterator[Json]:
    for path in _POD_SPECS:
        if not (spec := as_object(dig(body, *path))):
            continue
        for containers in _CONTAINERS:
            for container in as_list(spec.get(containers)):
                yield from as_list(as_object(container).get("env"))


class Hidden:
    """The secret values of the latest object and param."""

    def __init__(self) -> None:
        """Begin with none."""
        self._resource: Resource | None = None
        self._params: tuple[Resource | None, ...] = ()
        self._values: frozenset[str] = frozenset()

    def of(self, resource: Resource | None, *params: Resource | None) -> frozenset[str]:
        """The hidden values of some objects (see `hidden_values`), kept for the latest call."""
        is_latest = (
            resource is self._resource and len(params) == len(self._params) and all(map(is_, params, self._params))
        )
        if not is_latest:
            self._values = hidden_values(resource, *params)
            self._resource, self._params = resource, params
        return self._values


HIDDEN = Hidden()
