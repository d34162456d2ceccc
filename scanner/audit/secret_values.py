"""The secret texts of an object, found once for all of its findings, and their removal from other texts."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from scanner.audit.sensitive_fields import FIELDS, MAPPINGS, MASK, SensitiveFields, Trail, names_secret
from scanner.cel.memo import ResultCache
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.resource import Resource

# Shorter values are no secrets, and masking them would leave nothing readable.
SHORTEST_SECRET = 3
# Shorter values of environment variables without the name of a secret are settings.
SHORTEST_ENV = 6
# The most characters of Base64 for a character of text, which has four bytes at most, and for the end of a text.
_ENCODED_CHARACTER = 6
_PADDED = 4
CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_METADATA: Trail = ("metadata",)
_ANNOTATIONS: Trail = ("metadata", "annotations")
_SHOWN: Mapping[Trail, frozenset[str]] = {
    (): frozenset({"apiVersion", "immutable", "kind", "metadata", "type"}),
    _METADATA: frozenset({
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "uid",
    }),
}  # fmt: skip
"""The fields of a Secret that are shown. All others are sensitive, such as those that a later release adds."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .,/_-]{0,62}\Z")


def is_secret(resource: Resource | None) -> bool:
    """Return whether an object is a Secret."""
    return resource is not None and (resource.kind.group, resource.kind.kind) == ("", "Secret")


class FieldsOfSecret(SensitiveFields):
    """The sensitive fields and texts of a Secret: all but those of `_SHOWN`, and each text that contains a part of its data.

    Tools keep copies of the object in annotations, in forms and under names of their own, and with data that it had earlier. So an
    annotation is shown only if it is a short word or sentence.
    """

    __slots__ = ("_hidden",)

    def __init__(self, secret: Resource) -> None:
        """Take a Secret."""
        self._hidden = list_hidden_values(secret)

    def hides(self, container: object, key: object, trail: Trail) -> bool:
        """Return whether the value under a key of a map in the Secret is sensitive as a whole."""
        if trail == _ANNOTATIONS and isinstance(container, MAPPINGS):
            return not self.shows_annotation(str(key), container.get(key))
        shown = _SHOWN.get(trail)
        return shown is not None and key not in shown

    def shows_annotation(self, name: str, value: object) -> bool:
        """Return whether the value of an annotation may be shown."""
        if names_secret(name) or not isinstance(value, str) or _PLAIN.match(value) is None:
            return False
        return not self.holds_secret(value) and not self.holds_secret(_decode(value))

    def holds_secret(self, text: str) -> bool:
        """Return whether a text contains a part of the Secret's data, plain or encoded, or names another secret."""
        return any(value in text for value in self._hidden) or super().holds_secret(text)


def get_fields(resource: Resource | None) -> SensitiveFields:
    """The sensitive fields and texts of an object."""
    return FieldsOfSecret(resource) if resource is not None and is_secret(resource) else FIELDS


def list_hidden_values(*resources: Resource | None) -> frozenset[str]:
    """The secret values of objects: those of Secrets, plain and decoded, and those of environment variables.

    Values of less than 3 characters are left out, and values of less than 6 of variables without the name of a secret.
    """
    values: list[str] = []
    for resource in resources:
        if resource is not None:
            values += _list_secret_values(resource) if is_secret(resource) else _list_env_values(resource.body)
    return frozenset(values)


def mask_values(text: str, values: Iterable[str]) -> str:
    """The text with every occurrence of a value masked; where values overlap, the whole stretch is one mask."""
    occurring = [value for value in values if value in text]
    if not occurring:
        return text
    spans = sorted(span for value in occurring for span in _find_occurrences(value, text))
    parts: list[str] = []
    position = 0
    for start, end in spans:
        if start >= position:
            parts += [text[position:start], MASK]
        position = max(position, end)
    return "".join([*parts, text[position:]])


