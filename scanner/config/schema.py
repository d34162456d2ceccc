"""The JSON Schema of `assay.yaml`, by which editors complete and check the file: https://json-schema.org/draft/2020-12/schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from scanner.config.setting import Setting, ValueType
from scanner.config.unflagged import UNFLAGGED_KEYS
from scanner.model.json import Json

_Object: TypeAlias = dict[str, Json]


def make_schema(settings: Iterable[Setting]) -> _Object:
    """The schema of a file with these settings and the keys without a flag."""
    properties: dict[str, Json] = {}
    sections: dict[str, dict[str, Json]] = {}
    for setting in settings:
        section, dot, name = setting.key.rpartition(".")
        (sections.setdefault(section, {}) if dot else properties)[name] = _make_property(setting)
    for name, keys in sections.items():
        properties[name] = {"type": "object", "additionalProperties": False, "properties": keys}
    for key in UNFLAGGED_KEYS:
        properties[key.key] = {"description": key.help, **key.schema}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of Assay",
        "description": "The file assay.yaml. Flags and environment variables have priority over the file.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def _make_property(setting: Setting) -> _Object:
    described: _Object = {"description": setting.help}
    if setting.many:
        return {**described, "type": "array", "items": _make_value_schema(setting)}
    default: _Object = {} if setting.default is None else {"default": setting.default}
    return {**described, **_make_value_schema(setting), **default}


def _make_value_schema(setting: Setting) -> _Object:
    if setting.choices:
        return {"enum": list(setting.choices)}
    bounds = {"minimum": setting.least, "maximum": setting.most}
    length: _Object = {"minLength": 1} if setting.form is ValueType.STRING else {}
    return {
        "type": setting.form.value,
        **length,
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }
