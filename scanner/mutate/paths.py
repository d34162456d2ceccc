"""The path elements of structured merge, the same for errors and for the matching of list elements.

Mirrors `structured-merge-diff/v6/fieldpath` and `value.ToString`.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.cel.values.text import quote, write_printed
from scanner.model.json import Json
from scanner.mutate.schema import MergedListType, Schema


class BadElement(ValueError):
    """An element of a merged list that has no valid key; the message is the API's."""


def make_element_key(schema: Schema, of: MergedListType, element: object) -> str:
    """The path element of an element of a merged list, such as `[name="web"]` (`fieldpath`). Raises BadElement."""
    return _make_key(schema, of, element) if of.keys else f"[={_write_scalar(element)}]"


def place_element(schema: Schema, of: MergedListType, at: int, element: object) -> str:
    """The path element of an element, or its index `at` if its list is not associative or it has no key."""
    try:
        return make_element_key(schema, of, element) if of.associative else str(at)
    except BadElement:
        return str(at)


def _make_key(schema: Schema, of: MergedListType, element: object) -> str:
    if element is None:
        raise BadElement("associative list with keys may not have a null element")
    if not isinstance(element, dict):
        raise BadElement("associative list with keys may not have non-map elements")
    members = {**_get_defaults(schema, of), **element}
    if schema.needs_all_keys and (missing := [key for key in of.keys if key not in members]):
        raise BadElement(
            f"associative list with keys has an element that omits key field {quote(missing[0])} (and doesn't have default value)"
        )
    pairs = [f"{key}={write_value(members[key])}" for key in sorted(of.keys) if key in members]
    if not pairs:
        keys = " ".join(quote(key) for key in of.keys)
        raise BadElement(
            f"associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default "
            "values for any key fields)"
        )
    return f"[{','.join(pairs)}]"


def _get_defaults(schema: Schema, of: MergedListType) -> Mapping[str, Json]:
    element = schema.resolve(of.element).map
    return {key: element.defaults[key] for key in of.keys if element.defaults.get(key) is not None} if element else {}


def _write_scalar(element: object) -> str:
    if isinstance(element, dict):
        raise BadElement("associative list without keys has an element that's a map type")
    if isinstance(element, list):
        raise BadElement("not supported: associative list with lists as elements")
    if element is None:
        raise BadElement("associative list without keys has an element that's an explicit null")
    return write_value(element)


def write_value(value: object) -> str:
    """The text of a value inside a path element."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return write_printed(value)
        case str():
            return quote(value)
        case list():
            return f"[{','.join(map(write_value, value))}]"
        case dict():
            return "".join(f"{key}={write_value(member)}" for key, member in value.items())
        case int():
            return str(value)
        case _:
            return "{{undefined}}"
