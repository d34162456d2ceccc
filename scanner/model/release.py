"""Which Kubernetes release's rules judge a cluster: those of its server's minor version, as far as they are known.

Source of truth: `gitVersion` of a server's `/version`, the version of its binary. An emulated or a minimum compatibility
version changes what may be written, not how stored policies are evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

Minor: TypeAlias = tuple[int, int]
OLDEST: Final[Minor] = (1, 30)
NEWEST: Final[Minor] = (1, 37)
_VERSION: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")


@dataclass(frozen=True, slots=True)
class Release:
    """The minor version whose rules judge. `note` is empty, or a sentence: they are not those of the server itself."""

    rules: Minor
    note: str = ""

    @property
    def name(self) -> str:
        """Such as `1.36`."""
        return shown(self.rules)


def shown(minor: Minor) -> str:
    """A minor version as people write it."""
    return f"{minor[0]}.{minor[1]}"


def minor_of(version: str) -> Minor | None:
    """The minor version in `v1.36.2`, `1.36` or `v1.30.4-gke.100`, or None when there is none."""
    found = _VERSION.match(version)
    return (int(found[1]), int(found[2])) if found else None


def release_of(version: str) -> Release:
    """The rules for a server that calls itself so."""
    minor = minor_of(version)
    if minor is None:
        return Release(
            NEWEST, f"The server does not say its version: judged by the rules of Kubernetes {shown(NEWEST)}."
        )
    if minor > NEWEST:
        why = f"The server is Kubernetes {shown(minor)}, newer than the rules that Assay knows"
        return Release(NEWEST, f"{why}: judged by those of {shown(NEWEST)}.")
    if minor < OLDEST:
        why = f"The server is Kubernetes {shown(minor)}, older than the rules that Assay knows"
        return Release(OLDEST, f"{why}: judged by those of {shown(OLDEST)}.")
    return Release(minor)
