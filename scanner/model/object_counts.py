"""Counts of objects, besides those that a scan examines: objects left out by the user, and the counts of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """The number of stored objects by resource, such as `deployments.apps`, as the API server counts them about once a minute.

    `why_not` is the reason why they could not be read, or empty.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class ObjectCount:
    """The counts of a kind: the listed objects that the user's options excluded, and the server's at the start and the end.

    The server's counts are None if they were not read, or if the server does not count this kind.
    """

    excluded: int = 0
    at_start: int | None = None
    at_end: int | None = None
