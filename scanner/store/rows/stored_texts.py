"""Texts as columns store them: templates of messages, drift and evidence; equal texts are stored once.

Most messages differ only in the object that they name, so marks stand for its name and namespace: U+0001 stands for the name, U+0002
for the namespace. Where a text has one of these characters itself, nothing is replaced, and U+0003 stands before each of them: every
text reads back unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, cast

import orjson

from scanner.model.outcome import NO_EVIDENCE, Change, Evidence, Reason, WouldChange
from scanner.model.texts import clean

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
    return _replace_word(_replace_word(text, name, NAME), namespace, NAMESPACE)


def fill_template(template: str, name: str, namespace: str) -> str:
    """The text of which `template_of` made a template for this name and namespace."""
    if template.isprintable():
        return template
    if ESCAPE in template:
        return _ESCAPED.sub(r"\1", template)
    return template.replace(NAME, name).replace(NAMESPACE, namespace)


def has_marks(template: str) -> bool:
    """Return whether a template must be filled."""
    return not template.isprintable() and _MARK.search(template) is not None


def _replace_word(text: str, word: str, mark: str) -> str:
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


# Drift as compact JSON, the text that `verdicts` stores: equal changes have equal texts.


def encode_drift(outcome: WouldChange) -> str:
    """The text of drift."""
    written = {
        "patch": _encode_changes(outcome.patch),
        "converges": outcome.converges,
        "together": _encode_changes(outcome.together),
        "orderMatters": outcome.order_matters,
        **({"undone": True} if outcome.undone else {}),
        **({"refused": outcome.refused} if outcome.refused else {}),
    }
    return json.dumps(written, separators=(",", ":"), sort_keys=True)


@lru_cache(maxsize=4096)
def decode_drift(text: str) -> WouldChange:
    """The drift of a text from `encode_drift`."""
    read: dict[str, Any] = json.loads(text)
    return WouldChange(
        patch=_decode_changes(read["patch"]),
        converges=bool(read["converges"]),
        together=_decode_changes(read["together"]),
        order_matters=bool(read["orderMatters"]),
        undone=bool(read.get("undone")),
        refused=str(read.get("refused", "")),
    )


def _encode_changes(changes: Iterable[Change]) -> list[list[object]]:
    return [[change.op, change.path, change.value, change.was] for change in changes]


def _decode_changes(changes: Iterable[list[Any]]) -> tuple[Change, ...]:
    return tuple(Change(op, cast("str", path), value, was=was) for op, path, value, was in changes)


# Evidence as compact JSON, the text that `evidence` stores: equal evidence has equal texts.


def encode_evidence(evidence: Evidence) -> str:
    """The text of evidence; empty without reasons. Texts are cleaned here: nested in JSON, unfit characters would be escapes."""
    if not evidence:
        return ""
    reasons = [
        [clean(reason.expression), clean(reason.value), clean(reason.path), clean(reason.variable), int(reason.erred)]
        for reason in evidence.reasons
    ]
    return orjson.dumps([evidence.left_out, *reasons]).decode()


@lru_cache(maxsize=4096)
def decode_evidence(text: str) -> Evidence:
    """The evidence of a text from `encode_evidence`."""
    if not text:
        return NO_EVIDENCE
    left_out, *reasons = orjson.loads(text)
    return Evidence(tuple(_decode_reason(*reason) for reason in reasons), left_out)


def _decode_reason(expression: str, value: str, path: str, variable: str, erred: Any) -> Reason:
    return Reason(expression, value, path, variable, erred=bool(erred))
