"""Safe file names for arbitrary names.

A name that is a safe file name is kept, as nearly every Kubernetes name is. Any other name is reduced to safe characters
and gets a hash: it can neither leave its folder, nor be a hidden file, nor replace another file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

_SAFE = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,98}[a-z0-9])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)(?:\..*)?")
"""Device names of Windows, with any ending: a report may be unpacked there."""
_UNSAFE = re.compile(r"[^a-z0-9]+")
_HASH = 12


def slugs_of(names: Iterable[str]) -> dict[str, str]:
    """A file name without ending for every name; they differ also on file systems that ignore case."""
    slugs: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names), key=lambda name: (not _is_safe(name), name)):
        slugs[name] = _free(name, taken)
        taken.add(slugs[name])
    return slugs


def _free(name: str, taken: set[str]) -> str:
    if _is_safe(name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    stem = _UNSAFE.sub("-", name.lower())[:60].strip("-") or "name"
    lengths = range(_HASH, len(digest) + 1)
    return next(slug for length in lengths if (slug := f"{stem}-{digest[:length]}") not in taken)


def _is_safe(name: str) -> bool:
    return _SAFE.fullmatch(name) is not None and _RESERVED.fullmatch(name) is None
