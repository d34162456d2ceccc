"""What a scan reads from files: policies and params, and manifests that stand for a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scanner.errors import UsageError
from scanner.model.json import as_text, dig
from scanner.model.scan import Scope

if TYPE_CHECKING:
    from scanner.cluster.files import SnapshotCluster
    from scanner.model.outcome import Gap
    from scanner.scan.documents import Manifest

_STDIN = Path("-")


def policy_files(paths: Sequence[Path]) -> tuple[tuple[Manifest, ...], tuple[Gap, ...]]:
    """The documents of the policy files and what could not be read of them. Raises UsageError for missing paths."""
    from scanner.cluster.manifests import read_documents  # noqa: PLC0415 - nothing is imported before it is needed
    from scanner.scan.documents import Manifest  # noqa: PLC0415

    read = [read_documents(path) for path in paths]
    manifests = tuple(Manifest(it.source, it.body) for documents, _ in read for it in documents)
    return manifests, tuple(gap for _, gaps in read for gap in gaps)


def files_as_cluster(paths: Sequence[Path], scope: Scope, name: str, kubernetes_version: str) -> SnapshotCluster:
    """The cluster that manifests stand for. Raises UsageError for missing paths, and for a namespace nothing is in."""
    from scanner.cluster.files import SnapshotCluster  # noqa: PLC0415 - nothing is imported before it is needed

    default = scope.namespaces[0] if len(scope.namespaces) == 1 else "default"
    cluster = SnapshotCluster(paths, default_namespace=default, name=name, kubernetes_version=kubernetes_version)
    _reject_unknown_namespaces(scope, _namespaces(cluster))
    return cluster


def policies_among(cluster: SnapshotCluster) -> tuple[Manifest, ...]:
    """The policies and bindings among a cluster's manifests."""
    from scanner.scan.documents import Manifest, is_policy  # noqa: PLC0415 - nothing is imported before it is needed

    return tuple(Manifest(it.source, it.body) for it in cluster.documents if is_policy(it.body))


def reject_stdin_twice(paths: Sequence[Path]) -> None:
    """Standard input can be read once. Raises UsageError if it is named twice."""
    if paths.count(_STDIN) > 1:
        raise UsageError("standard input (-) can be read once only: put one of the two into a file")


def _namespaces(cluster: SnapshotCluster) -> set[str]:
    described = {
        as_text(dig(it.body, "metadata", "name")) for it in cluster.documents if it.body["kind"] == "Namespace"
    }
    return described | set(cluster.implied_namespaces())


def _reject_unknown_namespaces(scope: Scope, known: set[str]) -> None:
    for namespace in scope.namespaces:
        if namespace not in known:
            there = ", ".join(sorted(known)) or "none at all"
            raise UsageError(f"-n {namespace}: nothing in the files is in that namespace; there is: {there}")
