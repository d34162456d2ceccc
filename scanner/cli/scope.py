"""The scope of a command: the flags for namespaces and kinds, and for policies from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scanner.cli.values import reject_empty

if TYPE_CHECKING:
    from scanner.model.scans.scan import Scope

SCOPE = "Scope"
POLICIES = "Policies"
_FLAGS = {
    "namespaces": "-n",
    "exclude_namespaces": "--exclude-namespace",
    "kinds": "--kind",
    "skip_kinds": "--skip-kind",
    "policies": "--policy",
    "bindings": "--binding",
}

NamespacesOption = Annotated[
    list[str] | None,
    typer.Option("-n", "--namespace", metavar="NAME", help="Only this namespace (repeatable).", rich_help_panel=SCOPE),
]
KindsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Only this kind: Pod, pods, deployments.apps (repeatable).",
        rich_help_panel=SCOPE,
    ),
]
SkipKindsOption = Annotated[
    list[str] | None,
    typer.Option("--skip-kind", metavar="KIND", help="Leave out this kind (repeatable).", rich_help_panel=SCOPE),
]
FilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "-f",
        "--policies",
        metavar="PATH",
        help="Add policies, bindings and params from files (repeatable).",
        rich_help_panel=POLICIES,
    ),
]
NoClusterPoliciesOption = Annotated[
    bool,
    typer.Option(
        "--no-cluster-policies", help="Use only the policies from files, not the cluster's.", rich_help_panel=POLICIES
    ),
]


def scope_of(*, selector: str = "", operation: str = "auto", **names: list[str] | None) -> Scope:
    """The scope that these flags name. Raises UsageError for empty values and an invalid selector."""
    from scanner.cluster.labels import parse_selector
    from scanner.model.scans.scan import Scope

    parse_selector(selector)
    given = {field: tuple(values or ()) for field, values in names.items()}
    reject_empty({_FLAGS[field]: values for field, values in given.items()})
    fields: dict[str, Any] = given
    return Scope(selector=selector, operation=operation, **fields)
