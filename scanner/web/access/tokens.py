"""Bearer tokens (RFC 6750): 256 random bits, of which the configuration has the SHA-256.

A fast hash is enough: unlike passwords, the values of 256 random bits are too many to try.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Final

from scanner.model.access_token import AccessToken
from scanner.web.access.refused import Refused

PREFIX: Final = "assay_"
"""The beginning of every token, by which scanners for secrets recognise it."""
_BYTES: Final = 32


def new_token() -> str:
    """A new token."""
    return f"{PREFIX}{token_urlsafe(_BYTES)}"


def digest_of(token: str) -> str:
    """The digest of a token, as the configuration has it."""
    return sha256(token.encode()).hexdigest()


class Tokens:
    """The tokens of the configuration."""

    def __init__(
        self, tokens: Sequence[AccessToken], today: Callable[[], date] = lambda: datetime.now(UTC).date()
    ) -> None:
        self._tokens = tuple(tokens)
        self._today = today

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def check_token(self, text: str) -> AccessToken:
        """The token that a client presents. Raises Refused for an unknown and for an expired one."""
        return self._find(digest_of(text))

    def has(self, digest: str) -> bool:
        """Return whether there is a token with a digest, and it is valid."""
        try:
            return bool(self._find(digest))
        except Refused:
            return False

    def _find(self, digest: str) -> AccessToken:
        # All tokens are compared, each in constant time: how long this takes says nothing about them.
        matches = [token for token in self._tokens if compare_digest(token.digest.encode(), digest.encode())]
        if not matches:
            raise Refused("unknown token")
        if not matches[0].is_valid_on(self._today()):
            raise Refused(f"the token {matches[0].name} has expired")
        return matches[0]
