"""Field errors in the API's own words.

Rules: `docs/semantics/api-validation.md#field-errors`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from scanner.cel.values.text import quote
from scanner.model.json import Json, as_text
from scanner.policies.api_validation import names

Faults: TypeAlias = Callable[[str], str]
"""Return the error of the expression at a path such as `spec.validations[0].expression`, or an empty text."""


def required(path: str, detail: str = "") -> str:
    """The error for a missing field (`field.Required`)."""
    return f"{path}: Required value" + (f": {detail}" if detail else "")


def invalid(path: str, value: str, detail: str) -> str:
    """The error for an invalid text (`field.Invalid`)."""
    return f"{path}: Invalid value: {quote(value)}: {detail}"


def invalid_json(path: str, value: Json, detail: str) -> str:
    """The error for an invalid list or object (`field.Invalid`), with the value as JSON."""
    return f"{path}: Invalid value: {json.dumps(value, separators=(',', ':'), ensure_ascii=False)}: {detail}"


def forbidden(path: str, detail: str) -> str:
    """The error for a field that must not be set (`field.Forbidden`)."""
    return f"{path}: Forbidden: {detail}"


def duplicate(path: str, value: str) -> str:
    """The error for a repeated value (`field.Duplicate`)."""
    return f"{path}: Duplicate value: {quote(value)}"


def choice(path: str, value: Json, choices: Sequence[str]) -> Iterator[str]:
    """The error for a value that is not one of the choices, empty values included: only an absent field has a default."""
    if value is not None and value not in choices:
        yield unsupported(path, as_text(value), choices)


def needed_choice(path: str, value: str, choices: Sequence[str]) -> Iterator[str]:
    """The error for a value that is missing, or not one of the choices."""
    if not value:
        yield required(path)
    elif value not in choices:
        yield unsupported(path, value, choices)


def unsupported(path: str, value: str, choices: Sequence[str]) -> str:
    """The error for a value that is not supported (`field.NotSupported`)."""
    supported = ", ".join(f'"{choice}"' for choice in choices)
    return f"{path}: Unsupported value: {quote(value)}: supported values: {supported}"


def each(path: str, value: str, details: Iterable[str]) -> Iterator[str]:
    """One `field.Invalid` error for each problem of a value."""
    return (invalid(path, value, detail) for detail in details)


def label_faults(path: str, labels: Mapping[str, str]) -> Iterator[str]:
    """The errors of the keys and values of labels (`ValidateLabels`)."""
    for key in sorted(labels):
        yield from each(path, key, names.check_qualified_name(key))
        yield from each(path, labels[key], names.check_label_value(labels[key]))
