"""The scope of a command: the flags for namespaces, objects and kinds, and for policies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scanner.cli.flags.completion import complete_policies as policy_names
from scanner.cli.flags.flag_group import FlagGroup
from scanner.config.values import reject_empty

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
    tuple[str, ...],
    typer.Option("-n", "--namespace", metavar="NAME", help="Only this namespace (repeatable).", rich_help_panel=SCOPE),
]
KindsOption = Annotated[
    tuple[str, ...],
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Only this kind: Pod, pods, deployments.apps (repeatable).",
        rich_help_panel=SCOPE,
    ),
]
SkipKindsOption = Annotated[
    tuple[str, ...],
    typer.Option("--skip-kind", metavar="KIND", help="Leave out this kind (repeatable).", rich_help_panel=SCOPE),
]
FilesOption = Annotated[
    tuple[Path, ...],
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


@dataclass(frozen=True, slots=True)
class ScopeFlags(FlagGroup):
    """The namespaces, objects, kinds, policies and bindings of a scan."""

    namespaces: NamespacesOption = ()
    all_namespaces: Annotated[
        bool,
        typer.Option("-A", "--all-namespaces", help="All namespaces (the default).", rich_help_panel=SCOPE),
    ] = False
    """A scan has all namespaces unless -n names some, which -A excludes."""
    exclude_namespaces: Annotated[
        tuple[str, ...],
        typer.Option(
            "--exclude-namespace",
            metavar="NAME",
            help="Leave out this namespace; accepts globs (repeatable).",
            rich_help_panel=SCOPE,
        ),
    ] = ()
    selector: Annotated[
        str,
        typer.Option(
            "-l",
            "--selector",
            metavar="LABELS",
            help="Only objects that match this label selector, such as app=web,tier!=cache.",
            rich_help_panel=SCOPE,
            show_default=False,
        ),
    ] = ""
    kinds: KindsOption = ()
    skip_kinds: SkipKindsOption = ()
    policies: Annotated[
        tuple[str, ...],
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Only this policy; accepts globs (repeatable).",
            rich_help_panel=POLICIES,
            autocompletion=policy_names,
        ),
    ] = ()
    bindings: Annotated[
        tuple[str, ...],
        typer.Option(
            "--binding",
            metavar="NAME",
            help="Only this binding; accepts globs (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = ()

    def scope(self, operation: str) -> Scope:
        """The scope of a scan that simulates an operation. Raises UsageError for empty values and an invalid selector."""
        return make_scope(
            operation=operation,
            namespaces=self.namespaces,
            exclude_namespaces=self.exclude_namespaces,
            selector=self.selector,
            kinds=self.kinds,
            skip_kinds=self.skip_kinds,
            policies=self.policies,
            bindings=self.bindings,
        )


def make_scope(*, selector: str = "", operation: str = "auto", **names: tuple[str, ...]) -> Scope:
    """The scope that flags name. Raises UsageError for empty values and an invalid selector."""
    from scanner.cluster.labels import parse_selector
    from scanner.model.scans.scan import Scope

    parse_selector(selector)
    reject_empty({_FLAGS[field]: values for field, values in names.items()})
    fields: dict[str, Any] = names
    return Scope(selector=selector, operation=operation, **fields)


@dataclass(frozen=True, slots=True)
class PolicyFlags(FlagGroup):
    """The policies besides those of the cluster, or instead of them."""

    files: FilesOption = ()
    no_cluster_policies: NoClusterPoliciesOption = False
    assume_bound: Annotated[
        tuple[str, ...],
        typer.Option(
            "--assume-bound",
            metavar="POLICY[=ACTION]",
            help="Evaluate a policy as if it were bound with this action. Goes in the next release: use `assay preview --bind` (repeatable).",
            rich_help_panel=POLICIES,
            autocompletion=policy_names,
        ),
    ] = ()
