"""Texts as templates, so that findings of different objects share them: marks stand for the name and namespace of the object.

Most messages differ only in the object that they name. U+0001 stands for the name, U+0002 for the namespace. Where a text has
one of these characters itself, nothing is replaced, and U+0003 stands before each of them: every text reads back unchanged.
"""

from __future__ import annotations

import re
from typing import Final

NAME: Final = "\x01"
NAMESPACE: Final = "\x02"
ESCAPE: Final = "\x03"

_MARK = re.compile("[\x01-\x03]")
_ESCAPED = re.compile("\x03(.)", re.DOTALL)
_WITHIN_WORDS: Final = "-_"


def template_of(text: str, name: str, namespace: str) -> str:
    """The template of a text about the object with this name and namespace, which is empty for a cluster-scoped object."""
    if not text.isprintable() and _MARK.search(text):
        return _MARK.sub(lambda mark: ESCAPE + mark[0], text)
    return _replaced(_replaced(text, name, NAME), namespace, NAMESPACE)


def filled(template: str, name: str, namespace: str) -> str:
    """The text of which `template_of` made a template for this name and namespace."""
    if template.isprintable():
        return template
    if ESCAPE in template:
        return _ESCAPED.sub(r"\1", template)
    return template.replace(NAME, name).replace(NAMESPACE, namespace)


def has_marks(template: str) -> bool:
    """Return whether a template must be filled."""
    return not template.isprintable() and _MARK.search(template) is not None


def _replaced(text: str, word: str, mark: str) -> str:
    """The text with a mark in place of a word; occurrences inside longer words stay, because they rarely mean the object."""
    start = text.find(word) if word else -1
    if start < 0 or _MARK.search(word):
        return text
    parts: list[str] = []
    position = 0
    while start >= 0:
        end = start + len(word)
        if _is_whole_word(text, start, end):
            parts += text[position:start], mark
            position = end
        start = text.find(word, max(position, start + 1))
    return "".join([*parts, text[position:]])


def _is_whole_word(text: str, start: int, end: int) -> bool:
    return not (_continues_word(text[start - 1 : start]) or _continues_word(text[end : end + 1]))


def _continues_word(character: str) -> bool:
    return character.isalnum() or (character != "" and character in _WITHIN_WORDS)
