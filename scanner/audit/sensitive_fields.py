"""The sensitive fields of an object, recognised by their place and their name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import re2

from scanner.model.json import Json
from scanner.model.resource import LAST_APPLIED

MASK = "[redacted]"
Trail: TypeAlias = "tuple[str | int, ...]"
"""Keys and indexes, from the root of a document."""

_NAME = re.compile(
    r"(?:pass(?:word|wd|phrase)?|token|secret|credentials?|api[-_.]?key|access[-_.]?key|private[-_.]?key|auth|authori[sz]ation|cookie)$",
    re.IGNORECASE,
)
_NAMED_SECRETS = (
    re2.compile(
        r"(?i)((?:pass(?:word|wd|phrase)?|token|secret|credentials?|api[-_]?key|access[-_]?key|private[-_]?key)"
        r"[\"']?[\s\pZ]*(?:=[\s\pZ]*[\"']?|:[\s\pZ]+[\"']?|:[\s\pZ]*[\"']))[^\s\pZ\"',;&]+",
    ),
    re2.compile(r"()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    re2.compile(r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"),
)
"""Each keeps its first group. RE2 reads a text once, however many beginnings of a match it has."""
_KEPT = rf"\1{MASK}"
_PASSWORD = re2.compile(r"(://[^/\s:]*:)([^/\s@]+)(@)")
_PORT = re.compile(r"\d{1,5}[?#]")
_WORD = re.compile(r'(?:[^\s"]|"(?![\s,:}\]]|\Z))+')
_URL_USER = re.compile(r"://(?!\[)[^/\s:@]*:(?!//|\d{1,5}[/?#])")
"""The start of a URL with a password. Neither an IPv6 address, nor a port before a path, nor the scheme of a second URL is one."""
_PARTS_OF_NAMES = ("pass", "token", "secret", "credential", "key")
_DATA = ("data", "stringData")
_SENSITIVE_FIELDS = frozenset({LAST_APPLIED, *_DATA, "value"})
_VARIABLES = ("env", "httpHeaders")
_MOST_CONTAINERS = 100_000
_NAMES = 4096
MAPPINGS = (dict, Mapping)
"""An isinstance test finds a dict in this tuple faster than it tests whether a dict is a Mapping."""
_SCALARS = (str, int, float, type(None))


def is_sensitive(container: object, key: object, trail: Trail | None) -> bool:
    """Return whether the value under a key of a list or map is sensitive as a whole; `trail` leads to that list or map.

    Without a trail the place of the list or map is unknown: then its shape decides.
    """
    if not may_be_sensitive(key) or not isinstance(container, MAPPINGS) or not isinstance(key, str):
        return False
    if key == LAST_APPLIED or key == "stringData":  # noqa: PLR1714 - two reasons
        return True
    if key in _DATA and container.get("kind") == "Secret":
        return True
    if key == "value" and (_is_variable(container, trail) or names_secret(str(container.get("name", "")))):
        return True
    return names_secret(key) and isinstance(container.get(key), str)


@lru_cache(maxsize=_NAMES)
def may_be_sensitive(key: object) -> bool:
    """Return whether the value under a key may be sensitive; under any other key it never is."""
    return isinstance(key, str) and (key in _SENSITIVE_FIELDS or names_secret(key))


@lru_cache(maxsize=_NAMES)
def names_secret(name: str) -> bool:
    """Return whether a name ends like those of passwords and tokens."""
    return _NAME.search(name) is not None


def _is_variable(container: Mapping[str, object], trail: Trail | None) -> bool:
    """Return whether a map is an environment variable, or a header of a probe."""
    if trail is None:
        return "name" in container and isinstance(container.get("value"), str)
    return len(trail) > 1 and trail[-2] in _VARIABLES


def without_named_secrets(text: str) -> str:
    """A text without named passwords, without the password of a URL, without tokens and private keys."""
    if text.isascii() and not _may_name_secrets(text):
        return text
    text = text.encode("utf-8", "replace").decode()
    text = _PASSWORD.sub(_without_password, text)
    for pattern in _NAMED_SECRETS:
        text = pattern.sub(_KEPT, text)
    return _WORD.sub(_without_url_password, text) if "://" in text and "@" in text else text


def _without_password(match: re2._Match[str]) -> str:
    """The part of a URL before its host without the password; a port with the `@` of a query is none."""
    before, password, end = match.groups()
    return match[0] if _PORT.match(password) else f"{before}{MASK}{end}"


def _without_url_password(word: re.Match[str]) -> str:
    """A word without the password of its URL: drivers of databases accept `/` and `@` in it, so the last `@` ends it.

    Each word is read once from each side: a regular expression for the whole would take quadratic time on hostile texts.
    """
    text = word[0]
    end = text.rfind("@")
    user = _URL_USER.search(text, 0, max(end, 0))
    return f"{text[: user.end()]}{MASK}{text[end:]}" if user else text


def _may_name_secrets(text: str) -> bool:
    """Return whether an ASCII text has a part that each match of `_NAMED_SECRETS` has; in other texts, letters have other cases."""
    if "://" in text or "eyJ" in text or "-----BEGIN " in text:
        return True
    if "=" not in text and ":" not in text:
        return False
    lower = text.lower()
    return any(part in lower for part in _PARTS_OF_NAMES)


def anything_sensitive(value: Json, trail: Trail) -> bool:
    """Return whether a value contains a sensitive field; True for a value too large to search."""
    if isinstance(value, _SCALARS):
        return False
    stack: list[tuple[Json, Trail]] = [(value, trail)]
    for _ in range(_MOST_CONTAINERS):
        if not stack:
            return False
        container, place = stack.pop()
        for key, item in items(container):
            if is_sensitive(container, key, place):
                return True
            if not isinstance(item, _SCALARS):
                stack.append((item, (*place, key)))
    return True


def items(value: Json) -> Iterable[tuple[str | int, Json]]:
    """The parts of a list or map by index or key; none for any other value."""
    if isinstance(value, MAPPINGS):
        return value.items()
    return enumerate(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
