"""The part of the style sheet that a page can use, for pages that a report has by the thousand.

A rule is left out if its selectors name a class or an element that no word of the page is. Rules that are too clever for that are kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final

_BRACE: Final = re.compile(r"[{}]")
_NAME: Final = re.compile(r"(?:^|[\s>+~.])([A-Za-z][\w-]*)")
_WORD: Final = re.compile(r"[A-Za-z][\w-]*")
_SPACE: Final = re.compile(r"\s+")
_AROUND: Final = re.compile(r"\s*([;:,])\s*")


def used_style(style: str, words: Collection[str]) -> str:
    """The rules of a style sheet whose classes are among some words, without the spaces that only people need."""
    return _reduced(style, _words(style).intersection(words))


@lru_cache(maxsize=128)
def _words(style: str) -> frozenset[str]:
    """All words of a style sheet: the names of its selectors, and others."""
    return frozenset(_WORD.findall(style))


@lru_cache(maxsize=128)
def _reduced(style: str, words: frozenset[str]) -> str:
    """The part for some words. The pages of the web application are rendered one by one, and have few different sets of them."""
    return "\n".join(_used(style, words))


def _used(style: str, words: Collection[str]) -> Iterator[str]:
    for prelude, body in _rules(style):
        selector = _SPACE.sub(" ", prelude).strip()
        if selector.startswith("@media"):
            inner = "".join(_used(body, words))
            if inner:
                yield f"{selector}{{{inner}}}"
        elif selector.startswith("@"):
            yield f"{selector}{{{_SPACE.sub(' ', body)}}}"
        elif kept := _selectors(selector, words):
            yield f"{kept}{{{_declarations(body)}}}"


def _rules(style: str) -> Iterator[tuple[str, str]]:
    """The rules of a style sheet, or of a rule with rules in it: what stands before the braces, and between them."""
    start = opened = depth = 0
    for brace in _BRACE.finditer(style):
        if brace.group() == "}":
            depth -= 1
            if depth == 0:
                yield style[start:opened], style[opened + 1 : brace.start()]
                start = brace.end()
            continue
        if depth == 0:
            opened = brace.start()
        depth += 1


def _selectors(selector: str, words: Collection[str]) -> str:
    if "(" in selector:
        return selector
    parts = (part.strip() for part in selector.split(","))
    return ",".join(part for part in parts if all(name in words for name in _NAME.findall(part)))


def _declarations(body: str) -> str:
    text = _SPACE.sub(" ", body).strip().rstrip(";")
    return text if '"' in text else _AROUND.sub(r"\1", text)
