"""Kyverno's own configuration, by which its webhook filters requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from scanner.errors import ListFailed
from scanner.model.json import JsonObject
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind
from scanner.model.scan import (
    OutOfScope,
)
from scanner.policies.kyverno import configuration
from scanner.policies.kyverno.configuration import Configuration
from scanner.policies.kyverno.modes import MODES
from scanner.scan.context import ScanContext
from scanner.scan.edges import Discovery
from scanner.scan.lists import ScanLists
from scanner.scan.options import Options
from scanner.scan.policy_set import PolicySet

_OF_KYVERNO = "KyvernoConfiguration"


_UNFILTERED = "Kyverno's resource filters are not known, and objects that they exempt count like all others"


_NAME_THEM = "Name the filters with --kyverno-resource-filters"


@dataclass(frozen=True, slots=True)
class OwnConfiguration:
    """Kyverno's configuration, and what a scan does not know of it."""

    configuration: Configuration = configuration.NOTHING
    gaps: tuple[Gap, ...] = ()
    outside: tuple[OutOfScope, ...] = ()


def own_configuration(
    listing: ScanLists, discovery: Discovery, rules: PolicySet, context: ScanContext, options: Options
) -> OwnConfiguration:
    """The configuration by which Kyverno's webhook filters requests, if any of its policies is evaluated as it would."""
    asked = options.kyverno_configuration
    if not asked.wanted(rules, MODES[options.kyverno_compat]):
        return OwnConfiguration(asked.given or configuration.NOTHING)
    where = "/".join(asked.place)
    try:
        found = _config_map(listing, discovery.kinds, rules, asked.place)
    except (ListFailed, ValueError) as error:
        return OwnConfiguration(
            gaps=(Gap(GapKind.LIST, f"ConfigMap {where}", f"{_UNFILTERED}: {error}. {_NAME_THEM}"),)
        )
    if found is None:
        why = f"there is no such ConfigMap: {_UNFILTERED}. {_NAME_THEM}"
        return OwnConfiguration(outside=(OutOfScope(_OF_KYVERNO, where, why),))
    own = configuration.configuration_of(found)
    user = context.user.username
    excluded = own.excludes(context.user)
    why = f"{excluded}: Kyverno admits every request of {user}; its policies are evaluated as for other users"
    return OwnConfiguration(own, outside=(OutOfScope(_OF_KYVERNO, where, why),) if excluded else ())


def _config_map(
    listing: ScanLists, kinds: Iterable[Kind], rules: PolicySet, place: tuple[str, str]
) -> JsonObject | None:
    """The ConfigMap of a namespace and name, from policy files or from the cluster."""
    kind = next((it for it in kinds if (it.group, it.version, it.plural) == ("", "v1", "configmaps")), None)
    given = (it for it in rules.params if (it.kind.group, it.kind.plural) == ("", "configmaps"))
    listed = listing.everything(kind, (place[0],)) if kind else iter(())
    return next((it.body for it in chain(given, listed) if (it.namespace, it.name) == place), None)
