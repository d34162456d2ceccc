"""JSON patch as the API server applies it: RFC 6902 with the behaviour of the Go library json-patch v4.

It differs from the RFC where that library does: negative indexes count from the end, `replace` adds a member that is not
there, `copy` of an absent member copies null, and text before the first slash of a path is dropped. The library panics where it
needs a value and has none, and the copies of one patch have a limit.

Rules: `docs/semantics/mutation.md#json-patch`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from copy import deepcopy
from typing import Final, TypeAlias

import orjson
from msgspec import Struct

from scanner import cel
from scanner.cel.values.text import quote
from scanner.model.json import JsonObject
from scanner.mutate.native import PatchFault, RequestFault, end_connection

# The sizes of values and objects, as limits of the work of a mutation.
#
# Mirrors the limits of apiserver 1.36: `MaxRequestBodyBytes`, beyond which no client can send an object, and the size
# of a value as `encoding/json` writes it. An expression can use a variable twice, and that variable another one
# twice: its value is small in memory, and its JSON doubles with every variable.

LARGEST: Final = 3 * 1024 * 1024
"""The bytes of the largest object that a client can send, and that the copies of one JSON patch may add."""
TOO_LARGE: Final = f"what it would change is larger than {LARGEST // 1024 // 1024} MiB, and cannot be stored"
_ESCAPED: Final = {"<": 5, ">": 5, "&": 5, "\u2028": 3, "\u2029": 3}
"""The characters that Go escapes beside those that every JSON escapes, and the bytes that an escape takes more."""


def measure_json(value: object) -> int:
    """The bytes of a JSON value as Go writes it: without blanks, and with escapes for what HTML reserves."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-8", "surrogatepass")) + sum(
        growth * text.count(character) for character, growth in _ESCAPED.items()
    )


def is_large(body: JsonObject) -> bool:
    """Return whether an object is larger than a client could send."""
    try:
        return len(orjson.dumps(body)) > LARGEST
    except TypeError:  # a number or a nesting beyond what orjson writes
        return measure_json(body) > LARGEST


def is_large_value(value: cel.Value) -> bool:
    """Return whether the JSON of an expression's value is certainly larger than an object may be.

    The work is bounded by the memory that the value takes: a part that occurs often is measured once.
    """
    sizes: dict[int, int] = {}
    return _measure_size(value, sizes) > LARGEST


def _measure_size(value: object, sizes: dict[int, int]) -> int:
    """The least number of bytes of a value as JSON."""
    if isinstance(value, str | bytes):
        return len(value) + 2
    parts = _list_parts(value)
    if not parts:
        return 1
    if id(value) not in sizes:
        sizes[id(value)] = 2 + sum(_measure_size(part, sizes) for part in parts)
    return sizes[id(value)]


def _list_parts(value: object) -> list[object]:
    match value:
        case list():
            return value
        case dict():
            return [part for pair in value.items() for part in pair]
        case cel.KeyedMap():
            return [part for pair in value.items() for part in pair]
        case cel.Struct() | cel.Message():
            return [part for pair in value.fields.items() for part in pair]
        case cel.Optional() if value.present:
            return [value.value]
        case _:
            return []


Node: TypeAlias = "bool | int | float | str | list[Node] | dict[str, Node] | None"
Container: TypeAlias = "list[Node] | dict[str, Node]"
_INDEX = re.compile(r"[+-]?[0-9]+")
_MOST = 2**63
_MISSING = "missing value"
_INVALID = "invalid index referenced"


class TestFailed(Exception):
    """A `test` operation that fails: no operation of the patch is applied, and that is not a fault."""

    __test__ = False


class WrittenNull(dict[str, Node]):
    """A null that is the whole value of an operation: the library reads it as a map that it cannot write to."""


_WRITTEN_NULL = WrittenNull()


class PatchOperation(Struct, frozen=True):
    """One operation of a patch. `has_value` distinguishes a null value from an absent one."""

    op: str
    path: str
    value: Node = None
    has_value: bool = True
    source: str = ""


def apply(operations: Iterable[PatchOperation], document: Node) -> Node:
    """A changed copy of a document; the document itself does not change.

    Mirrors evanphx/json-patch. Raises PatchFault with the library's text, TestFailed for a test that fails, RequestFault where
    the library panics.
    """
    root = _Root(document)
    for operation in operations:
        match operation.op:
            case "add":
                root.add(operation)
            case "remove":
                root.remove(operation)
            case "replace":
                root.replace(operation)
            case "move":
                root.move(operation)
            case "copy":
                root.copy(operation)
            case "test":
                root.test(operation)
            case other:
                raise PatchFault(f"Unexpected kind: {other}")
    return root.finish()


