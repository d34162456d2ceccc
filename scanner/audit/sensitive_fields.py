"""The sensitive fields of an object, recognised by their place and their name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import re2

from scanner.model.json import Json
from scanner.model.resource import LAST_APPLIED

MASK = "[redacted]"
Trail: TypeAlias = "tuple[str | int, ...]"
"""Keys and indexes, from the root of a document."""

NAMES_OF_SECRETS = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|token|secret|credential|bearer|jwt|cookie|auth|authori[sz]ation|dsn"
    r"|connection[-_.]?string|(?:api|access|account|client|encryption|master|private|secret|shared|signing|storage)[-_.]?key)"
    r"s?(?:[-_.]?(?:[0-9]{1,3}|old|new|previous|current|last|value|data|base64|b64|encoded|hash))?"
)
"""Names of one or several secrets, with an addition such as `_OLD` or `2`."""
_PARTS_OF_NAMES = (
    "pass",
    "pwd",
    "token",
    "secret",
    "credential",
    "bearer",
    "jwt",
    "cookie",
    "auth",
    "dsn",
    "string",
    "key",
)
"""One of them is a part of each name."""
_NAME = re.compile(rf"{NAMES_OF_SECRETS}$", re.IGNORECASE)
_QUOTE = r"(?:\\*[\"'])?"
_NAMED = re2.compile(
    rf"(?i)({NAMES_OF_SECRETS}{_QUOTE}[\s\pZ]*(?:=[\s\pZ]*{_QUOTE}|:[\s\pZ]+{_QUOTE}|:[\s\pZ]*\\*[\"']))"
    r"((?:(?:basic|bearer|digest|token)[\s\pZ]+)?[^\s\pZ\"',;&]+)",
)
_OTHER_SECRETS = (
    re2.compile(r"(\bBearer[\s\pZ]+)[\w.~+/=-]{8,}"),
    re2.compile(r"()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    re2.compile(r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"),
)
"""Each keeps its first group. RE2 reads a text once, however many beginnings of a match it has."""
_KEPT = rf"\1{MASK}"
_COPY = re2.compile(
    rf"\bkind{_QUOTE}\s*:\s*{_QUOTE}Secret\b|\bstringData\b"
    r"|\\*\"(?:data|env|httpHeaders)\\*\"\s*:\s*[\[{]|(?m:^[ \t]*(?:- +)?(?:data|env|httpHeaders):[ \t]*$)"
)
"""The text of a Secret, or of an object with data, variables or headers, as JSON, as JSON inside of JSON, or as YAML."""
_WORDS_OF_COPIES = ("kind", "data", "Data", "env", "Headers")
_ENCODED = re2.compile(
    r"\A\s*(?:eyJ|ewo|ewk|ew0K|H4sI|UEsDB|YXBpVmVyc2lvb|a2luZDo|LS0tLS1CRUdJTiB(?:SU0E|QUklW|FQy|FTkNS|PUEVO|EU0E))"
    r"[\w+/=\s]{20,}\z"
)
"""JSON, YAML, an archive or a private key in base64, as tools keep earlier versions of objects."""
_BEGINNINGS_OF_ENCODED = ("eyJ", "ewo", "ewk", "ew0K", "H4sI", "UEsDB", "YXBpVmVyc2lvb", "a2luZDo", "LS0tLS1CRUdJTiB")
_PASSWORD = re2.compile(r"(://[^/\s:]*:)([^/\s@]+)(@)")
_PORT = re.compile(r"\d{1,5}[?#]")
_WORD = re.compile(r'(?:[^\s"]|"(?![\s,:}\]]|\Z))+')
_URL_USER = re.compile(r"://(?!\[)[^/\s:@]*:(?!//|\d{1,5}[/?#])")
"""The start of a URL with a password. Neither an IPv6 address, nor a port before a path, nor the scheme of a second URL is one."""
_FLAG = re.compile(r"--?[A-Za-z][\w.-]*\Z")
_DATA = ("data", "stringData")
_SENSITIVE_FIELDS = frozenset({LAST_APPLIED, *_DATA, "value"})
_NAMING_FIELDS = ("name", "key")
_VARIABLES = ("env", "httpHeaders")
_ITEMS = frozenset({"key", "path", "mode"})
_REFERENCE = frozenset({"name", "namespace", "key", "kind", "group", "apiGroup", "apiVersion", "uid", "optional"})
_REFERENCES: Mapping[str, frozenset[str]] = {
    "imagePullSecrets": _REFERENCE,
    "secret": _ITEMS | {"defaultMode", "items", "name", "optional", "secretName"},
    "secrets": _REFERENCE | {"fieldPath", "resourceVersion"},
    "serviceAccountToken": frozenset({"audience", "expirationSeconds", "path"}),
}
"""Fields of Kubernetes whose names are those of secrets, and what they have where they only refer to one."""
_FLAGS = ("true", "false")
_DEEPEST = 32
_MOST_CONTAINERS = 100_000
_NAMES = 4096
_SHORT = 256
MAPPINGS = (dict, Mapping)
"""An isinstance test finds a dict in this tuple faster than it tests whether a dict is a Mapping."""
_SCALARS = (str, int, float, type(None))


def is_sensitive(container: object, key: object, trail: Trail | None) -> bool:
    """Return whether the value under a key or index of a map or list is sensitive as a whole; `trail` leads to that map or list.

    Without a trail the place of the list or map is unknown: then its shape decides.
    """
    if not may_be_sensitive(key):
        return False
    if isinstance(container, list) and isinstance(key, int):
        return _follows_flag(container, key)
    if not isinstance(container, MAPPINGS) or not isinstance(key, str):
        return False
    if key == LAST_APPLIED or key == "stringData":  # noqa: PLR1714 - two reasons
        return True
    if key in _DATA and container.get("kind") == "Secret":
        return True
    if key == "value" and (_is_variable(container, trail) or any(map(names_secret, _list_names(container)))):
        return True
    return is_secret_named(key, container.get(key))


def is_secret_named(name: str, value: object) -> bool:
    """Return whether a value with this name is a secret: no reference to one, not empty, and not true or false."""
    return names_secret(name) and not _is_open(value, _REFERENCES.get(name, frozenset()), 0)


def _list_names(container: Mapping[str, object]) -> Iterable[str]:
    """The texts by which a map names the value in it."""
    return (str(container.get(field, "")) for field in _NAMING_FIELDS)


def _follows_flag(arguments: Sequence[object], index: int) -> bool:
    """Return whether an argument of a command is the value of a flag such as `--token`."""
    if not 0 < index < len(arguments):
        return False
    flag, value = arguments[index - 1], arguments[index]
    if not isinstance(flag, str) or not flag.startswith("-") or not isinstance(value, str) or value.startswith("-"):
        return False
    return _FLAG.match(flag) is not None and names_secret(flag)


def _is_open(value: object, referring: frozenset[str], depth: int) -> bool:
    """Return whether a value with the name of a secret is none: empty, true or false, or a reference to another object.

    `referring` are the fields that such a reference may have.
    """
    if value is None or isinstance(value, bool) or value in ("", [], {}, *_FLAGS):
        return True
    if depth > _DEEPEST:
        return False
    if isinstance(value, MAPPINGS):
        return all(_is_open_field(key, item, referring, depth) for key, item in value.items())
    return isinstance(value, list) and all(
        isinstance(item, (*MAPPINGS, list)) and _is_open(item, referring, depth + 1) for item in value
    )


def _is_open_field(key: object, value: object, referring: frozenset[str], depth: int) -> bool:
    if key in referring and isinstance(value, _SCALARS):
        return True
    refers = isinstance(key, str) and key.endswith(("Ref", "Selector"))
    return _is_open(value, _REFERENCE if refers else referring, depth + 1)


@lru_cache(maxsize=_NAMES)
def may_be_sensitive(key: object) -> bool:
    """Return whether the value under a key may be sensitive; under any other key it never is."""
    return isinstance(key, int) or (isinstance(key, str) and (key in _SENSITIVE_FIELDS or names_secret(key)))


@lru_cache(maxsize=_NAMES)
def names_secret(name: str) -> bool:
    """Return whether a name ends like those of passwords and tokens."""
    return _NAME.search(name) is not None


def _is_variable(container: Mapping[str, object], trail: Trail | None) -> bool:
    """Return whether a map is an environment variable, or a header of a probe."""
    if trail is None:
        return "name" in container and isinstance(container.get("value"), str)
    return len(trail) > 1 and trail[-2] in _VARIABLES


def mask_named_secrets(text: str) -> str:
    """A text without named passwords, without the password of a URL, without tokens and private keys.

    Of a copy of an object that may contain secrets, nothing is shown.
    """
    if text.isascii() and not _may_name_secrets(text):
        return text
    text = text.encode("utf-8", "replace").decode()
    if _ENCODED.search(text) or _COPY.search(text):
        return MASK
    text = _PASSWORD.sub(_mask_url_part, text)
    text = _NAMED.sub(_mask_named, text)
    for pattern in _OTHER_SECRETS:
        text = pattern.sub(_KEPT, text)
    return _WORD.sub(_mask_url_password, text) if "://" in text and "@" in text else text


def holds_secret(text: str) -> bool:
    """Return whether a text has a part that `mask_named_secrets` masks."""
    return _short_holds_secret(text) if len(text) <= _SHORT else mask_named_secrets(text) != text


@lru_cache(maxsize=_NAMES)
def _short_holds_secret(text: str) -> bool:
    """Remembered, because objects have many short texts in common."""
    return mask_named_secrets(text) != text


def _mask_named(match: re2._Match[str]) -> str:
    """A name without its value; true and false are no secrets, as in `--anonymous-auth=false`."""
    name, value = match.groups()
    return match[0] if value.rstrip("]})\\").lower() in _FLAGS else f"{name}{MASK}"


def _mask_url_part(match: re2._Match[str]) -> str:
    """The part of a URL before its host without the password; a port with the `@` of a query is none."""
    before, password, end = match.groups()
    return match[0] if _PORT.match(password) else f"{before}{MASK}{end}"


def _mask_url_password(word: re.Match[str]) -> str:
    """A word without the password of its URL: drivers of databases accept `/` and `@` in it, so the last `@` ends it.

    Each word is read once from each side: a regular expression for the whole would take quadratic time on hostile texts.
    """
    text = word[0]
    end = text.rfind("@")
    user = _URL_USER.search(text, 0, max(end, 0))
    return f"{text[: user.end()]}{MASK}{text[end:]}" if user else text


def _may_name_secrets(text: str) -> bool:
    """Return whether an ASCII text has a part that each match has; in other texts, letters have other cases."""
    if "://" in text or "eyJ" in text or "-----BEGIN " in text or "Bearer" in text or "stringData" in text:
        return True
    if text.lstrip().startswith(_BEGINNINGS_OF_ENCODED):
        return True
    if "=" not in text and ":" not in text:
        return False
    lower = text.lower()
    return any(part in lower for part in _PARTS_OF_NAMES) or any(word in text for word in _WORDS_OF_COPIES)


class SensitiveFields:
    """The sensitive fields and texts of an object that is no Secret: they are recognised by their place, name and content."""

    __slots__ = ()

    def hides(self, container: object, key: object, trail: Trail) -> bool:
        """Return whether the value under a key or index of a map or list is sensitive as a whole; `trail` leads to it."""
        return may_be_sensitive(key) and is_sensitive(container, key, trail)

    def holds_secret(self, text: str) -> bool:
        """Return whether a part of a text is sensitive."""
        return holds_secret(text)

    def has_any(self, value: Json, trail: Trail) -> bool:
        """Return whether a value is or contains a sensitive text or field; True for a value too large to search."""
        if isinstance(value, str):
            return self.holds_secret(value)
        if isinstance(value, _SCALARS):
            return False
        stack: list[tuple[Json, Trail]] = [(value, trail)]
        for _ in range(_MOST_CONTAINERS):
            if not stack:
                return False
            container, place = stack.pop()
            for key, item in iterate_items(container):
                if self.hides(container, key, place):
                    return True
                if isinstance(item, str):
                    if self.holds_secret(item):
                        return True
                elif not isinstance(item, _SCALARS):
                    stack.append((item, (*place, key)))
        return True


FIELDS: Final = SensitiveFields()


def iterate_items(value: Json) -> Iterable[tuple[str | int, Json]]:
    """The parts of a list or map by index or key; none for any other value."""
    if isinstance(value, MAPPINGS):
        return value.items()
    return enumerate(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
