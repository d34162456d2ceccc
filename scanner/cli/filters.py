"""`--kyverno-resource-filters`: the objects that Kyverno's webhook never receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.policies.kyverno.own_configuration import ConfigurationSource

FLAG = "--kyverno-resource-filters"
FiltersOption = Annotated[
    list[str] | None,
    typer.Option(
        FLAG,
        metavar="FILTERS",
        help=(
            "Resource filters of Kyverno's webhook: default, none, [Kind,namespace,name], or NAMESPACE/NAME of its "
            "ConfigMap (repeatable). Default: ConfigMap kyverno/kyverno."
        ),
        rich_help_panel="Policies",
        show_default=False,
    ),
]
_FORMS = "write default, none, filters such as [Pod,kube-*,*], or the NAMESPACE/NAME of a ConfigMap"


def kyverno_configuration(values: list[str]) -> ConfigurationSource:
    """Kyverno's configuration as the flag gives it. Raises UsageError for values that are invalid or exclude each other."""
    from scanner.policies.kyverno.configuration import DEFAULT, NOTHING, Configuration, is_filters, parse_filters
    from scanner.policies.kyverno.own_configuration import ConfigurationSource

    if not values:
        return ConfigurationSource()
    if len(values) > 1 and not all(value == "default" or is_filters(value) for value in values):
        raise UsageError(f"{FLAG}: only default and filters in brackets can be combined; {_FORMS}")
    if values == ["none"]:
        return ConfigurationSource(given=NOTHING)
    namespace, _, name = values[0].partition("/")
    if namespace and name and not set("[/") & {*namespace[:1], *name}:
        return ConfigurationSource((namespace, name))
    for value in values:
        if value != "default" and not is_filters(value):
            raise UsageError(f"{FLAG} {value}: {_FORMS}")
    given = DEFAULT if "default" in values else Configuration()
    filters = tuple(resource_filter for value in values for resource_filter in parse_filters(value))
    return ConfigurationSource(given=given.with_filters(filters))