class _Root:
    """The document during the patch: changed parts are copied first, all other parts are shared with the original."""

    def __init__(self, document: Node) -> None:
        self.document = document
        self._own: dict[int, Container] = {}
        self._copied = 0
        self._has_written_null = False

    def finish(self) -> Node:
        """The changed document, in which each null is a null, also one that a patch wrote."""
        return _replace_written_nulls(self.document) if self._has_written_null else self.document

    def add(self, operation: PatchOperation) -> None:
        path = operation.path
        container, key = self._find(path, f'add operation does not apply: doc is missing path: "{path}"')
        with _add_operation_to_errors(f"error in add for path: '{path}'"):
            _add(container, key, self._get_value(operation))

    def remove(self, operation: PatchOperation) -> None:
        path = operation.path
        container, key = self._find(path, f'remove operation does not apply: doc is missing path: "{path}"')
        with _add_operation_to_errors(f"error in remove for path: '{path}'"):
            _remove(container, key)

    def replace(self, operation: PatchOperation) -> None:
        path = operation.path
        if not path:
            if not operation.has_value:
                raise end_connection("a JSON patch that replaces the whole document needs a value")
            if not isinstance(operation.value, list | dict | None):
                raise PatchFault("replace operation value must be object or array: %!w(<nil>)")
            self.document = self._get_value(operation)
            return
        container, key = self._find(path, f"replace operation does not apply: doc is missing path: {path}")
        try:
            _get(container, key)
        except PatchFault:
            raise PatchFault(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from None
        _set(container, key, self._get_value(operation))

    def move(self, operation: PatchOperation) -> None:
        source, path = operation.source, operation.path
        _reject_without_source("move", source)
        container, key = self._find(source, f"move operation does not apply: doc is missing from path: {source}")
        with _add_operation_to_errors(f"error in move for path: '{key}'"):
            value = _get(container, key)
            _remove(container, key)
        container, key = self._find(path, f"move operation does not apply: doc is missing destination path: {path}")
        with _add_operation_to_errors(f"error in move for path: '{path}'"):
            _add(container, key, value)

    def copy(self, operation: PatchOperation) -> None:
        source, path = operation.source, operation.path
        _reject_without_source("copy", source)
        container, key = self._find(source, f"copy operation does not apply: doc is missing from path: {source}")
        with _add_operation_to_errors(f"error in copy for from: '{source}'"):
            value = _get(container, key)
        container, key = self._find(path, f"copy operation does not apply: doc is missing destination path: {path}")
        self._charge(value)
        with _add_operation_to_errors("error while adding value during copy"):
            _add(container, key, value if isinstance(value, WrittenNull) else _replace_written_nulls(value))

    def test(self, operation: PatchOperation) -> None:
        path = operation.path
        if not path:
            if not operation.has_value:
                raise end_connection("a JSON patch that tests the whole document needs a value")
            actual: Node = _WRITTEN_NULL if self.document is None else self.document
        else:
            container, key = self._find(path, f"test operation does not apply: is missing path: {path}")
            with _add_operation_to_errors(f"error in test for path: '{path}'"):
                actual = _get(container, key)
        # The library takes a null of the document, and an absent value of the operation, for no value.
        if actual is None or not operation.has_value:
            holds = actual is None and not operation.has_value
        else:
            holds = _holds(actual, _WRITTEN_NULL if operation.value is None else operation.value)
        if not holds:
            raise TestFailed(path)

    def _get_value(self, operation: PatchOperation) -> Node:
        """The value of an operation, as the document holds it from now on."""
        if operation.value is None and operation.has_value:
            self._has_written_null = True
            return _WRITTEN_NULL
        return deepcopy(operation.value)

    def _charge(self, value: Node) -> None:
        """Count a copy. Raises PatchFault beyond the limit (`Config.JSONPatchMaxCopyBytes` of apiserver)."""
        # `deepCopy` counts nothing for a null of the document.
        self._copied += 0 if value is None else measure_json(_replace_written_nulls(value))
        if self._copied > LARGEST:
            raise PatchFault(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied}, exceeding the limit "
                f"{LARGEST}"
            )

    def _find(self, path: str, missing: str) -> tuple[Container, str]:
        """The container at the parent of a path, as our own copy, and the key in it."""
        _, *parts = path.split("/")
        if not parts or not isinstance(self.document, list | dict):
            raise PatchFault(f"{missing}: {_MISSING}")
        node = self.document = self._make_own(self.document)
        for part in map(_decode_part, parts[:-1]):
            below = _follow_key(node, part)
            if not isinstance(below, list | dict):
                raise PatchFault(f"{missing}: {_MISSING}")
            owned = self._make_own(below)
            if owned is not below:
                _set(node, part, owned)
            node = owned
        return node, _decode_part(parts[-1])

    def _make_own(self, container: Container) -> Container:
        if id(container) in self._own or isinstance(container, WrittenNull):
            return container
        copied = container.copy()
        # The copy stays alive here, so that no other container gets its id.
        self._own[id(copied)] = copied
        return copied


