"""The Kubernetes release whose rules are applied: that of the server's minor version, if Assay supports it.

Source of truth: `gitVersion` of a server's `/version`, the version of its binary. An emulated or a minimum compatibility
version changes which policies may be written, not how stored policies are evaluated.
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
    """The minor version whose rules are applied. `note` is empty, or the reason why this is not the server's version."""

    rules: Minor
    note: str = ""

    @property
    def name(self) -> str:
        """The minor version as text: `1.36`."""
        return format_minor(self.rules)


def format_minor(minor: Minor) -> str:
    """A minor version as text: `1.36`."""
    return f"{minor[0]}.{minor[1]}"


def minor_of(version: str) -> Minor | None:
    """The minor version in `v1.36.2`, `1.36` or `v1.30.4-gke.100`, or None for another text."""
    match = _VERSION.match(version)
    return (int(match[1]), int(match[2])) if match else None


def have_same_minor(first: str, second: str) -> bool:
    """Return whether two versions are patch releases of one minor version."""
    minor = minor_of(first)
    return minor is not None and minor == minor_of(second)


def release_of(version: str) -> Release:
    """The rules for a server that reports this version."""
    minor = minor_of(version)
    if minor is None:
        return Release(
            NEWEST, f"The server reports no version. Assay applied the rules of Kubernetes {format_minor(NEWEST)}."
        )
    if minor > NEWEST:
        why = f"The server is Kubernetes {format_minor(minor)}, which is newer than Assay supports"
        return Release(NEWEST, f"{why}. Assay applied the rules of Kubernetes {format_minor(NEWEST)}.")
    if minor < OLDEST:
        why = f"The server is Kubernetes {format_minor(minor)}, which is older than Assay supports"
        return Release(OLDEST, f"{why}. Assay applied the rules of Kubernetes {format_minor(OLDEST)}.")
    return Release(minor)
