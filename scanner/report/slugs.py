"""File names for names that anybody may have chosen.

A name that is already a harmless file name is kept, as nearly every Kubernetes name is. Any other is reduced to
harmless characters and told apart by a hash: it can neither leave its folder, nor hide, nor take another's place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

_HARMLESS = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,98}[a-z0-9])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)(?:\..*)?")
"""Devices of Windows, whatever follows the first dot: a report may be unpacked there."""
_HARMFUL = re.compile(r"[^a-z0-9]+")
_HASH = 12


def slugs_of(names: Iterable[str]) -> dict[str, str]:
    """Find a file name, without ending, for every name; they differ even where letter case does not count."""
    slugs: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names), key=lambda it: (not _is_harmless(it), it)):
        slugs[name] = _free(name, taken)
        taken.add(slugs[name])
    return slugs


def _free(name: str, taken: set[str]) -> str:
    if _is_harmless(name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    stem = _HARMFUL.sub("-", name.lower())[:60].strip("-") or "name"
    lengths = range(_HASH, len(digest) + 1)
    return next(slug for length in lengths if (slug := f"{stem}-{digest[:length]}") not in taken)


def _is_harmless(name: str) -> bool:
    return _HARMLESS.fullmatch(name) is not None and _RESERVED.fullmatch(name) is None
