"""Withholds the secrets of an object by searches of its text: `withholding` walks through every value, which takes twenty times as long.

An object is simple if its only secrets are values of environment variables and the copy of `kubectl apply`. The searches find at least
all that `withholding` finds: an object about which they are in doubt is not simple.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import orjson
import re2

from scanner.audit.secret_values import CONTAINERS, SHORTEST_ENV, SHORTEST_SECRET
from scanner.audit.sensitive_fields import MASK, NAMES_OF_SECRETS, holds_secret, may_be_sensitive, names_secret
from scanner.model.json import Json, JsonObject, as_object
from scanner.model.resource import LAST_APPLIED
from scanner.model.withheld import Place

_TEMPLATES: Final = (
    (),
    ("spec",),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("template", "spec"),
)
"""The places of the specs of pods in objects."""
_DOUBTFUL: Final = re2.compile(
    (
        r"://[^\"\\]*(?:\\.[^\"\\]*)*@"
        r"|Bearer|eyJ|-----BEGIN |stringData|\"kind\":\"Secret\""
        rf"|(?i:{NAMES_OF_SECRETS})(?:\\.|[ '])*[=:]"
        r"|kind(?:\\.|[ ':])+Secret"
        r"|\\\"(?:data|env|httpHeaders)\\"
        r"|(?:\"|\\n)(?:\\t| )*(?:- +)?(?:data|env|httpHeaders):"
        r"|\"(?:\\.| )*(?:ewo|ewk|H4sI|UEsDB|YXBpVmVyc2lvb|a2luZDo|LS0tLS1CRUdJTiB)"
        rf"|(?i:\"-[\w.-]*{NAMES_OF_SECRETS}\",\")"
    ).encode()
)
"""What the text of an object has, as compact JSON, if one of its texts or keys may hold a secret, or an argument follows a flag of one.

