"""URLs in messages: without what can be a secret in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

# A password may contain slashes, and the query may contain a token.
_USER_INFO: Final = re.compile(r"//.*@", re.DOTALL)
_QUERY: Final = re.compile(r"[?#].*", re.DOTALL)
_USER: Final = re.compile(r"//(.*)@", re.DOTALL)


def remove_password(url: str) -> str:
    """The URL without user, password and query."""
    return _QUERY.sub("", _USER_INFO.sub("//", url))


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL alone, because a path may be a secret as well; empty for a text that is no URL."""
    try:
        parts = urlsplit(remove_password(url))
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""


def secrets_of_url(url: str) -> Iterator[str]:
    """User and password in a URL as they are sent, and the password alone; a user without a password is often a token."""
    for user_info in _USER.findall(url):
        user, colon, password = user_info.partition(":")
        yield unquote(f"{user}{colon}{password}")
        yield from (password, unquote(password))
