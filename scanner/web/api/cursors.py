"""Cursors: the place in a list after which the next page begins, with the scan of the list, as an opaque text.

A finished scan does not change, so the pages that follow each other by cursors have every item once, whatever is scanned meanwhile.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from scanner.web.refusals import BadRequest

_HIGHEST: Final = 2**53
_Number: TypeAlias = Annotated[int, Meta(ge=-_HIGHEST, le=_HIGHEST)]
_DECODER: Final = msgspec.json.Decoder(
    tuple[Annotated[str, Meta(max_length=100)], Annotated[list[_Number], Meta(max_length=4)]]
)
NOT_HERE: Final = "after: the list has no such place. Begin with its first page."


class Cursor(NamedTuple):
    """The id of the scan of a list, empty for a list that is about no single scan, and the key of the last item."""

    scan: str
    key: tuple[int, ...]

    def text(self) -> str:
        """The cursor for `next`."""
        return urlsafe_b64encode(msgspec.json.encode((self.scan, self.key))).decode().rstrip("=")

    def numbers(self, count: int) -> tuple[int, ...]:
        """The key of a list whose keys have so many numbers. Raises BadRequest."""
        if len(self.key) != count:
            raise BadRequest(NOT_HERE)
        return self.key


def cursor_of(text: str) -> Cursor | None:
    """The cursor in a text, or None without one. Raises BadRequest for a text that is no cursor."""
    if not text:
        return None
    try:
        scan, key = _DECODER.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError as error:
        raise BadRequest("after: this is no `next` of a page of this API.") from error
    return Cursor(scan, tuple(key))
