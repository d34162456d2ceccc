"""Specs of policies without their texts."""

from __future__ import annotations

from collections.abc import Collection

from scanner.model.json import Json, JsonObject, as_list


def without(spec: JsonObject, *, fields: Collection[str], of_validations: Collection[str]) -> JsonObject:
    """A spec without some of its fields, and without some fields of its validations."""
    kept = {key: value for key, value in spec.items() if key not in fields}
    if "validations" in kept:
        kept["validations"] = [_without(validation, of_validations) for validation in as_list(kept["validations"])]
    return kept


def _without(validation: Json, fields: Collection[str]) -> Json:
    if not isinstance(validation, dict):
        return validation
    return {key: value for key, value in validation.items() if key not in fields}