def _find_occurrences(value: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(value)
    while start >= 0:
        yield start, start + len(value)
        start = text.find(value, start + 1)


def _list_secret_values(resource: Resource, longest: float = math.inf) -> Iterator[str]:
    """The values of a Secret that have at most `longest` characters."""
    fields = {**resource.body, **resource.withheld}
    encoded = [as_text(value) for value in as_object(fields.get("data")).values()]
    plain = [as_text(value) for value in as_object(fields.get("stringData")).values()]
    most = longest * _ENCODED_CHARACTER + _PADDED
    decoded = (_decode(value) for value in encoded if len(value) <= most)
    for value in (*encoded, *decoded, *plain):
        if SHORTEST_SECRET <= len(value) <= longest:
            yield value


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _list_env_values(body: JsonObject) -> list[str]:
    lists = _LATEST_ENV.get(body)
    values = [value for variables in lists for value in _list_long_values(variables)]
    named_variables = [variable for variables in lists for variable in _select_secret_names(variables)]
    return values + _list_long_values(named_variables, SHORTEST_SECRET) if named_variables else values


def _list_long_values(variables: Iterable[Any], shortest: int = SHORTEST_ENV) -> list[str]:
    try:
        values = [variable.get("value") for variable in variables]
    except AttributeError:  # a variable is no object
        values = [variable.get("value") for variable in variables if isinstance(variable, MAPPINGS)]
    return [value for value in values if isinstance(value, str) and len(value) >= shortest]


def list_short_values(resource: Resource, longest: int) -> list[str]:
    """The values of a Secret, plain and encoded, that a text of at most `longest` characters can contain."""
    return list(_list_secret_values(resource, longest))


def list_secret_variables(body: JsonObject) -> list[str]:
    """The values of environment variables with names like those of passwords and tokens. Runs for every object, so it is fast."""
    named_variables: list[Json] = []
    for variables in _LATEST_ENV.get(body):
        named_variables += _select_secret_names(variables)
    return _list_long_values(named_variables) if named_variables else []


def _select_secret_names(variables: Iterable[Any]) -> list[Json]:
    try:
        return [variable for variable in variables if _SECRET_NAMES[variable["name"]]]
    except (KeyError, TypeError):  # a variable without a name, or whose name is no text
        return [variable for variable in variables if _SECRET_NAMES[as_text(dig(variable, "name"))]]


_SECRET_NAMES: Final = ResultCache(names_secret)


def _list_env(body: JsonObject) -> list[Sequence[Json]]:
    """The lists of environment variables of all containers, in every place that may have the spec of a pod, without empty lists."""
    lists: list[Sequence[Json]] = []
    if "spec" in body:
        outer = as_object(body["spec"])
        _add_env(outer, lists)
        if "template" in outer:
            _add_env(_get_template_spec(outer), lists)
        if "jobTemplate" in outer:
            _add_env(_get_template_spec(as_object(dig(outer, "jobTemplate", "spec"))), lists)
    if "template" in body:
        _add_env(_get_template_spec(body), lists)
    return lists


def _get_template_spec(parent: JsonObject) -> JsonObject:
    return as_object(as_object(parent.get("template")).get("spec"))


def _add_env(spec: JsonObject, lists: list[Sequence[Json]]) -> None:
    """Add the lists of a value that may be the spec of a pod."""
    for field in CONTAINERS:
        if field in spec:
            lists += [
                as_list(variables)
                for container in as_list(spec[field])
                if (variables := as_object(container).get("env"))
            ]


class _LatestEnv:
    """The lists of environment variables of the latest object: its labels are redacted with some of them, its findings with all."""

    __slots__ = ("_body", "_lists")

    def __init__(self) -> None:
        self._body: JsonObject | None = None
        self._lists: list[Sequence[Json]] = []

    def get(self, body: JsonObject) -> list[Sequence[Json]]:
        if body is not self._body:
            self._lists, self._body = _list_env(body), body
        return self._lists


_LATEST_ENV: Final = _LatestEnv()


class HiddenValues:
    """The secret values of the latest object, its param, and the object that it replaces."""

    __slots__ = ("_old", "_param", "_resource", "_values")

    def __init__(self) -> None:
        """Begin with none."""
        self._resource: Resource | None = None
        self._param: Resource | None = None
        self._old: Resource | None = None
        self._values: frozenset[str] = frozenset()

    def get(self, resource: Resource, param: Resource | None, old: Resource | None = None) -> frozenset[str]:
        """The hidden values of some objects (see `list_hidden_values`), kept for the latest call."""
        if resource is not self._resource or param is not self._param or old is not self._old:
            self._values = list_hidden_values(resource, param, old)
            self._resource, self._param, self._old = resource, param, old
        return self._values


HIDDEN = HiddenValues()
