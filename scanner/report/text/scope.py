"""The scope of a scan in words: what it was limited to, what it excluded, and how it evaluated the objects."""

from __future__ import annotations

from datetime import datetime, timedelta

from scanner.model.scans.method import ClockDifferences, Method
from scanner.model.scans.scan import Scan, Scope
from scanner.report.text.numbers import join_texts
from scanner.report.text.times import stamp

EVERYTHING = (
    "every namespace",
    "every kind that a bound policy can match",
    "every policy",
    "every binding",
    "objects with any labels",
)


_FILES = "The objects come from files: no server has defaulted, converted or validated them."


_OTHER_USERS = "Checks that depend on the user may differ for other users."


_REQUESTS = {
    "auto": ("CREATE requests", " (as no-op UPDATEs where no rule matches CREATE)"),
    "create": ("CREATE requests", ""),
    "update": ("no-op UPDATE requests", ""),
}


def scope_of(scan: Scan) -> tuple[str, ...]:
    """The scope of a scan, in words."""
    scope = scan.scope
    limits = (
        ("namespaces", join_texts(scope.namespaces)),
        ("kinds", join_texts(scope.kinds)),
        ("policies", join_texts(scope.policies)),
        ("bindings", join_texts(scope.bindings)),
        ("objects with labels", scope.selector),
    )
    return tuple(
        f"{noun} {names}" if names else everything for (noun, names), everything in zip(limits, EVERYTHING, strict=True)
    )


def exclusions_of(scope: Scope) -> tuple[str, ...]:
    """The namespaces and kinds that the user excluded, in words."""
    excluded = (
        ("namespaces", scope.exclude_namespaces),
        ("kinds", scope.skip_kinds),
        ("policies of", scope.skip_languages),
    )
    return tuple(f"{noun} {join_texts(names)}" for noun, names in excluded if names)


def notes_of(scan: Scan, method: Method) -> tuple[str, ...]:
    """The notes about how this scan evaluated the objects, and about its date."""
    files = () if scan.cluster.source == "cluster" else (_FILES,)
    first = filter(None, (clocks_note(method.clocks, scan.started_at), scan.cluster.release.note, method.kyverno_note))
    return (*first, *files, _describe_simulation(scan), *scan.notes)


def clocks_note(clocks: ClockDifferences, started: datetime) -> str:
    """The note about clocks that differed by more than five minutes, given the date of the beginning; empty if they agreed."""
    if not clocks.differ:
        return ""
    machine_time = started - timedelta(seconds=clocks.latest)
    shown = (
        f"{stamp(machine_time + timedelta(seconds=seconds))} {place}"
        for place, seconds in (
            ("on the machine of the scan", 0),
            ("on the API server", clocks.api_server),
            ("in PostgreSQL", clocks.database),
        )
        if seconds is not None
    )
    return (
        f"The clocks differed by more than five minutes when the scan began: {join_texts(shown)}. "
        "The scan is dated by the latest of them. Correct the clocks that are wrong."
    )


def _describe_simulation(scan: Scan) -> str:
    user = scan.requester.username or "the user that scanned"
    requests, otherwise = _REQUESTS[scan.scope.operation]
    return f"Objects were evaluated as {requests} by {user}{otherwise}. {_OTHER_USERS}"
