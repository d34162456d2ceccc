"""A database with two clusters, filled through the store: problems in every status, previews, a running scan, and runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from starlette.testclient import TestClient

from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.scan import ClusterIdentity, CoverageState, ScanStart, ScanState
from scanner.store import SqlStore, open_store
from scanner.web.server.application import application
from scanner.web.views.library import ScanLibrary
from tests.store.made import Round, binding, clock, finding, listed
from tests.web.api.asking import Api
from tests.web.served import Served

NOW: Final = datetime(2026, 3, 31, 12, tzinfo=UTC)
DEPOT: Final = ClusterIdentity("depot", "77aa", "v1.36.0")
_A, _B = finding("a"), finding("b")
_IN_BANK = finding("c", namespace="bank", policy="labels")
_UNSEEN = finding("s", kind="StatefulSet")
_PREVIEW = finding("a", binding="assumed:replicas", denies=False)
_PODS = tuple(finding(f"pod-{number:02}", kind="Pod", namespace=f"team-{number % 3}") for number in range(37))
_ASSUMED = replace(binding("replicas"), name="assumed:replicas", assumed=True)
_KINDS = ("Deployment", "Pod")


class _Previewing(Round):
    """A scan with an assumed binding besides the others."""

    def start(self, number: int) -> ScanStart:
        start = super().start(number)
        return replace(start, bindings=(*start.bindings, _ASSUMED))


def fill(url: str) -> None:
    """Store five scans of one cluster, of which the last is incomplete, one scan of another, a running scan, and runs."""
    with open_store(url, clock) as store:
        Round((_A, _B, _IN_BANK, _UNSEEN), coverage=tuple(map(listed, (*_KINDS, "StatefulSet")))).record(store, 1)
        Round((_A, _IN_BANK, *_PODS[:20])).record(store, 2)
        Round((_A, _B, *_PODS[:30])).record(store, 3)
        Round((_A, _IN_BANK), cluster=DEPOT).record(store, 4)
        _newest(store, 5)
        store.begin(Round().start(6))
        _runs(store)


def _newest(store: SqlStore, number: int) -> None:
    """A scan that finds a problem in every status but resolved, resolves others, and cannot list a kind."""
    unlisted = listed("StatefulSet", CoverageState.FORBIDDEN)
    gap = Gap(GapKind.LIST, "apps/v1/StatefulSet", "forbidden")
    coverage = (*map(listed, _KINDS), unlisted)
    findings = (_A, _PREVIEW, _IN_BANK, *_PODS[4:])
    _Previewing(findings, coverage=coverage, gaps=(gap,), state=ScanState.INCOMPLETE).record(store, number)


def _runs(store: SqlStore) -> None:
    for number in range(1, 6):
        run = store.begin_run("prod", ("assay", "scan"))
        store.end_run(run, exit_code=0, scan_id=f"scan-{number}")
    failed = store.begin_run("nowhere")
    store.end_run(failed, exit_code=4, reason="no answer")


@contextmanager
def api_at(url: str, now: datetime = NOW) -> Iterator[Api]:
    """The API over a database at a moment."""
    library = ScanLibrary(url, clock=lambda: now)
    client = TestClient(application(library), raise_server_exceptions=False, follow_redirects=False)
    try:
        yield Api(Served(library, client))
    finally:
        library.close()
