"""Masks the credentials that this process sends, in every text that comes back from the server, the proxy or the database.

A server or a proxy that fails may repeat a request with its headers, so each edge gives its texts to the `OwnSecrets` of what it sent.
A secret is recognised as it is and in other letter cases, as a part of a longer text in base64, in hexadecimal digits, and with any of
its characters escaped as in a URL, JSON, a program or HTML. Of a long secret, a part is recognised as well.

The content of objects is not changed here: a Secret may hold the token of a scan, and policies evaluate what the cluster has.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Final

import re2

from scanner.audit.sensitive_fields import MASK
from scanner.model.json import Json

SHORTEST: Final = 4
"""Characters of the shortest secret that is masked: a shorter one is a part of too many words."""
_SHORTEST_ENCODED: Final = 6
_PART: Final = 16
"""Characters of a part by which a long secret is recognised: each part of 31 characters has one of them."""
_MEMORY: Final = 256 << 20
_RUN: Final = r"\w+/.~%\\\-"
"""Characters beside a part that belong to the same secret."""
_TOKEN: Final = re2.compile(f"[{_RUN}]+")
_BACKSLASH: Final = r"(?:\\|%(?:25)*5c)+"
_ENTITY: Final = rf"(?:{_BACKSLASH})?(?:&|%(?:25)*26)(?:amp(?:;|%(?:25)*3b))*"
_NUMBER: Final = f"{_ENTITY}(?:#|%(?:25)*23)"
_END: Final = "(?:;|%(?:25)*3b)"
"""The signs of escapes, which a URL escapes again."""
_LATIN_1: Final = 256
_BASE64: Final = {"+": r"(?:[-+ ]|%(?:25)*2b|\\+u002b)", "/": r"(?:\\*[/_]|%(?:25)*2f|\\+u002f)"}


class OwnSecrets:
    """The secrets that are sent to one party. Threads may share it."""

    def __init__(self, *secrets: str) -> None:
        """Begin with these secrets; empty texts and those of fewer than `SHORTEST` characters are left out."""
        self._secrets: frozenset[str] = frozenset()
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Mask these texts as well, from now on."""
        stripped = {_replace_surrogates(secret).strip() for secret in secrets}
        if new := {secret for secret in stripped if len(secret) >= SHORTEST} - self._secrets:
            self._secrets |= new

    def mask(self, text: str) -> str:
        """The text without the secrets."""
        if not text or not self._secrets:
            return text
        return str(_make_pattern(self._secrets).sub(lambda _: MASK, _replace_surrogates(text)))

    def mask_document(self, value: Json) -> Json:
        """A document without the secrets, in its texts and in its keys."""
        match value:
            case str():
                return self.mask(value)
            case bool() | int() | float() | None:
                return value
            case Mapping():
                return {self.mask(key): self.mask_document(item) for key, item in value.items()}
            case _:
                return [self.mask_document(item) for item in value]

    def occur_in(self, data: bytes) -> bool:
        """Return whether a text in UTF-8 has a secret."""
        return bool(self._secrets) and _make_pattern(self._secrets).search(data.decode(errors="replace")) is not None


NO_SECRETS: Final = OwnSecrets()
"""For a party to which no secret is sent."""


def _replace_surrogates(text: str) -> str:
    """The text without halves of characters, which RE2 does not read."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@lru_cache(maxsize=64)
def _make_pattern(secrets: frozenset[str]) -> re2._Regexp[str]:
    """A pattern of all forms of some secrets. RE2 reads a text once, however many forms there are."""
    options = re2.Options()
    options.case_sensitive = False
    options.max_mem = _MEMORY
    return re2.compile(
        "|".join(form for secret in sorted(secrets, key=len, reverse=True) for form in _write_forms(secret)), options
    )


def _write_forms(secret: str) -> Iterator[str]:
    if len(secret) < 2 * _PART:
        yield _spell_text(secret, _spell)
    else:
        # A token is masked to its end by its parts and what is beside them; other texts have more signs.
        is_token = _TOKEN.fullmatch(secret) is not None
        yield from () if is_token else (_spell_text(secret, _spell_in_token),)
        run = f"[{_RUN if is_token else f'{_RUN}&#;'}{''.join(sorted(re2.escape(char) for char in set(secret) if not char.isspace()))}]*"
        forms = [_spell_text(part, spell) for part in _split(secret) for spell in (_spell_in_token, _escape_for_url)]
        yield f"{run}(?:{'|'.join(forms)}){run}=*"
    parts = (part for text in (*_encode_at_shifts(secret.encode()), secret.encode().hex()) for part in _split(text))
    yield rf"[\w+/%-]*(?:{'|'.join(''.join(_BASE64.get(char) or char for char in part) for part in parts)})[\w+/%-]*=*"


def _spell_text(text: str, spell: Callable[[str], str]) -> str:
    return f"(?:{''.join(map(spell, text))})"


def _split(text: str) -> list[str]:
    """The parts by which a text is recognised: a short one as a whole."""
    if len(text) < 2 * _PART:
        return [text]
    return [*(text[start : start + _PART] for start in range(0, len(text) - _PART, _PART)), text[-_PART:]]


def _encode_at_shifts(secret: bytes) -> Iterator[str]:
    """The characters of base64 that are the same wherever the secret stands in a longer text: at three places."""
    for shift in range(3):
        whole = b64encode(bytes(shift) + secret).decode().rstrip("=")
        # The first and the last characters share bits with the bytes beside the secret.
        inner = whole[(0, 2, 3)[shift] : -1 if (shift + len(secret)) % 3 else None]
        if len(inner) >= _SHORTEST_ENCODED:
            yield inner


def _escape_for_url(char: str) -> str:
    """A pattern of a character as a URL has it; the signs of that may be escaped again."""
    return "".join(f"%(?:25)*{octet:02x}" for octet in char.encode())


def _spell_in_token(char: str) -> str:
    """A pattern of a character of a long secret, whose letters and digits are escaped all together or not at all."""
    return char if char.isascii() and char.isalnum() else _spell(char)


@lru_cache(maxsize=4096)
def _spell(char: str) -> str:
    """A pattern of a character in each escaped form, and as it is."""
    octets, code = char.encode(), ord(char)
    forms = [
        _escape_for_url(char),
        "".join(f"{_BACKSLASH}x{octet:02x}" for octet in octets),
        "".join(f"{_BACKSLASH}u{unit}" for unit in _split_utf16(char)),
        f"{_BACKSLASH}u{code:08x}",
        f"{_NUMBER}0*{code}{_END}",
        f"{_NUMBER}x0*{code:x}{_END}",
    ]
    if len(octets) > 1 and code < _LATIN_1:
        forms.append(f"{_BACKSLASH}x{code:02x}")
    if not char.isalnum():
        forms.append(f"{_BACKSLASH}(?:{re2.escape(char)}|{_escape_for_url(char)})")
        forms += [f"{_ENTITY}{escape(char)[1:-1]}{_END}"] if escape(char) != char else []
        forms += [r"\+|%(?:25)*2b"] if char == " " else []
    return f"(?:{'|'.join((*forms, re2.escape(char)))})"


def _split_utf16(char: str) -> list[str]:
    """The digits of the escapes that JSON has for a character; two for one beyond the first 65,536."""
    data = char.encode("utf-16-be").hex()
    return [data[start : start + 4] for start in range(0, len(data), 4)]
