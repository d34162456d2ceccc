"""The flags for policies of Kyverno: the release, the component to reproduce, the filters of its webhook, and the network."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.flags.scope import POLICIES
from scanner.config.values import parse_kyverno_version
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.policies.kyverno.libraries import Network
    from scanner.policies.kyverno.own_configuration import ConfigurationSource


class KyvernoCompat(StrEnum):
    """The Kyverno component whose reports to reproduce."""

    CONTROLLER = "controller"
    CLI = "cli"


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

KYVERNO_FILTERS = "--kyverno-resource-filters"
FiltersOption = Annotated[
    tuple[str, ...],
    typer.Option(
        KYVERNO_FILTERS,
        metavar="FILTERS",
        help=(
            "Resource filters of Kyverno's webhook: default, none, [Kind,namespace,name], or NAMESPACE/NAME of its "
            "ConfigMap (repeatable). Default: ConfigMap kyverno/kyverno."
        ),
        rich_help_panel=POLICIES,
        show_default=False,
    ),
]
_FILTER_FORMS = "write default, none, filters such as [Pod,kube-*,*], or the NAMESPACE/NAME of a ConfigMap"


@dataclass(frozen=True, slots=True)
class KyvernoFlags(FlagGroup):
    """How Kyverno's policies are evaluated, and which requests they may send."""

    kyverno_version: KyvernoVersionOption = ""
    kyverno_compat: Annotated[
        KyvernoCompat | None,
        typer.Option(
            "--kyverno-compat",
            help="Evaluate Kyverno policies as Kyverno's background scan (controller) or CLI does, instead of as its webhook.",
            rich_help_panel=POLICIES,
            show_default=False,
        ),
    ] = None
    kyverno_filters: FiltersOption = ()
    allow_network: Annotated[
        bool,
        typer.Option(
            "--allow-network",
            help="Allow the HTTP and image registry requests of Kyverno policies, to public addresses. Never sends Secret data.",
            rich_help_panel=POLICIES,
        ),
    ] = False
    allow_network_to: Annotated[
        tuple[str, ...],
        typer.Option(
            "--allow-network-to",
            metavar="CIDR|HOST",
            help="With --allow-network: also allow this host or these addresses, although they are not public (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = ()

    def version(self) -> str:
        """The release whose rules apply; empty for the installed one. Raises UsageError."""
        return parse_kyverno_version(self.kyverno_version)

    @property
    def compat(self) -> str:
        """The component to reproduce; empty for the webhook."""
        return self.kyverno_compat.value if self.kyverno_compat else ""

    def network(self) -> Network | None:
        """The allowed requests, or None. Raises UsageError for an invalid destination."""
        from scanner.cluster.outside.destinations import parse_destinations
        from scanner.cluster.outside.http_client import HttpClient

        return HttpClient(parse_destinations(self.allow_network_to)) if self.allow_network else None

    def configuration(self) -> ConfigurationSource:
        """Kyverno's configuration. Raises UsageError for filters that are invalid or exclude each other."""
        return read_kyverno_configuration(self.kyverno_filters)


def read_kyverno_configuration(values: tuple[str, ...]) -> ConfigurationSource:
    """Kyverno's configuration as the flag gives it. Raises UsageError for values that are invalid or exclude each other."""
    from scanner.policies.kyverno.configuration import DEFAULT, NOTHING, Configuration, is_filters, parse_filters
    from scanner.policies.kyverno.own_configuration import ConfigurationSource

    if not values:
        return ConfigurationSource()
    if len(values) > 1 and not all(value == "default" or is_filters(value) for value in values):
        raise UsageError(f"{KYVERNO_FILTERS}: only default and filters in brackets can be combined; {_FILTER_FORMS}")
    if values == ("none",):
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
