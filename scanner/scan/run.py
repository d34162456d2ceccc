"""The steps of a scan: discover, list, match, resolve params, evaluate, record.

This module alone joins the pure functions to the two edges. Two Protocols describe the edges, and edges satisfy them by shape:
tests run a whole scan with two in-memory objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from scanner import __version__
from scanner.errors import ClusterError
from scanner.model.resource import UserInfo
from scanner.model.scans.method import Method
from scanner.model.scans.scan import (
    Scan,
    ScanEnd,
    ScanStart,
    ServerCounts,
)
from scanner.posture.history.rule_digests import description_digest, policy_set_digest
from scanner.scan.clocks import ScanClock, compare_clocks
from scanner.scan.edges import Cluster, ComparisonEngine, Progress, Store
from scanner.scan.options import Options, ScanContext
from scanner.scan.prepare import PreparedScan, prepare
from scanner.scan.record import ScanRecorder
from scanner.scan.workers.pool import Workers
from scanner.scan.workers.process import collect_rarely

_LIMITED: Final = "--namespace or --selector limits the objects of this scan"


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
    comparison: ComparisonEngine | None = None,
    dated: ScanClock | None = None,
    conclude: Callable[[ScanEnd], ScanEnd] = lambda end: end,
) -> Scan:
    """Scan a cluster into a store and return the recorded scan.

    `workers` processes (if more than one) evaluate the pages after the first `fork_after_bytes` bytes. A `comparison` evaluates a sample of
    the same pages, and adds its result at the end. `clock` is that of this machine. It is compared with the other clocks here, unless
    `dated` is the result of their comparison. `conclude` may add to the last record before it is stored.

    Raises ClusterError if the cluster cannot be reached, StoreError if nothing can be recorded, UsageError for options that name
    something that does not exist. Every other problem is recorded in the scan.
    """
    dated = dated or compare_clocks(cluster, store, clock)
    counts = _read_server_counts(cluster, options)
    prepared = prepare(cluster, options, dated.started, ahead=True)
    processes = 1 if any(language.single_process for language in options.languages) else workers
    kyverno = next((language.release for language in prepared.evaluation.languages if language.release), None)
    method = replace(
        options.method,
        scanner=_find_scanner(cluster, options, prepared.context),
        kyverno_release=kyverno.name if kyverno else "",
        kyverno_note=kyverno.note if kyverno else "",
        workers=processes,
        without_counts=counts.why_not,
        clocks=dated.differences,
    )
    start = _make_start(scan_id, dated.started, prepared, method, silence=options.silence)
    store.begin(replace(start, waivers=options.waivers, accept_damage=options.accept_damage))
    beat = partial(store.beat, scan_id)
    cluster.while_waiting(beat)
    recorder = ScanRecorder(store, scan_id, progress, comparison)
    recorder.gaps = [*prepared.gaps]
    with (
        collect_rarely(),
        Workers(
            prepared.evaluation.page_evaluator,
            prepared.evaluation.plans,
            prepared.listing.relay,
            cluster.pause,
            count=processes,
            fork_after_bytes=fork_after_bytes,
            pack=store.pack,
            beat=beat,
        ) as pool,
    ):
        recorder.record(prepared.evaluation, prepared.listing, pool)
        recorder.record_namespaces(prepared)
        recorder.record_controllers(prepared.plans, prepared.listing, prepared.served)
    recorder.record_counts(counts, cluster.object_counts)
    end = recorder.end(prepared, dated.now(), options)
    return store.finish(scan_id, conclude(end))


def _read_server_counts(cluster: Cluster, options: Options) -> ServerCounts:
    """The server's counts of objects; none for a scan of some objects of each kind, with which they cannot be compared."""
    limited = options.scope.namespaces or options.scope.selector
    return ServerCounts(why_not=_LIMITED) if limited else cluster.object_counts()


def _find_scanner(cluster: Cluster, options: Options, context: ScanContext) -> UserInfo:
    """The user of the scan's own requests, by name and groups; empty for files, and if the server does not report the user."""
    if context.files:
        return UserInfo()
    try:
        user = cluster.requester() if options.user else context.user
    except ClusterError:
        return UserInfo()
    return UserInfo(user.username, groups=user.groups)


def _make_start(scan_id: str, started: datetime, prepared: PreparedScan, method: Method, *, silence: int) -> ScanStart:
    """The first record of a scan: it includes policies that are not in force."""
    context, languages, rules = prepared.context, prepared.evaluation.languages, prepared.evaluation.rules
    every = (record for language in languages for record in language.list_recorded())
    recorded = sorted(every, key=lambda record: (record[0].name, record[0].language))
    policies = tuple(policy for policy, _ in recorded)
    bindings = tuple(binding for language in languages for binding in language.bindings)
    return ScanStart(
        id=scan_id,
        cluster=context.cluster,
        started_at=started,
        scope=context.scope,
        tool_version=__version__,
        policies=policies,
        bindings=bindings,
        requester=context.user,
        readings={policy.key: reading for policy, reading in recorded},
        rules=rules,
        policy_set_digest=policy_set_digest(policies, bindings, rules),
        description_digest=description_digest(policies, bindings),
        method=method,
        silence=silence,
    )
