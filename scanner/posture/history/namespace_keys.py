"""The labels and annotations of namespaces that a policy reads, by its stored manifest and those of its bindings.

Selectors name their keys. An expression reads a key if it names the key; any other use of `namespaceObject` may read every one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.policy import ADMISSION_API

EVERY: Final = "*"
"""Stands for every key: no key contains an asterisk."""
_VARIABLE: Final = "namespaceObject"
_USE: Final = re.compile(
    rf"""\b{_VARIABLE}(?:\.metadata\.(?:name\b|(labels|annotations)
    (?:\.([A-Za-z_]\w*)\b(?!\s*\()|\[\s*(?:'([^'\\]+)'|"([^"\\]+)")\s*\])))?""",
    re.VERBOSE,
)


def namespace_keys(language: str, *manifests: JsonObject) -> frozenset[str]:
    """The keys that a policy reads, such as `labels/team`: by its manifest, and those of its bindings."""
    if language not in ADMISSION_API:
        return frozenset({EVERY})
    return frozenset(key for manifest in manifests for key in _keys(dig(manifest, "spec")))


def _keys(value: Json) -> Iterator[str]:
    """The keys in a part of a manifest. Any text may be an expression: the form of the policy does not matter."""
    if isinstance(value, str):
        yield from _list_expression_keys(value)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _keys(item)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _list_selector_keys(item) if name == "namespaceSelector" else _keys(item)


def _list_selector_keys(selector: Json) -> Iterator[str]:
    yield from (f"labels/{key}" for key in as_object(dig(selector, "matchLabels")))
    yield from (f"labels/{as_text(dig(each, 'key'))}" for each in as_list(dig(selector, "matchExpressions")))


def _list_expression_keys(text: str) -> Iterator[str]:
    for use in _USE.finditer(text):
        field, *keys = use.groups()
        if field:
            yield f"{field}/{''.join(filter(None, keys))}"
        elif use.group() == _VARIABLE:
            yield EVERY
