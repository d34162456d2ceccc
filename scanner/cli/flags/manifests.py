"""The flags of a scan of manifests: the files, and the facts about their cluster that no file has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.flags.scope import SCOPE
from scanner.config.values import parse_kubernetes_version, parse_namespace_labels


@dataclass(frozen=True, slots=True)
class Unwritten:
    """The statements of the user about the cluster that manifests stand for, which no manifest has.

    `namespace_labels` are the labels of namespaces that no file describes, by namespace.
    """

    kubernetes_version: str
    namespace_labels: Mapping[str, Mapping[str, str]]


KubernetesVersionOption = Annotated[
    str,
    typer.Option(
        "--kubernetes-version",
        metavar="VERSION",
        help="With files: apply the rules of this Kubernetes release. Default: the newest supported one.",
        rich_help_panel=SCOPE,
        show_default=False,
    ),
]
NamespaceLabelOption = Annotated[
    tuple[str, ...],
    typer.Option(
        "--namespace-label",
        metavar="NS=KEY=VALUE",
        help="With files: a label of a namespace that they do not describe (repeatable).",
        rich_help_panel=SCOPE,
    ),
]


@dataclass(frozen=True, slots=True)
class ManifestFlags(FlagGroup):
    """The manifests to scan instead of a cluster; without any, the scan is one of a live cluster."""

    source: Annotated[
        tuple[Path, ...],
        typer.Option(
            "--from",
            metavar="PATH",
            help="Scan manifests (a folder, a file, or - for stdin) instead of a cluster (repeatable).",
            rich_help_panel=SCOPE,
        ),
    ] = ()
    version: KubernetesVersionOption = ""
    namespace_label: NamespaceLabelOption = ()

    @property
    def place(self) -> str:
        """The name of a run of these files; empty without files."""
        from scanner.cluster.files.snapshot import name_folders

        return name_folders(self.source) if self.source else ""

    def unwritten(self) -> Unwritten:
        """The statements about the cluster. Raises UsageError for an invalid version or label."""
        return Unwritten(parse_kubernetes_version(self.version), parse_namespace_labels(self.namespace_label))
