"""Selection, indexes, presence tests, and the elements that comprehensions run over.

Rules: `docs/semantics/cel-evaluation.md#selection`.
"""

from __future__ import annotations

from scanner.cel.errors import EvaluationError
from scanner.cel.values.equality import find_key, has_no_key
from scanner.cel.values.runtime import go_type, make_no_overload, print_value
from scanner.cel.values.values import (
    INT_MAX,
    INT_MIN,
    KeyedMap,
    Lazy,
    Message,
    Struct,
    UInt,
    Value,
    type_of,
)
from scanner.cel.values.wrapped_values import is_wrapped

_KEYS = frozenset({str, int, UInt, bool, float})


def make_no_such_key(key: Value) -> EvaluationError:
    """Return the error of a key that a map does not have."""
    return EvaluationError(f"no such key: {print_value(key)}")


def index(container: Value, key: Value) -> Value:
    """Return `container[key]`. Raises EvaluationError if there is none, and for an impossible index."""
    item = look_up(container, key)
    if item is not None:
        return item[0]
    if type(container) is list:
        raise EvaluationError(f"index out of bounds: {print_value(key)}")
    raise make_no_such_key(key)


def look_up(container: Value, key: Value) -> tuple[Value] | None:
    """Return the value under a key or index in a tuple of one, or None where there is none.

    Raises EvaluationError for an impossible index.
    """
    require_key(key)
    if type(container) is list:
        at = list_index(key)
        if not 0 <= at < len(container):
            return None
        if type(key) is not int and is_wrapped(container):
            raise EvaluationError(f"unsupported index type: {go_type(key)}")
        return (container[at],)
    if isinstance(container, Lazy):
        return _find_entry(container, key)
    if type(container) is Struct:
        return container.find(key)
    if type(container) is Message:
        return (container.find(key),)
    if type(container) is dict and type(key) is not str:
        return (None,) if has_no_key(container, key) else None
    return find_key(container, key)


def probe(container: Value, key: Value) -> tuple[Value] | None:
    """Return the value under a key as an optional selection reads it, in a tuple of one; None where it is absent.

    A field of a message that is not set is absent. Raises EvaluationError for an impossible index.
    """
    item = look_up(container, key)
    return None if type(container) is Message and key not in container.fields else item


def _find_entry(variables: Lazy, key: Value) -> tuple[Value] | None:
    if type(key) is not str:
        raise make_no_overload()
    return variables.find(key)


def require_key(key: Value) -> None:
    """Raise EvaluationError for a value that can be neither the key of a map nor the index of a list in an index."""
    if type(key) not in _KEYS:
        raise EvaluationError(f"invalid qualifier type: {go_type(key)}")


def list_index(key: Value) -> int:
    """Return a value as the index of a list, which may be outside of it.

    Raises EvaluationError for a value that is not a whole number of 64 bits.
    """
    if type(key) is int:
        return key
    if type(key) is float:
        if key.is_integer() and INT_MIN < key < INT_MAX:
            return int(key)
        raise EvaluationError(f"unsupported index value {print_value(key)} in list")
    if type(key) is UInt:
        if key <= INT_MAX:
            return int(key)
        raise EvaluationError(f"unsupported index value {print_value(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_of(key).name}' in list")


def has(container: Value, field: str) -> bool:
    """Return `has(container.field)`. Raises EvaluationError for a container without fields."""
    if type(container) is dict:
        return field in container
    if type(container) is Struct:
        return field in container.fields
    return probe(container, field) is not None


def list_elements(container: Value) -> list[Value]:
    """Return the elements of a list, or the keys of a map, for a comprehension of one variable.

    Raises EvaluationError if it is neither a list nor a map.
    """
    if type(container) is list:
        return container
    if type(container) is dict or type(container) is KeyedMap:
        return list(container)
    if isinstance(container, Lazy):
        return [_read_value_or_error(container, name) for name in container.names()]
    raise EvaluationError(f"got '{go_type(container)}', expected iterable type")


def _read_value_or_error(variables: Lazy, name: Value) -> Value:
    """Return the value of a variable, or its error, which is raised when it is read."""
    try:
        return index(variables, name)
    except EvaluationError as error:
        return error


def pairs(container: Value) -> list[tuple[Value, Value]]:
    """Return indexes and elements, or keys and values, for a comprehension of two variables.

    Raises EvaluationError if it is neither a list nor a map.
    """
    if type(container) is list:
        return list(enumerate(container))
    if type(container) is dict or type(container) is KeyedMap:
        return list(container.items())
    if isinstance(container, Lazy):
        return [(value, _read_value_or_error(container, value)) for value in list_elements(container)]
    raise EvaluationError(f"unsupported comprehension range type: {go_type(container)}")
