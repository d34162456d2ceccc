"""The kinds that no policy covers: an audit shows not only what it examined, but also what no rule concerns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class UncoveredKind:
    """A kind that the cluster serves and that no bound policy can match, in its preferred version."""

    api_version: str
    kind: str
