"""The files that a scan reads: policies and params, and manifests that stand for a cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scanner.errors import UsageError
from scanner.model.json import as_text

if TYPE_CHECKING:
    from scanner.cli.flags.manifests import Unwritten
    from scanner.cluster.files.manifests import FileDocument, ReadFiles, UnreadDocument
    from scanner.cluster.files.snapshot import SnapshotCluster
    from scanner.model.resource import Kind
    from scanner.model.scans.out_of_scope import OutOfScope
    from scanner.model.scans.scan import Scope
    from scanner.scan.documents import Manifest

_STDIN = Path("-")
_WORD: Final = re.compile(r"[A-Za-z]+")
_KIND: Final = re.compile(r"""^[ \t{-]*["']?kind["']?[ \t]*:[ \t]*["']?([A-Za-z]*)""", re.MULTILINE)
"""The kinds that a text names, each empty where the text has something else than a name."""
_KINDS = 3


@dataclass(frozen=True, slots=True)
class PolicyFiles:
    """The policies, bindings, params and definitions in policy files.

    `outside` are the files and documents that are none of these, `definitions` the CustomResourceDefinitions, and `read` the files.
    """

    manifests: tuple[Manifest, ...]
    definitions: tuple[FileDocument, ...]
    outside: tuple[OutOfScope, ...]
    read: ReadFiles

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that the definitions define. Raises UsageError for an invalid definition."""
        from scanner.cluster.definitions import BrokenDefinition, read_definition

        kinds: list[Kind] = []
        for document in self.definitions:
            try:
                kinds.extend(read_definition(document.body).kinds)
            except BrokenDefinition as error:
                raise UsageError(
                    f"-f: {document.source}: this CustomResourceDefinition defines no kind: {error}"
                ) from error
        return tuple(kinds)


def read_policy_files(paths: Sequence[Path]) -> PolicyFiles:
    """The documents of the policy files.

    Raises UsageError for a missing path, a document that cannot be read in a file that the user names, a document with the kind of a
    policy that cannot be read in a folder, a folder without a policy, and a file without a document: a mistyped path must not look like
    a cluster that violates nothing.
    """
    from scanner.cluster.definitions import is_definition
    from scanner.cluster.files.manifests import ReadFiles

    read = ReadFiles()
    outside: list[OutOfScope] = []
    documents = [document for path in paths for document in _read_documents(path, read, outside)]
    return PolicyFiles(
        tuple(_make_manifest(item) for item in documents if not is_definition(item.body)),
        tuple(item for item in documents if is_definition(item.body)),
        tuple(outside),
        read,
    )


def _make_manifest(document: FileDocument) -> Manifest:
    from scanner.scan.documents import FilePlace, Manifest

    place = FilePlace(document.file, document.line, document.items)
    return Manifest(document.source, document.body, is_named=True, place=place)


def _read_documents(path: Path, read: ReadFiles, outside: list[OutOfScope]) -> list[FileDocument]:
    """The documents at a path. Files and documents of a folder that are no manifests are added to `outside`."""
    from scanner.cluster.files.manifests import FileDocument, UnreadDocument, stream_documents
    from scanner.model.scans.out_of_scope import Unneeded
    from scanner.scan.documents import is_policy

    items = [*stream_documents(path, read)]
    documents = [item for item in items if isinstance(item, FileDocument)]
    unread = [item for item in items if isinstance(item, UnreadDocument)]
    folder = path.is_dir()
    repeated = [item for item in unread if item.other_tool and item.other_tool.kind is Unneeded.REPEATED]
    refused = [item for item in unread if item not in repeated and (not folder or _may_be_policy(item))]
    _reject(path, refused)
    outside.extend(_explain_unneeded(item) for item in unread)
    if not documents and not repeated:
        raise UsageError(f"-f {path} has no document: check the path. Files end in .yaml, .yml or .json")
    if folder and not repeated and not any(is_policy(document.body) for document in documents):
        kinds = ", ".join(sorted({as_text(document.body["kind"]) for document in documents})[:_KINDS])
        raise UsageError(
            f"-f {path} has no policy and no binding, only {kinds}: check the path. Name files of params one by one, "
            "and scan manifests with --from"
        )
    return documents


def _reject(path: Path, refused: Sequence[UnreadDocument]) -> None:
    if refused:
        gap = refused[0].gap
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise UsageError(f"-f {path}: {gap.where}: {gap.why}{more}. Correct the file, or name only the files to read")


def _may_be_policy(item: UnreadDocument) -> bool:
    """Return whether a document that was not read names the kind of a policy, or may name one."""
    from scanner.scan.documents import names_policy_kind

    if item.other_tool:
        return False
    if item.text is None or any(map(names_policy_kind, _WORD.findall(item.text))):
        return True
    return any(not kind for kind in _KIND.findall(item.text))


def _explain_unneeded(item: UnreadDocument) -> OutOfScope:
    from scanner.model.scans.out_of_scope import OutOfScope, Unneeded

    if item.other_tool:
        return OutOfScope(item.other_tool.kind, item.gap.where, item.other_tool.why)
    return OutOfScope(
        Unneeded.UNUSED_DOCUMENT, item.gap.where, f"this document is no policy and no binding: {item.gap.why}"
    )


def read_cluster_files(
    paths: Sequence[Path], scope: Scope, name: str, unwritten: Unwritten, definitions: Sequence[FileDocument]
) -> SnapshotCluster:
    """The cluster that manifests, and further definitions, stand for. Raises UsageError for missing paths and empty namespaces."""
    from scanner.cluster.files.snapshot import SnapshotCluster

    default = scope.namespaces[0] if len(scope.namespaces) == 1 else "default"
    cluster = SnapshotCluster(
        paths,
        default_namespace=default,
        name=name,
        kubernetes_version=unwritten.kubernetes_version,
        definitions=definitions,
        namespace_labels=unwritten.namespace_labels,
    )
    _reject_unknown_namespaces(scope, {*cluster.list_described_namespaces(), *cluster.list_implied_namespaces()})
    return cluster


def list_policies_among(cluster: SnapshotCluster, read: ReadFiles | None = None) -> tuple[Manifest, ...]:
    """The policies and bindings among a cluster's manifests, without those in files that were `read` as policy files."""
    from scanner.scan.documents import Manifest

    return tuple(
        Manifest(document.source, document.body)
        for document in cluster.policies
        if read is None or not read.includes(Path(document.file))
    )


def reject_stdin_twice(paths: Sequence[Path]) -> None:
    """Reject standard input as two inputs. Raises UsageError if it is named twice."""
    if paths.count(_STDIN) > 1:
        raise UsageError("standard input (-) can be read only once: write one of the inputs to a file")


def _reject_unknown_namespaces(scope: Scope, present: set[str]) -> None:
    for namespace in scope.namespaces:
        if namespace not in present:
            names = ", ".join(sorted(present)) or "none"
            raise UsageError(f"-n {namespace}: the files have no object in that namespace. Their namespaces: {names}")
