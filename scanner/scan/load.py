"""The lists before the evaluation: namespaces, params, and the objects that expressions read from the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from scanner.admission.dispatch import BoundPolicy
from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_text, dig
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import NAMESPACES, Kind, Resource
from scanner.model.scans.scan import (
    OutOfScope,
)
from scanner.policies.bound_language import BoundLanguage
from scanner.policies.webhooks import described, unknown, webhook_kinds
from scanner.scan.edges import Discovery
from scanner.scan.gaps import policy_gap
from scanner.scan.lists import ScanLists
from scanner.scan.param_table import ParamTable
from scanner.scan.policy_set import PolicySet


def out_of_scope(listing: ScanLists, kinds: Iterable[Kind]) -> Iterator[OutOfScope]:
    """The webhooks of the cluster, which also decide about requests but are not evaluated.

    A missing permission to list them is an item, and no gap.
    """
    for kind in webhook_kinds(kinds):
        try:
            yield from [described(configuration) for configuration in listing.everything(kind)]
        except (ListFailed, ValueError) as error:
            yield unknown(kind, str(error))


def load_params(
    listing: ScanLists,
    params: ParamTable,
    bound: Iterable[BoundPolicy],
    policy_set: PolicySet,
    *,
    unlisted: Collection[Kind] = (),
) -> Iterator[Gap]:
    """List the params of policies into `params`, then add those of policy files.

    The cluster does not serve the kinds of `unlisted`, so it has no objects of these. Yields a gap for each policy whose params could
    not be listed.
    """
    for kind, policies in params.needed(bound).items():
        if kind in unlisted:
            continue
        try:
            for resource in listing.everything(kind, params.namespaces(kind, policies, listing.scoped)):
                params.keep(resource, policies)
        except (ListFailed, ValueError) as error:
            yield from (
                policy_gap(bound_policy, f"its params ({kind.resource}) could not be listed: {error}")
                for bound_policy in policies
            )
    for param in policy_set.params:
        params.put(param)


def load_inventory(listing: ScanLists, languages: Iterable[BoundLanguage]) -> Iterator[Gap]:
    """List the objects that expressions read, once for all languages.

    Yields a gap for each policy whose objects could not be listed.
    """
    reads = [
        (language, bound_policy, kind, place)
        for language in languages
        for bound_policy, places in language.reads()
        if not bound_policy.reading.reason
        for kind, of_kind in places.items()
        for place in of_kind
    ]
    readers: dict[tuple[Kind, str], dict[BoundLanguage, None]] = {}
    for language, _, kind, place in reads:
        readers.setdefault((kind, place), {})[language] = None
    failed = {where: _listed(listing, of_list, *where) for where, of_list in readers.items()}
    for _, bound_policy, kind, place in reads:
        if why := failed[kind, place]:
            yield policy_gap(bound_policy, f"it reads {kind.resource}, which could not be listed: {why}")


def _listed(listing: ScanLists, readers: Iterable[BoundLanguage], kind: Kind, place: str) -> str:
    """The reason why the objects that expressions read could not be listed, or an empty string."""
    try:
        resources = tuple(listing.everything(kind, (place,)))
    except (ListFailed, ValueError) as error:
        return str(error)
    for language in readers:
        language.take(kind, place, resources)
    return ""


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The Namespace objects by name, and a gap if they could not be listed. With `decide_policies` some policies follow from them."""

    by_name: Mapping[str, JsonObject]
    gap: Gap | None = None
    decide_policies: bool = False

    @property
    def gaps_of_policies(self) -> tuple[Gap, ...]:
        """The gap as that of a list of policies, if policies may be missing because of it."""
        if self.gap is None or not self.decide_policies:
            return ()
        why = f"policies that follow from namespaces may be missing from this scan: {self.gap.why}"
        return (Gap(GapKind.LIST, self.gap.where, why),)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The gap, if there is one, with all that it may hide."""
        return self.gaps_of_policies or ((self.gap,) if self.gap else ())


def load_namespaces(listing: ScanLists, discovery: Discovery, *, decide_policies: bool = False) -> Namespaces:
    """The Namespaces of the cluster, and those that the user describes."""
    described = {as_text(dig(body, "metadata", "name")): body for body in discovery.namespaces}
    where = f"{NAMESPACES.api_version}/{NAMESPACES.kind}"
    if NAMESPACES not in discovery.kinds:
        gap = Gap(GapKind.DISCOVERY, where, "discovery of the cluster does not list namespaces")
        return Namespaces(described, gap, decide_policies)
    try:
        listed = {resource.name: resource.body for resource in _needed_namespaces(listing)}
    except (ListFailed, ValueError) as error:
        return Namespaces(described, Gap(GapKind.LIST, where, str(error)), decide_policies)
    return Namespaces(described | listed, decide_policies=decide_policies)


def _needed_namespaces(listing: ScanLists) -> Iterator[Resource]:
    """All namespaces, or those that the user names: a user of one namespace may have no permission to read others."""
    try:
        yield from listing.everything(NAMESPACES, listing.namespaces)
    except ListFailed:
        if not listing.scoped:
            raise
        yield from listing.everything(NAMESPACES)
