"""Field errors in the API's own words.

Rules: `docs/semantics/api-validation.md#field-errors`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from scanner.cel.values.text import quoted
from scanner.model.json import Json, as_text
from scanner.policies.api_validation import names

Faults: TypeAlias = Callable[[str], str]
"""What is wrong with the expression at a path such as `spec.validations[0].expression`; an empty text is nothing."""


def required(path: str, detail: str = "") -> str:
    """A field that is missing."""
    return f"{path}: Required value" + (f": {detail}" if detail else "")


def invalid(path: str, value: str, detail: str) -> str:
    """A text that cannot be used."""
    return f"{path}: Invalid value: {quoted(value)}: {detail}"


def invalid_json(path: str, value: Json, detail: str) -> str:
    """A list or an object that cannot be used."""
    return f"{path}: Invalid value: {json.dumps(value, separators=(',', ':'), ensure_ascii=False)}: {detail}"


def forbidden(path: str, detail: str) -> str:
    """A field that must not be there."""
    return f"{path}: Forbidden: {detail}"


def duplicate(path: str, value: str) -> str:
    """A value that was there before."""
    return f"{path}: Duplicate value: {quoted(value)}"


def choice(path: str, value: Json, choices: Sequence[str]) -> Iterator[str]:
    """A value that is none of those there are. A field that is there and empty is one of these, too: only an absent one has a default."""
    if value is not None and value not in choices:
        yield unsupported(path, as_text(value), choices)


def needed_choice(path: str, value: str, choices: Sequence[str]) -> Iterator[str]:
    """A value that is missing, or none of those there are."""
    if not value:
        yield required(path)
    elif value not in choices:
        yield unsupported(path, value, choices)


def unsupported(path: str, value: str, choices: Sequence[str]) -> str:
    """A value that is not supported."""
    supported = ", ".join(f'"{known}"' for known in choices)
    return f"{path}: Unsupported value: {quoted(value)}: supported values: {supported}"


def each(path: str, value: str, details: Iterable[str]) -> Iterator[str]:
    """One error for each thing that is wrong with a value."""
    return (invalid(path, value, detail) for detail in details)


def label_faults(path: str, labels: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the keys and values of labels."""
    for key in sorted(labels):
        yield from each(path, key, names.qualified(key))
        yield from each(path, labels[key], names.label(labels[key]))
