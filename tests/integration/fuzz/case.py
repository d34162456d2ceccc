"""One question: policies, and the requester for whom they act."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scanner.api import UserInfo
from scanner.model.json import JsonObject, as_object, as_text


@dataclass(frozen=True, slots=True)
class Case:
    """Policies that act for a requester; `shown` is their mutation as text, `path` its place."""

    policies: tuple[JsonObject, ...]
    user: UserInfo
    shown: str
    path: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A write that is refused."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Made:
    """What a write leaves in the store, without what a server counts and notes by itself."""

    document: JsonObject


Outcome = Refused | Made

_COUNTED = ("managedFields", "resourceVersion", "generation")
_NEW = ("uid", "creationTimestamp")
_COUNTER = "deprecated.daemonset.template.generation"


def tidied(document: JsonObject, *, created: bool) -> JsonObject:
    """An object without what a server counts and notes by itself, or makes anew for each object that is created."""
    dropped = (*_COUNTED, *(_NEW if created else ()))
    metadata = {name: value for name, value in as_object(document.get("metadata")).items() if name not in dropped}
    notes = metadata.get("annotations")
    if document.get("kind") == "DaemonSet" and isinstance(notes, Mapping) and _COUNTER in notes:
        metadata["annotations"] = {name: note for name, note in notes.items() if name != _COUNTER}
    return {name: value for name, value in document.items() if not (created and name == "status")} | {
        "metadata": metadata
    }


def name_of(document: JsonObject) -> str:
    """The name of an object."""
    return as_text(as_object(document["metadata"])["name"])
