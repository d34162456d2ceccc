"""Rejects names of policies and namespaces that a stored scan does not have: a typing error must not look like a clean cluster."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, Final

from scanner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from scanner.model.scans.scan import StoredFinding
    from scanner.model.scans.stored_scan import StoredScan

_SHOWN: Final = 10
CLUSTER_SCOPED: Final = "_cluster"


def reject_unknown_names(
    record: StoredScan, *, policies: Iterable[str], namespaces: Iterable[str], titles: Collection[str] = ()
) -> None:
    """Raise UsageError for a pattern that no policy, or no namespace, of a scan matches. Names of resolved findings are known."""
    for pattern in policies:
        own = sorted({*(used.policy.name for used in record.policies), *(key.policy for key in record.tallies)})
        if not _matches(pattern, chain(own, titles, (stored.finding.policy for stored in _findings(record)))):
            raise UsageError(f"--policy {pattern}: scan {record.scan.id} has no such policy. It has {_listed(own)}")
    for pattern in namespaces:
        own = sorted({key.namespace for key in record.tallies} - {""})
        if pattern != CLUSTER_SCOPED and not _matches(pattern, chain(own, _other_namespaces(record))):
            raise UsageError(
                f"--namespace {pattern}: scan {record.scan.id} has no such namespace. It evaluated objects in {_listed(own)}"
            )


def _other_namespaces(record: StoredScan) -> Iterator[str]:
    """The namespaces without an evaluated object, which are seldom asked for; those of resolved findings may be gone."""
    yield from record.namespaces()
    yield from (stored.finding.namespace for stored in _findings(record))


def _findings(record: StoredScan) -> Iterator[StoredFinding]:
    """The findings of a scan, those that it did not check and the resolved ones included."""
    return (each.stored for each in record.by_problem())


def _matches(pattern: str, names: Iterable[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for name in names)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}" if names else "none"
