"""A route of notifications: to whom, and about what. The configuration has the routes of each command, so this imports little."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from scanner.posture.severity import Severity

UNOWNED_NAME: Final = "unowned"
"""The name that the globs of a route match for an object without an owner."""


@dataclass(frozen=True, slots=True)
class Route:
    """A receiver of notifications: problems of these owners and clusters, which are globs, of a severity or a worse one.

    The key is in a file or in a variable of the environment.
    """

    name: str
    url: str = field(repr=False)
    key_file: str = ""
    key_variable: str = ""
    owners: tuple[str, ...] = ()
    min_severity: Severity = Severity.INFO
    clusters: tuple[str, ...] = ()

    def is_about(self, cluster: str) -> bool:
        """Return whether the route is about a cluster, by its name."""
        return not self.clusters or _matches(cluster, self.clusters)

    def takes(self, owner: str, severity: Severity) -> bool:
        """Return whether the route is about problems of an owner and a severity."""
        return severity.at_least(self.min_severity) and (
            not self.owners or _matches(owner or UNOWNED_NAME, self.owners)
        )


def _matches(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