class _add_operation_to_errors:  # noqa: N801 - used as a statement
    """Add the operation to the text of an error."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, PatchFault) and not isinstance(error, RequestFault):
            raise PatchFault(f"{self._prefix}: {error}") from None


def _reject_without_source(op: str, source: str) -> None:
    if not source:
        raise PatchFault(f"{op} operation failed to decode from: operation, missing from field: {_MISSING}")


def _decode_part(part: str) -> str:
    return re.sub("~[01]", lambda escape: "/" if escape[0] == "~1" else "~", part)


def _follow_key(node: Container, key: str) -> Node:
    try:
        return _get(node, key)
    except PatchFault:
        return None


def _get(container: Container, key: str) -> Node:
    if isinstance(container, dict):
        return container.get(key)
    return container[_read_position(key, len(container), len(container) - 1)]


def _set(container: Container, key: str, value: Node) -> None:
    if isinstance(container, dict):
        _reject_null(container)
        container[key] = value
    else:
        container[_read_position(key, len(container), len(container) - 1)] = value


def _add(container: Container, key: str, value: Node) -> None:
    if isinstance(container, dict):
        _reject_null(container)
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        size = len(container)
        container.insert(_read_position(key, size + 1, size, f"value was not a proper array index: '{key}': "), value)


def _remove(container: Container, key: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise PatchFault(f"Unable to remove nonexistent key: {key}: {_MISSING}")
        del container[key]
    else:
        del container[_read_position(key, len(container), len(container) - 1)]


def _read_position(key: str, length: int, last: int, prefix: str = "") -> int:
    """The position of an index in a list; from `-length` to `last`."""
    if not _INDEX.fullmatch(key):
        raise PatchFault(f"{prefix}strconv.Atoi: parsing {quote(key)}: invalid syntax")
    # Python refuses to convert thousands of digits; an index of that length is out of range anyway.
    index = int(key) if len(key) <= len(str(_MOST)) + 1 else _MOST
    if not -_MOST <= index < _MOST:
        raise PatchFault(f"{prefix}strconv.Atoi: parsing {quote(key)}: value out of range")
    if not -length <= index <= last:
        raise PatchFault(f"Unable to access invalid index: {index}: {_INVALID}")
    return index if index >= 0 else index + length


def _reject_null(container: Container) -> None:
    """Raise RequestFault for a null that an earlier operation wrote: Go panics on an assignment to a nil map."""
    if isinstance(container, WrittenNull):
        raise end_connection("a JSON patch writes into a null that it wrote before")


def _replace_written_nulls(value: Node) -> Node:
    """A copy of a value, with None for every written null."""
    if isinstance(value, WrittenNull):
        return None
    if isinstance(value, dict):
        return {name: _replace_written_nulls(member) for name, member in value.items()}
    return [_replace_written_nulls(item) for item in value] if isinstance(value, list) else value


def _holds(actual: Node, expected: Node) -> bool:
    """Return whether a test holds (`lazyNode.equal`). A null inside a list has no value to compare.

    The whole value null equals an empty object or list, as it is read alike.
    """
    if isinstance(actual, dict):
        return (
            isinstance(expected, dict)
            and actual.keys() == expected.keys()
            and all(_members_hold(member, expected[name]) for name, member in actual.items())
        )
    if isinstance(actual, list):
        elements = [] if isinstance(expected, WrittenNull) else expected
        return (
            isinstance(elements, list) and len(actual) == len(elements) and all(map(_elements_hold, actual, elements))
        )
    return is_same_json(actual, expected)


def _members_hold(actual: Node, expected: Node) -> bool:
    if actual is None or expected is None:
        return actual is expected
    return _holds(actual, expected)


def _elements_hold(actual: Node, expected: Node) -> bool:
    if actual is None or expected is None:
        raise end_connection("a JSON patch tests a null inside a list")
    return _holds(actual, expected)


def is_same_json(left: object, right: object) -> bool:
    """Return whether two JSON values are equal; true is not 1, while 1 is 1.0."""
    return left is right or (left == right and _is_alike(left, right))


def _is_alike(left: object, right: object) -> bool:
    """Return whether two values that are equal to Python have booleans in the same places."""
    if isinstance(left, dict) and isinstance(right, dict):
        return all(value is (other := right[key]) or _is_alike(value, other) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(map(_is_alike, left, right))
    return isinstance(left, bool) is isinstance(right, bool)