A quote inside of a text has a backslash before it, a quote around a text has none.
"""
_NAMED: Final = re2.compile(rf"(?i:{NAMES_OF_SECRETS})(?:\\n)?\":[\[{{\"0-9-]".encode())
"""The end of a key with the name of a secret, and the beginning of a value that may be one: neither true, false nor null."""
_OPEN_VALUES: Final = re.compile(rb'\{\}|\[\]|"(?:true|false)?"')
_TEXT: Final = rb'"[^"\\]*"'
_REFERENCES: Final = {
    b"imagePullSecrets": re.compile(rb'\[(?:\{"name":%b\},?)+\]' % _TEXT),
    b"secret": re.compile(rb'\{(?:"(?:secretName|name|defaultMode|optional)":(?:%b|[0-9]+|true|false),?)+\}' % _TEXT),
    b"secrets": re.compile(rb'\[(?:\{"name":%b\},?)+\]' % _TEXT),
    b"serviceAccountToken": re.compile(rb'\{(?:"(?:audience|expirationSeconds|path)":(?:%b|[0-9]+),?)+\}' % _TEXT),
}
"""The references to secrets that are most frequent."""
_APPLIED: Final = f'"{LAST_APPLIED}":'.encode()
_VALUE: Final = b'"value":'
_EXPONENT: Final = re.compile(r"[0-9.+-]+[eE][0-9+-]+\Z")
_LONGEST_FIELDS: Final = 1 << 16
_DEEPEST_SET: Final = 16
"""Below the depth to which a value with the name of a secret is searched for one (`is_secret_named`)."""
_BACKSLASH: Final = b"\1"
_QUOTE: Final = b"\2"


def withhold_simply(body: JsonObject) -> tuple[bytes, list[Place]] | None:
    """Withhold the secrets of a simple object, which is changed, and return its text and their places; None for any other object.

    The object is neither a Secret nor a policy. An object that is not simple may be changed, too: decode it again.
    """
    search = _SimpleSearch(body)
    try:
        data = search.run()
    except (_NotSimple, TypeError):  # orjson raises TypeError for an object that is nested too deeply
        return None
    return data, search.places


class _NotSimple(Exception):
    """The object may have other secrets."""


class _SimpleSearch:
    """The search of one object. `_values` are the fields `value` that were read one by one."""

    def __init__(self, body: JsonObject) -> None:
        self._body = body
        self._hidden: set[str] = set()
        self._values = 0
        self._applied = 0
        self.places: list[Place] = []

    def run(self) -> bytes:
        """The text of the object without its secrets."""
        for place, spec in _list_pod_specs(self._body):
            self._withhold_variables(place, spec)
            self._read_tolerations(spec)
        self._withhold_applied()
        text = orjson.dumps(_without_fields(self._body))
        self._reject_doubtful(text)
        whole = orjson.dumps(self._body)
        for value in self._hidden:
            if orjson.dumps(value)[1:-1] in whole or _EXPONENT.match(value):
                raise _NotSimple
        return whole

    def _withhold_variables(self, place: Place, spec: JsonObject) -> None:
        for field in CONTAINERS:
            for number, container in enumerate(_list_objects(spec.get(field))):
                for index, variable in enumerate(_list_objects(container.get("env"))):
                    if "value" in variable:
                        self._withhold_variable(variable, (*place, field, number, "env", index, "value"))

    def _withhold_variable(self, variable: JsonObject, place: Place) -> None:
        value, name = variable["value"], variable.get("name")
        if not isinstance(value, str) or not isinstance(name, str):
            raise _NotSimple
        self._values += 1
        if value in ("", MASK):
            return
        variable["value"] = MASK  # type: ignore[index] # decoders make dicts
        self.places.append(place)
        if len(value) >= SHORTEST_ENV or (
            len(value) >= SHORTEST_SECRET and (names_secret(name) or holds_secret(value))
        ):
            self._hidden.add(value)

    def _read_tolerations(self, spec: JsonObject) -> None:
        for toleration in _list_objects(spec.get("tolerations")):
            if "value" in toleration:
                if names_secret(str(toleration.get("key", ""))) or "name" in toleration:
                    raise _NotSimple
                self._values += 1

    def _withhold_applied(self) -> None:
        annotations = as_object(as_object(self._body.get("metadata")).get("annotations"))
        copy = annotations.get(LAST_APPLIED)
        if copy is None:
            return
        if not isinstance(copy, str):
            raise _NotSimple
        self._applied = 1
        if copy not in ("", MASK):
            annotations[LAST_APPLIED] = MASK  # type: ignore[index] # decoders make dicts
            self.places.append(("metadata", "annotations", LAST_APPLIED))
            self._hidden.add(copy)

    def _reject_doubtful(self, text: bytes) -> None:
        """Raise for a text that may have another secret."""
        if (
            not text.isascii()
            or text.count(_VALUE) != self._values
            or text.count(_APPLIED) != self._applied
            or _DOUBTFUL.search(text)
        ):
            raise _NotSimple
        for match in _NAMED.finditer(text):
            if not _is_open(text, match.end() - 1):
                raise _NotSimple


def _is_open(text: bytes, start: int) -> bool:
    """Return whether a value, whose key has the name of a secret, is empty, true or false, or a usual reference."""
    if _OPEN_VALUES.match(text, start):
        return True
    end = start - 2
    key = text[text.rfind(b'"', 0, end) + 1 : end]
    reference = _REFERENCES.get(key)
    return reference is not None and reference.match(text, start) is not None


def _list_pod_specs(body: JsonObject) -> Iterator[tuple[Place, JsonObject]]:
    for place in _TEMPLATES:
        value: Json = body
        for step in place:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, dict):
            yield place, value


def _list_objects(value: Json) -> list[JsonObject]:
    """The items of a list; none for a field that is missing. Raises for any other value."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _NotSimple
    return value


def _without_fields(body: JsonObject) -> JsonObject:
    """The object without the sets of managed fields, which have no values. Raises for a set that has one, or a secret in a key."""
    metadata = body.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not entries:
        return body
    kept: list[Json] = []
    for entry in _list_objects(entries):
        fields = orjson.dumps(entry.get("fieldsV1"))
        if not _is_set(fields if len(fields) <= _LONGEST_FIELDS else b"0"):
            raise _NotSimple
        kept.append({key: value for key, value in entry.items() if key != "fieldsV1"})
    return {**body, "metadata": {**metadata, "managedFields": kept}}


@lru_cache(maxsize=4096)
def _is_set(text: bytes) -> bool:
    """Return whether the JSON text of a value has objects only, not too deep, and no secret in a key: then no value of it is sensitive.

    A backslash and what it escapes are replaced by bytes that no JSON text has, so that each quote begins or ends a key.
    """
    parts = text.replace(b"\\\\", _BACKSLASH).replace(b'\\"', _QUOTE).split(b'"')
    outside = b"".join(parts[::2])
    if outside == b"null":
        return True
    braces = outside.replace(b":{", b"{").replace(b",", b"")
    for _ in range(_DEEPEST_SET):
        braces = braces.replace(b"{}", b"")
    return outside.startswith(b"{") and not braces and all(map(_is_plain_key, set(parts[1::2])))


@lru_cache(maxsize=4096)
def _is_plain_key(part: bytes) -> bool:
    """Return whether a key holds no secret, and hides no object of objects. Remembered: most sets have the same keys."""
    key: str = orjson.loads(b'"%b"' % part.replace(_QUOTE, b'\\"').replace(_BACKSLASH, b"\\\\"))
    return not holds_secret(key) and (names_secret(key) or not may_be_sensitive(key))
