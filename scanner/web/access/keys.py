"""The public keys of a provider or a proxy: a JSON Web Key Set (RFC 7517), kept and read again when its keys change.

A token that names an unknown key makes the set be read again, but not more than twice a minute: every client can send such tokens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Final

import orjson
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet

from scanner.files import SETTINGS, read_file
from scanner.model.json import Json
from scanner.web.access.exchange import Shared, document_at
from scanner.web.access.refused import ProviderUnavailable

_OLD: Final = 3600.0
"""Seconds after which the keys are read again: a key that was withdrawn must not count for ever."""
_PAUSE: Final = 30.0
"""Seconds between two readings."""
_KINDS: Final = ("RSA", "EC", "OKP")
"""The kinds of asymmetric keys."""


class Keys:
    """The keys that `load` reads."""

    def __init__(self, load: Callable[[], Awaitable[Json]], clock: Callable[[], float] = monotonic) -> None:
        self._load = load
        self._clock = clock
        self._reading = Shared(self._read)
        self._keys: KeySet | None = None
        self._read_at = float("-inf")
        self._tried_at = float("-inf")

    async def current(self) -> KeySet:
        """The keys. Raises ProviderUnavailable if they could never be read."""
        if self._keys is None or self._clock() - self._read_at > _OLD:
            return await self._reading.answer()
        return self._keys

    async def newer(self, keys: KeySet) -> KeySet | None:
        """Keys that are newer than some that do not have the right one; None if there are none yet."""
        newer = await self._reading.answer()
        return newer if newer is not keys else None

    async def _read(self) -> KeySet:
        """Read the keys again, unless that was tried just now; the old ones count as long as new ones cannot be read."""
        if self._keys is None or self._clock() - self._tried_at >= _PAUSE:
            self._tried_at = self._clock()
            try:
                self._keys = key_set_of(await self._load())
                self._read_at = self._clock()
            except ProviderUnavailable:
                if self._keys is None:
                    raise
        return self._keys


def keys_at(place: str) -> Keys:
    """The keys at a URL or a path."""
    if "://" in place:
        return Keys(lambda: document_at(place))

    async def read() -> Json:
        return key_document(Path(place))

    return Keys(read)


def key_document(path: Path) -> Json:
    """The document in a file. Raises ProviderUnavailable if it cannot be read."""
    try:
        document: Json = orjson.loads(read_file(path, SETTINGS))
    except (OSError, ValueError) as error:
        raise ProviderUnavailable(f"the keys in {path} cannot be read: {error}") from error
    return document


def key_set_of(document: Json) -> KeySet:
    """The keys of a document that can verify signatures; others are left out. Raises ProviderUnavailable without any."""
    listed = document.get("keys") if isinstance(document, dict) else None
    keys = [key for each in (listed if isinstance(listed, list) else []) if (key := _key(each)) is not None]
    if not keys:
        raise ProviderUnavailable("the key set has no key that can verify signatures")
    return KeySet(keys)


def _key(document: Json) -> Key | None:
    if not isinstance(document, dict) or document.get("kty") not in _KINDS or document.get("use", "sig") != "sig":
        return None
    try:
        return JWKRegistry.import_key(document)
    except (JoseError, ValueError, TypeError):
        return None
