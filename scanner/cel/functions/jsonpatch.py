"""JSON patch paths: for the expressions of mutations only, see `Environment.extras`.

Rules: `docs/semantics/cel-libraries.md#json-patch-keys`.
"""

from __future__ import annotations

from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import READ
from scanner.cel.functions.result_sizes import text
from scanner.cel.types.type_system import STRING

_ESCAPED = str.maketrans({"~": "~0", "/": "~1"})


def _escape_key(key: str) -> str:
    return key.translate(_ESCAPED)


LIBRARY = Library(
    "kubernetes.jsonpatch",
    (
        Function(
            "jsonpatch.escapeKey",
            (Overload("string_jsonpatch_escapeKey_string", (STRING,), STRING, _escape_key),),
            cost=READ,
            result=text,
        ),
    ),
)
