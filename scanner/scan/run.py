"""The steps of a scan: discover, list, match, resolve params, evaluate, record.

This module alone joins the pure functions to the two edges. Two Protocols describe the edges, and edges satisfy them by shape:
tests run a whole scan with two in-memory objects.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from scanner import __version__
from scanner.model.scan import (
    Scan,
    ScanStart,
)
from scanner.scan.edges import Cluster, Comparison, Progress, Store
from scanner.scan.options import Options
from scanner.scan.prepare import PreparedScan, prepare
from scanner.scan.record import ScanRecorder
from scanner.scan.workers import Workers, rare_collections


def run(
    cluster: Cluster,
    store: Store,
    options: Options,
    *,
    scan_id: str,
    clock: Callable[[], datetime],
    progress: Progress = lambda _: None,
    workers: int = 1,
    fork_after_bytes: int = 0,
    comparison: Comparison | None = None,
) -> Scan:
    """Scan a cluster into a store and return the recorded scan.

    `workers` processes (if more than one) evaluate the pages after the first `fork_after_bytes` bytes. A `comparison` evaluates a sample of
    the same pages, and adds its result at the end.

    Raises ClusterError if the cluster cannot be reached, StoreError if nothing can be recorded, UsageError for options that name
    something that does not exist. Every other problem is recorded in the scan.
    """
    started = clock()
    prepared = prepare(cluster, options, started, ahead=True)
    store.begin(_start(scan_id, started, prepared, options))
    beat = partial(store.beat, scan_id)
    cluster.while_waiting(beat)
    recorder = ScanRecorder(store, scan_id, progress, comparison)
    recorder.gaps = [*prepared.gaps]
    alone = any(language.single_process for language in options.languages)
    with (
        rare_collections(),
        Workers(
            prepared.evaluation.page_evaluator,
            prepared.evaluation.plans,
            prepared.listing.relay,
            cluster.paused,
            count=1 if alone else workers,
            fork_after_bytes=fork_after_bytes,
            beat=beat,
        ) as processes,
    ):
        recorder.record(prepared.evaluation, prepared.listing, processes)
    end = recorder.end(prepared.evaluation, clock(), scope=options.scope, allow_empty=options.allow_empty)
    return store.finish(scan_id, end)


def _start(scan_id: str, started: datetime, prepared: PreparedScan, options: Options) -> ScanStart:
    """The first record of a scan: it includes policies that are not in force."""
    context, languages = prepared.context, prepared.evaluation.languages
    policies = (record for language in languages for record in language.recorded())
    recorded = sorted(policies, key=lambda record: (record[0].name, record[0].language))
    return ScanStart(
        id=scan_id,
        cluster=context.cluster,
        started_at=started,
        scope=context.scope,
        tool_version=__version__,
        policies=tuple(policy for policy, _ in recorded),
        bindings=tuple(binding for language in languages for binding in language.bindings),
        requester=context.user,
        readings={policy.key: reading for policy, reading in recorded},
        silence=options.silence,
    )
