"""The frame of pages that a report has by the thousand: a template rendered once, into which each page is filled.

The places in a frame are HTML comments. Text of a cluster cannot look like one, because templates escape its `<`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

_PLACE: Final = re.compile(r"<!--place:([a-z]+)-->")


def place(name: str) -> Markup:
    """A place for a template to print; its name has lower-case letters alone."""
    return Markup(f"<!--place:{name}-->")  # noqa: S704 - a name of this program in a comment


class Frame:
    """A rendered page with places. The pages differ only in what is filled into these."""

    def __init__(self, page: str) -> None:
        self._parts: Final = _PLACE.split(page)

    def filled(self, texts: Mapping[str, str]) -> str:
        """The page with HTML in each of its places. Raises KeyError if a place has no text."""
        parts = self._parts
        return "".join(texts[part] if number % 2 else part for number, part in enumerate(parts))
