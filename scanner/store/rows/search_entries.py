"""The entries of texts in the index of a search, and the words of a search: made here alone, so that every database answers equally.

A *name* is a run of letters and digits, joined by `-`, `.`, `_` or `:`, such as `web-frontend`. Each of its parts begins an entry, which
goes on with the parts that follow: `web-frontend` and `frontend`. A word matches a text if an entry of the text begins with each name of
the word: `web`, `front` and `web-fr` match, `end` does not. Case and accents do not count.

Source of truth for the form of names: RFC 1123 labels and subdomains, as `validation.IsDNS1123Subdomain` of apimachinery has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple
from unicodedata import category, normalize

import orjson
from sqlalchemy import Table

from scanner.model.json import dig, text_map
from scanner.posture.severity import Description, describe_by_annotations
from scanner.store.rows.stored_texts import decode_drift, fill_template
from scanner.store.rows.tables import CHECKS, KEPT, OBJECTS, POLICIES, VERDICTS, WORKLOADS

MOST_CHARACTERS: Final = 256
"""The characters of a search that count."""
MOST_WORDS: Final = 8
"""The words of a search that count."""
MOST_ENTRIES: Final = 500
"""The entries of a text that are in the index: a long expression has thousands."""

_PARTS: Final = 8
_LENGTH: Final = 64
_READ: Final = 50_000
"""The characters of a text that are read for its entries."""
_NAME: Final = re.compile(r"[^\W_]+(?:[-._:]+[^\W_]+)*")
_JOINTS: Final = re.compile("[-._:]+")
_PLAIN: Final = re.compile("[a-z0-9]+(?:[-.][a-z0-9]+)*")
# Japanese and Chinese are written without spaces: each of these characters is a part of a name.
_IDEOGRAPH: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


class SearchWord(NamedTuple):
    """A word of a search, and the beginnings of entries that it asks for: none if it has no letter and no digit."""

    text: str
    beginnings: tuple[str, ...]

    def matches(self, entries: Iterable[str]) -> bool:
        """Return whether a text with these entries matches the word."""
        own = list(entries)
        return bool(self.beginnings) and all(any(entry.startswith(begin) for entry in own) for begin in self.beginnings)


def split_words(text: str) -> tuple[SearchWord, ...]:
    """The words of a search. What is longer than `MOST_CHARACTERS` and `MOST_WORDS` does not count."""
    return tuple(SearchWord(word, _list_beginnings(word)) for word in text[:MOST_CHARACTERS].split()[:MOST_WORDS])


def list_entries(*texts: str) -> list[str]:
    """The entries of a row with some texts, in the order of the texts and without repetition: at most `MOST_ENTRIES`."""
    unique: dict[str, None] = {}
    for text in texts:
        for name in _NAME.findall(_fold_text(text[:_READ])):
            unique.update(dict.fromkeys(_list_entries_of_name(name)))
            if len(unique) >= MOST_ENTRIES:
                return list(unique)[:MOST_ENTRIES]
    return list(unique)


def list_name_entries(*names: str) -> list[str]:
    """The entries of names of objects: those of `list_entries`, sooner."""
    entries: list[str] = []
    for name in names:
        if not _PLAIN.fullmatch(name) or len(name) > _LENGTH:
            entries += list_entries(name)
            continue
        joined = name.replace(".", "-")
        if joined.count("-") >= _PARTS:
            entries += list_entries(name)
            continue
        entries.append(joined)
        place = joined.find("-")
        while place >= 0:
            entries.append(joined[place + 1 :])
            place = joined.find("-", place + 1)
    return entries


def _list_entries_of_name(name: str) -> list[str]:
    parts = _JOINTS.split(name)
    return ["-".join(parts[first : first + _PARTS])[:_LENGTH] for first in range(len(parts))]


def _list_beginnings(word: str) -> tuple[str, ...]:
    """The first entry of each name in a word."""
    return tuple(dict.fromkeys(_list_entries_of_name(name)[0] for name in _NAME.findall(_fold_text(word))))


def _fold_text(text: str) -> str:
    """The text in one case and without accents."""
    if text.isascii():
        return text.lower()
    plain = normalize("NFKD", normalize("NFKD", text).casefold())
    return _IDEOGRAPH.sub(r"-\g<0>-", "".join(mark for mark in plain if not category(mark).startswith("M")))


# The tables whose rows a search finds by words, and the entries of their rows.
#
# Findings are not among them: they refer to these rows. An entry that begins with `-` is for the search itself: no
# word begins so.

KIND: Final = "--"
"""Stands before the id of a kind in the entry for the kind of an object."""
WORKLOAD_KIND: Final = "-"
"""Stands before the entries of the kind of a workload."""

_BITS: Final = 3
_SHORT: Final = 64


class IndexedTable(NamedTuple):
    """A table whose rows are in the index: its number, the columns that are read, and the entries of their values."""

    number: int
    columns: tuple[str, ...]
    entries: Callable[..., Sequence[str]]

    def encode_place(self, row: int) -> int:
        """The number of a row of the table in the index."""
        return row << _BITS | self.number


def decode_place(place: int) -> tuple[int, int]:
    """The number of a source, and the id of its row, given the number of a row in the index."""
    return place & (1 << _BITS) - 1, place >> _BITS


def describe_policy(language: str, name: str, document: str) -> Description:
    """The description of a policy, given its row, without the overrides of a configuration."""
    annotations: Any = dig(json.loads(document), "manifest", "metadata", "annotations")
    return describe_by_annotations((language, name), text_map(annotations))


@lru_cache(maxsize=8192)
def _list_text_entries(text: str) -> tuple[str, ...]:
    """The entries of a text that many rows have, such as a namespace."""
    return tuple(list_name_entries(text))


def _list_object_entries(kind: int, namespace: str, name: str) -> Sequence[str]:
    return [*_list_text_entries(namespace), *list_name_entries(name), f"{KIND}{kind}"]


def _list_workload_entries(kind: str, namespace: str, name: str) -> Sequence[str]:
    return [*list_name_entries(namespace, name), *(f"{WORKLOAD_KIND}{entry}" for entry in list_entries(kind))]


def _list_verdict_entries(outcome: str, message: str, excepted_by: str) -> Sequence[str]:
    """The entries of a message, or of the changes of drift as reports show them; both are templates."""
    if outcome != "wouldChange":
        return list_entries(message, excepted_by)
    drift = decode_drift(fill_template(message, " ", " "))
    return list_entries(*map(str, (*drift.patch, *drift.together)), drift.refused, excepted_by)


def _list_kept_entries(labels: str, annotations: str) -> Sequence[str]:
    """The entries of the values of labels and annotations: owners are among them."""
    values = (value for pairs in (labels, annotations) if pairs for _, value in orjson.loads(pairs))
    entries = ((_list_text_entries if len(value) <= _SHORT else list_entries)(value) for value in values)
    return list(dict.fromkeys(chain.from_iterable(entries)))[:MOST_ENTRIES]


def _list_policy_entries(language: str, name: str, document: str) -> Sequence[str]:
    description = describe_policy(language, name, document)
    return list_entries(name, description.title, description.category)


SOURCES: Final[Mapping[Table, IndexedTable]] = {
    OBJECTS: IndexedTable(0, ("kind", "namespace", "name"), _list_object_entries),
    CHECKS: IndexedTable(1, ("policy", "binding", "param_namespace", "param_name", "expression"), list_entries),
    VERDICTS: IndexedTable(2, ("outcome", "message", "excepted_by"), _list_verdict_entries),
    WORKLOADS: IndexedTable(3, ("kind", "namespace", "name"), _list_workload_entries),
    KEPT: IndexedTable(4, ("labels", "annotations"), _list_kept_entries),
    POLICIES: IndexedTable(5, ("language", "name", "document"), _list_policy_entries),
}
