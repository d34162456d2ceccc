"""JSON patch paths (K17 of the admission semantics): for the expressions of mutations only, see `Environment.extras`."""

from __future__ import annotations

from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.type_system import STRING
from scanner.cel.values import Value

_ESCAPED = str.maketrans({"~": "~0", "/": "~1"})


def _escape_key(key: str) -> str:
    return key.translate(_ESCAPED)


def _traversal(arguments: tuple[Value, ...], _result: Value) -> int:
    """Return a tenth of the key's code points, rounded up."""
    return -(-len(str(arguments[0])) // 10)


LIBRARY = Library(
    "kubernetes.jsonpatch",
    (
        Function(
            "jsonpatch.escapeKey",
            (Overload("string_jsonpatch_escapeKey_string", (STRING,), STRING, _escape_key),),
            cost=_traversal,
        ),
    ),
    since=(1, 32),
)
