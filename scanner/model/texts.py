"""Texts that any database stores: NUL and lone surrogates, which PostgreSQL rejects, become U+FFFD."""

from __future__ import annotations

import re

_UNFIT = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without characters that a database rejects."""
    return text if text.isascii() and "\0" not in text else _UNFIT.sub("\ufffd", text)
