"""Two texts of a rule without what means the same: the order of keys, and values that the API server sets where an author writes none.

The defaults are those of `admissionregistration.k8s.io` (pkg/apis/admissionregistration/v1/defaults.go): a cluster whose policies were
applied by another client, or read from files, has the same rules without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scanner.model.json import Json, JsonObject

_DEFAULTS: Final[Mapping[str, Json]] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "scope": "*",
    "reinvocationPolicy": "Never",
}
"""The values of fields that the server adds, by the name of the field."""


def make_alike(before: JsonObject, now: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Both texts without defaults that one of them alone states, the keys of the first one in the order of the second."""
    keys = [*now, *(key for key in before if key not in now)]
    left: dict[str, Json] = {}
    right: dict[str, Json] = {}
    for key in keys:
        if (key in before) != (key in now) and _is_default(key, before.get(key, now.get(key))):
            continue
        if key in before and key in now:
            left[key], right[key] = _make_values_alike(before[key], now[key])
        elif key in before:
            left[key] = before[key]
        else:
            right[key] = now[key]
    return left, right


def _is_default(key: str, value: Json) -> bool:
    return key in _DEFAULTS and value == _DEFAULTS[key]


def _make_values_alike(before: Json, now: Json) -> tuple[Json, Json]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return make_alike(before, now)
    if isinstance(before, list | tuple) and isinstance(now, list | tuple):
        pairs = [_make_values_alike(*pair) for pair in zip(before, now, strict=False)]
        both = len(pairs)
        return [*(pair[0] for pair in pairs), *before[both:]], [*(pair[1] for pair in pairs), *now[both:]]
    return before, now
