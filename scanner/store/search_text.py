"""The entries of texts in the index of a search, and the words of a search: made here alone, so that every database answers equally.

A *name* is a run of letters and digits, joined by `-`, `.`, `_` or `:`, such as `web-frontend`. Each of its parts begins an entry, which
goes on with the parts that follow: `web-frontend` and `frontend`. A word matches a text if an entry of the text begins with each name of
the word: `web`, `front` and `web-fr` match, `end` does not. Case and accents do not count.

Source of truth for the form of names: RFC 1123 labels and subdomains, as `validation.IsDNS1123Subdomain` of apimachinery has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple
from unicodedata import category, normalize

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


class Word(NamedTuple):
    """A word of a search, and the beginnings of entries that it asks for: none if it has no letter and no digit."""

    text: str
    beginnings: tuple[str, ...]

    def matches(self, entries: Iterable[str]) -> bool:
        """Return whether a text with these entries matches the word."""
        own = list(entries)
        return bool(self.beginnings) and all(any(entry.startswith(begin) for entry in own) for begin in self.beginnings)


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a search. What is longer than `MOST_CHARACTERS` and `MOST_WORDS` does not count."""
    return tuple(Word(word, _beginnings(word)) for word in text[:MOST_CHARACTERS].split()[:MOST_WORDS])


def entries(*texts: str) -> list[str]:
    """The entries of a row with some texts, in the order of the texts and without repetition: at most `MOST_ENTRIES`."""
    unique: dict[str, None] = {}
    for text in texts:
        for name in _NAME.findall(_folded(text[:_READ])):
            unique.update(dict.fromkeys(_entries_of_name(name)))
            if len(unique) >= MOST_ENTRIES:
                return list(unique)[:MOST_ENTRIES]
    return list(unique)


def name_entries(*names: str) -> list[str]:
    """The entries of names of objects: those of `entries`, sooner."""
    own: list[str] = []
    for name in names:
        if not _PLAIN.fullmatch(name) or len(name) > _LENGTH:
            own += entries(name)
            continue
        joined = name.replace(".", "-")
        if joined.count("-") >= _PARTS:
            own += entries(name)
            continue
        own.append(joined)
        place = joined.find("-")
        while place >= 0:
            own.append(joined[place + 1 :])
            place = joined.find("-", place + 1)
    return own


def _entries_of_name(name: str) -> list[str]:
    parts = _JOINTS.split(name)
    return ["-".join(parts[first : first + _PARTS])[:_LENGTH] for first in range(len(parts))]


def _beginnings(word: str) -> tuple[str, ...]:
    """The first entry of each name in a word."""
    return tuple(dict.fromkeys(_entries_of_name(name)[0] for name in _NAME.findall(_folded(word))))


def _folded(text: str) -> str:
    """The text in one case and without accents."""
    if text.isascii():
        return text.lower()
    plain = normalize("NFKD", normalize("NFKD", text).casefold())
    return _IDEOGRAPH.sub(r"-\g<0>-", "".join(mark for mark in plain if not category(mark).startswith("M")))
