"""Rendered pages in memory: a page about a finished scan never changes, so the pages that are read often are made once.

They are kept compressed: ten times as many pages fit, and unpacking one takes a small part of the time of making it.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from hashlib import sha256
from threading import Lock
from typing import Final, NamedTuple

MOST: Final = 16_000_000
"""The bytes of all kept pages, compressed."""
_LEVEL: Final = 1
"""The fastest level: pages repeat themselves so much that a better one saves little."""


class Rendered(NamedTuple):
    """A page as bytes, and its entity tag."""

    body: bytes
    etag: str


class RenderedPages:
    """The latest pages by key. Two threads may render one page at the same time; both results are equal."""

    def __init__(self, most: int = MOST) -> None:
        self._most: Final = most
        self._pages: Final[OrderedDict[Hashable, Rendered]] = OrderedDict()
        """With compressed bodies."""
        self._size = 0
        self._lock: Final = Lock()

    def page(self, key: Hashable, render: Callable[[], str | bytes]) -> Rendered:
        """The page with a key, rendered if it is not kept."""
        with self._lock:
            kept = self._pages.get(key)
            if kept is not None:
                self._pages.move_to_end(key)
        if kept is not None:
            return Rendered(zlib.decompress(kept.body), kept.etag)
        made = rendered(render())
        packed = Rendered(zlib.compress(made.body, _LEVEL), made.etag)
        with self._lock:
            if key not in self._pages:
                self._pages[key] = packed
                self._size += len(packed.body)
            while self._size > self._most:
                _, oldest = self._pages.popitem(last=False)
                self._size -= len(oldest.body)
        return made


def rendered(content: str | bytes) -> Rendered:
    """A page with its entity tag."""
    body = content.encode() if isinstance(content, str) else content
    return Rendered(body, f'"{sha256(body).hexdigest()[:32]}"')
