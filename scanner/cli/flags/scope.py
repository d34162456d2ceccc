"""The scope of a command: the flags for namespaces and kinds, for policies from files, and for the filters of Kyverno's webhook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scanner.config.values import reject_empty
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.model.scans.scan import Scope
    from scanner.policies.kyverno.own_configuration import ConfigurationSource

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


KYVERNO_VERSION = "--kyverno-version"
KyvernoVersionOption = Annotated[
    str,
    typer.Option(
        KYVERNO_VERSION,
        metavar="RELEASE",
        help="Release of Kyverno whose rules apply, such as 1.18. Default: the installed release, or else the newest.",
        rich_help_panel=POLICIES,
        show_default=False,
    ),
]

# `--kyverno-resource-filters`: the objects that Kyverno's webhook never receives.

KYVERNO_FILTERS = "--kyverno-resource-filters"
FiltersOption = Annotated[
    list[str] | None,
    typer.Option(
        KYVERNO_FILTERS,
        metavar="FILTERS",
        help=(
            "Resource filters of Kyverno's webhook: default, none, [Kind,namespace,name], or NAMESPACE/NAME of its "
            "ConfigMap (repeatable). Default: ConfigMap kyverno/kyverno."
        ),
        rich_help_panel="Policies",
        show_default=False,
    ),
]
_FILTER_FORMS = "write default, none, filters such as [Pod,kube-*,*], or the NAMESPACE/NAME of a ConfigMap"


def kyverno_configuration(values: list[str]) -> ConfigurationSource:
    """Kyverno's configuration as the flag gives it. Raises UsageError for values that are invalid or exclude each other."""
    from scanner.policies.kyverno.configuration import DEFAULT, NOTHING, Configuration, is_filters, parse_filters
    from scanner.policies.kyverno.own_configuration import ConfigurationSource

    if not values:
        return ConfigurationSource()
    if len(values) > 1 and not all(value == "default" or is_filters(value) for value in values):
        raise UsageError(f"{KYVERNO_FILTERS}: only default and filters in brackets can be combined; {_FILTER_FORMS}")
    if values == ["none"]:
        return ConfigurationSource(given=NOTHING)
    namespace, _, name = values[0].partition("/")
    if namespace and name and not set("[/") & {*namespace[:1], *name}:
        return ConfigurationSource((namespace, name))
    for value in values:
        if value != "default" and not is_filters(value):
            raise UsageError(f"{KYVERNO_FILTERS} {value}: {_FILTER_FORMS}")
    given = DEFAULT if "default" in values else Configuration()
    filters = tuple(resource_filter for value in values for resource_filter in parse_filters(value))
    return ConfigurationSource(given=given.with_filters(filters))
