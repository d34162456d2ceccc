"""The file that `assay config init` writes: every key with its help and its default, as comments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Final

from scanner.config.setting import Setting, ValueType
from scanner.config.unflagged import UNFLAGGED_KEYS

_SCHEMA: Final = "config.schema.json"
_WIDTH: Final = 100
_HEAD: Final = (
    "Configuration of Assay. Flags and ASSAY_ variables have priority over this file.",
    "Remove the # of the keys to set. `assay config check` checks the file, `assay config view` prints the effective values.",
)


def find_schema() -> Path:
    """The JSON Schema that is installed with Assay; in a checkout, the one of the documentation."""
    package = Path(__file__).parents[1]
    installed = package / "_data" / _SCHEMA
    return installed if installed.exists() else package.parent / "docs" / _SCHEMA


def write_example(settings: Iterable[Setting], schema: str) -> str:
    """The text of the file; `schema` is the address of its JSON Schema."""
    return "\n".join([f"# yaml-language-server: $schema={schema}", *_write_lines(settings)]) + "\n"


def _write_lines(settings: Iterable[Setting]) -> Iterator[str]:
    yield from (line for text in _HEAD for line in _write_comment(text))
    for section, group in groupby(settings, lambda setting: setting.key.rpartition(".")[0]):
        if section:
            yield from ("", f"#{section}:")
        for setting in group:
            indent = "  " if section else ""
            yield from ("", *(f"{indent}{line}" for line in _write_comment(setting.help)))
            yield f"#{indent}{setting.key.rpartition('.')[2]}: {_write_value(setting)}"
    for key in UNFLAGGED_KEYS:
        yield from ("", *_write_comment(key.help), f"#{key.key}: {key.example}")


def _write_comment(text: str) -> list[str]:
    return [f"# {line}" for line in wrap(text, _WIDTH)]


def _write_value(setting: Setting) -> str:
    """The default, or a value of the right type."""
    if setting.default is not None:
        return json.dumps(setting.default)
    value: object = setting.choices[0] if setting.choices else _make_sample(setting)
    return json.dumps([value] if setting.many else value)


def _make_sample(setting: Setting) -> object:
    match setting.form:
        case ValueType.INTEGER | ValueType.NUMBER:
            return 1
        case ValueType.BOOLEAN:
            return False
        case ValueType.STRING:
            return setting.metavar
