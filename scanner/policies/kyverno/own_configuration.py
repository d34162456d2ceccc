"""Kyverno's own configuration, by which its webhook filters requests: from its ConfigMap, or from the user."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from msgspec import Struct

from scanner.errors import ListFailed
from scanner.model.json import JsonObject
from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.withheld import has_withheld
from scanner.policies.bound_language import BindingContext, ListRight
from scanner.policies.kyverno import configuration
from scanner.policies.kyverno.configuration import Configuration
from scanner.policies.kyverno.modes import KyvernoMode
from scanner.policies.kyverno.spec import KyvernoPolicy

_OF_KYVERNO = "KyvernoConfiguration"
_UNFILTERED = "Kyverno's resource filters are not known, and objects that they exempt count like all others"
_NAME_THEM = "Name the filters with --kyverno-resource-filters"


class ConfigurationSource(Struct, frozen=True):
    """The source of Kyverno's configuration: a ConfigMap (namespace and name), or the user's `given` configuration."""

    place: tuple[str, str] = (configuration.NAMESPACE, configuration.NAME)
    given: Configuration | None = None

    def wanted(self, policies: Iterable[KyvernoPolicy], mode: KyvernoMode) -> bool:
        """Return whether a scan must read the ConfigMap: only the evaluation as Kyverno's webhook needs it."""
        return self.given is None and mode.server and any(not policy.unauditable() for policy in policies)

    def right(self) -> ListRight:
        """The permission to read the ConfigMap."""
        return ListRight("", "configmaps", self.place[0], "the resource filters of Kyverno")


class OwnConfiguration(Struct, frozen=True):
    """Kyverno's configuration, and its parts that a scan does not know."""

    configuration: Configuration = configuration.NOTHING
    gaps: tuple[Gap, ...] = ()
    outside: tuple[OutOfScope, ...] = ()


def own_configuration(source: ConfigurationSource, context: BindingContext, *, wanted: bool) -> OwnConfiguration:
    """The configuration by which Kyverno's webhook filters requests, read from the cluster if it is `wanted`."""
    if not wanted:
        return OwnConfiguration(source.given or configuration.NOTHING)
    where = "/".join(source.place)
    try:
        config_map = _config_map(source.place, context)
    except (ListFailed, ValueError) as error:
        return OwnConfiguration(
            gaps=(Gap(GapKind.LIST, f"ConfigMap {where}", f"{_UNFILTERED}: {error}. {_NAME_THEM}"),)
        )
    if config_map is None:
        why = f"there is no such ConfigMap: {_UNFILTERED}. {_NAME_THEM}"
        return OwnConfiguration(outside=(OutOfScope(_OF_KYVERNO, where, why),))
    if has_withheld(config_map.get("data")):
        why = f"the snapshot withholds a part of it: {_UNFILTERED}. {_NAME_THEM}"
        return OwnConfiguration(gaps=(Gap(GapKind.DOCUMENT, f"ConfigMap {where}", why),))
    own = configuration.configuration_of(config_map)
    user = context.user.username
    excluded = own.excludes(context.user)
    why = f"{excluded}: Kyverno admits every request of {user}; its policies are evaluated as for other users"
    return OwnConfiguration(own, outside=(OutOfScope(_OF_KYVERNO, where, why),) if excluded else ())


def _config_map(place: tuple[str, str], context: BindingContext) -> JsonObject | None:
    """The ConfigMap of a namespace and name, from policy files or from the cluster."""
    kinds = (kind for kind in context.served if (kind.group, kind.version, kind.plural) == ("", "v1", "configmaps"))
    kind = next(kinds, None)
    given = (param for param in context.params if (param.kind.group, param.kind.plural) == ("", "configmaps"))
    listed = context.lists.list_all(kind, (place[0],)) if kind and context.lists else iter(())
    return next(
        (resource.body for resource in chain(given, listed) if (resource.namespace, resource.name) == place), None
    )
