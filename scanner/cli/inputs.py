"""The files that a scan reads: policies and params, and manifests that stand for a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scanner.errors import UsageError
from scanner.model.json import as_text

if TYPE_CHECKING:
    from scanner.cluster.files import SnapshotCluster
    from scanner.model.scan import Scope
    from scanner.scan.documents import Manifest

_STDIN = Path("-")
_KINDS = 3


def policy_files(paths: Sequence[Path]) -> tuple[Manifest, ...]:
    """The documents of the policy files.

    Raises UsageError for a missing path, a document that cannot be read, a folder without a policy, and a file without a
    document: a mistyped path must not look like a cluster that violates nothing.
    """
    return tuple(manifest for path in paths for manifest in _policies_at(path))


def _policies_at(path: Path) -> tuple[Manifest, ...]:
    from scanner.cluster.manifests import read_documents
    from scanner.scan.documents import Manifest, is_policy

    documents, gaps = read_documents(path)
    if gaps:
        more = f" (and {len(gaps) - 1} more)" if len(gaps) > 1 else ""
        raise UsageError(
            f"-f {path}: {gaps[0].where}: {gaps[0].why}{more}. Correct the file, or name only the files to read"
        )
    if not documents:
        raise UsageError(f"-f {path} has no document: check the path. Files end in .yaml, .yml or .json")
    if path.is_dir() and not any(is_policy(document.body) for document in documents):
        kinds = ", ".join(sorted({as_text(document.body["kind"]) for document in documents})[:_KINDS])
        raise UsageError(
            f"-f {path} has no policy and no binding, only {kinds}: check the path. Name files of params one by one, "
            "and scan manifests with --from"
        )
    return tuple(Manifest(document.source, document.body) for document in documents)


def files_as_cluster(paths: Sequence[Path], scope: Scope, name: str, kubernetes_version: str) -> SnapshotCluster:
    """The cluster that manifests stand for. Raises UsageError for missing paths and for empty namespaces."""
    from scanner.cluster.files import SnapshotCluster

    default = scope.namespaces[0] if len(scope.namespaces) == 1 else "default"
    cluster = SnapshotCluster(paths, default_namespace=default, name=name, kubernetes_version=kubernetes_version)
    _reject_unknown_namespaces(scope, {*cluster.described_namespaces(), *cluster.implied_namespaces()})
    return cluster


def policies_among(cluster: SnapshotCluster) -> tuple[Manifest, ...]:
    """The policies and bindings among a cluster's manifests."""
    from scanner.scan.documents import Manifest

    return tuple(Manifest(document.source, document.body) for document in cluster.policies)


def reject_stdin_twice(paths: Sequence[Path]) -> None:
    """Reject standard input as two inputs. Raises UsageError if it is named twice."""
    if paths.count(_STDIN) > 1:
        raise UsageError("standard input (-) can be read only once: write one of the inputs to a file")


def _reject_unknown_namespaces(scope: Scope, present: set[str]) -> None:
    for namespace in scope.namespaces:
        if namespace not in present:
            names = ", ".join(sorted(present)) or "none"
            raise UsageError(f"-n {namespace}: the files have no object in that namespace. Their namespaces: {names}")
