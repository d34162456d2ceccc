"""The tables whose rows a search finds by words, and the entries of their rows.

Findings are not among them: they refer to these rows. An entry that begins with `-` is for the search itself: no word begins so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import Table

from scanner.model.json import dig, text_map
from scanner.posture.severity import Description, described
from scanner.store.drift import drift_of
from scanner.store.search_text import MOST_ENTRIES, entries, name_entries
from scanner.store.tables import CHECKS, KEPT, OBJECTS, POLICIES, VERDICTS, WORKLOADS
from scanner.store.templates import filled

KIND: Final = "--"
"""Stands before the id of a kind in the entry for the kind of an object."""
WORKLOAD_KIND: Final = "-"
"""Stands before the entries of the kind of a workload."""

_BITS: Final = 3
_SHORT: Final = 64


class Source(NamedTuple):
    """A table whose rows are in the index: its number, the columns that are read, and the entries of their values."""

    number: int
    columns: tuple[str, ...]
    entries: Callable[..., Sequence[str]]

    def place(self, row: int) -> int:
        """The number of a row of the table in the index."""
        return row << _BITS | self.number


def place_of(place: int) -> tuple[int, int]:
    """The number of a source, and the id of its row, given the number of a row in the index."""
    return place & (1 << _BITS) - 1, place >> _BITS


def described_in(language: str, name: str, document: str) -> Description:
    """The description of a policy, given its row, without the overrides of a configuration."""
    annotations: Any = dig(json.loads(document), "manifest", "metadata", "annotations")
    return described((language, name), text_map(annotations))


@lru_cache(maxsize=8192)
def _of_text(text: str) -> tuple[str, ...]:
    """The entries of a text that many rows have, such as a namespace."""
    return tuple(name_entries(text))


def _of_object(kind: int, namespace: str, name: str) -> Sequence[str]:
    return [*_of_text(namespace), *name_entries(name), f"{KIND}{kind}"]


def _of_workload(kind: str, namespace: str, name: str) -> Sequence[str]:
    return [*name_entries(namespace, name), *(f"{WORKLOAD_KIND}{entry}" for entry in entries(kind))]


def _of_verdict(outcome: str, message: str, excepted_by: str) -> Sequence[str]:
    """The entries of a message, or of the changes of drift as reports show them; both are templates."""
    if outcome != "wouldChange":
        return entries(message, excepted_by)
    drift = drift_of(filled(message, " ", " "))
    return entries(*map(str, (*drift.patch, *drift.together)), drift.refused, excepted_by)


def _of_kept(labels: str, annotations: str) -> Sequence[str]:
    """The entries of the values of labels and annotations: owners are among them."""
    values = (value for pairs in (labels, annotations) if pairs for _, value in orjson.loads(pairs))
    own = ((_of_text if len(value) <= _SHORT else entries)(value) for value in values)
    return list(dict.fromkeys(chain.from_iterable(own)))[:MOST_ENTRIES]


def _of_policy(language: str, name: str, document: str) -> Sequence[str]:
    description = described_in(language, name, document)
    return entries(name, description.title, description.category)


SOURCES: Final[Mapping[Table, Source]] = {
    OBJECTS: Source(0, ("kind", "namespace", "name"), _of_object),
    CHECKS: Source(1, ("policy", "binding", "param_namespace", "param_name", "expression"), entries),
    VERDICTS: Source(2, ("outcome", "message", "excepted_by"), _of_verdict),
    WORKLOADS: Source(3, ("kind", "namespace", "name"), _of_workload),
    KEPT: Source(4, ("labels", "annotations"), _of_kept),
    POLICIES: Source(5, ("language", "name", "document"), _of_policy),
}
