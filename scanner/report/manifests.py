"""The manifests of policies and bindings as reports show them, and as their authors wrote them, where that is known.

`kubectl apply` keeps a copy of what it applied in an annotation of the object. An edit by other means does not change the copy, so
the copy is what the author wrote only while the object has everything that the copy has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from scanner.model.json import EMPTY, Json, JsonObject, as_object, dig, text_map
from scanner.model.resource import LAST_APPLIED, SERVER_SET_METADATA


def without_server_fields(manifest: JsonObject) -> JsonObject:
    """The manifest without status and without the metadata that a server or kubectl sets."""
    metadata = {
        key: value for key, value in as_object(manifest.get("metadata")).items() if key not in SERVER_SET_METADATA
    }
    annotations = as_object(metadata.pop("annotations", None))
    written = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    if written:
        metadata["annotations"] = written
    return {key: metadata if key == "metadata" else value for key, value in manifest.items() if key != "status"}


def as_written(manifest: JsonObject) -> JsonObject:
    """The manifest with the spec that its author applied, without the defaults of the server; empty if that is not known."""
    copy = _copy(manifest)
    spec = copy.get("spec")
    if not spec or not _has(manifest.get("spec"), spec):
        return EMPTY
    version = {"apiVersion": copy["apiVersion"]} if "apiVersion" in copy else {}
    return {**without_server_fields(manifest), **version, "spec": spec}


def _copy(manifest: JsonObject) -> JsonObject:
    text = text_map(dig(manifest, "metadata", "annotations")).get(LAST_APPLIED, "")
    try:
        return as_object(orjson.loads(text))
    except orjson.JSONDecodeError:
        return EMPTY


def _has(stored: Json, written: Json) -> bool:
    """Return whether a value of the server is a written one, with nothing but further fields."""
    if isinstance(written, Mapping):
        own = as_object(stored)
        return isinstance(stored, Mapping) and all(_has(own.get(key), value) for key, value in written.items())
    if isinstance(written, Sequence) and not isinstance(written, str):
        if not isinstance(stored, Sequence) or isinstance(stored, str):
            return not written and stored is None
        return len(stored) == len(written) and all(map(_has, stored, written))
    return stored == written
