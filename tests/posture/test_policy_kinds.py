"""The kinds that a policy can match, among those whose lists a scan recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.admission.match import could_match
from scanner.model.policy import MatchResources, Rule
from scanner.model.resource import Kind
from scanner.model.scans.scan import Coverage, CoverageState
from scanner.model.selector import EVERYTHING
from scanner.posture.policy_kinds import CoveredKinds, plural_of

TABLE = json.loads((Path(__file__).parents[2] / "scanner" / "cluster" / "kinds.json").read_text())
SHIPPED = [Kind(*row) for row in TABLE["kinds"]]


def match(group: str, version: str, *resources: str) -> MatchResources:
    """Constraints with one rule."""
    return MatchResources((Rule(("*",), (group,), (version,), resources),), (), EVERYTHING, EVERYTHING)


def line(api_version: str, kind: str) -> Coverage:
    """The list of a kind."""
    return Coverage(api_version, kind, CoverageState.LISTED)


def matched(own: MatchResources, *others: MatchResources, lists: tuple[Coverage, ...]) -> set[str]:
    """The kinds of some lists that a policy can match, beside other policies."""
    return {kind for _, kind in CoveredKinds(lists, [own, *others]).list_matched(own)}


CORE = (line("v1", "Pod"), line("v1", "Secret"), line("apps/v1", "Deployment"), line("apps/v1beta1", "Deployment"))


@pytest.mark.parametrize(
    ("own", "kinds"),
    [
        (match("", "v1", "pods"), {"Pod"}),
        (match("", "v1", "pods/*", "secrets"), {"Pod", "Secret"}),
        (match("", "*", "*"), {"Pod", "Secret"}),
        (match("*", "*", "deployments"), {"Deployment"}),
        (match("apps", "v2", "deployments"), set()),
        (match("batch", "v1", "*"), set()),
    ],
)
def test_rules_name_groups_versions_and_plurals(own: MatchResources, kinds: set[str]) -> None:
    """A kind of another group, version or plural is not needed."""
    everything = match("", "v1", "pods", "secrets"), match("apps", "*", "deployments")
    assert kinds == matched(own, *everything, lists=CORE)


def test_only_the_version_that_a_rule_names_is_needed() -> None:
    """A list in another version serves another policy."""
    kinds = CoveredKinds(CORE, [match("apps", "*", "deployments")])
    assert {("apps/v1", "Deployment")} == kinds.list_matched(match("apps", "v1", "deployments"))


def test_a_plural_of_no_known_kind_may_belong_to_a_kind_that_no_rule_names() -> None:
    """A custom kind may have any plural: then it is needed, rather than forgotten."""
    lists = line("example.com/v1", "Person"), line("example.com/v1", "Backup")
    people = match("example.com", "v1", "people")
    assert {"Person"} == matched(people, match("example.com", "v1", "backups"), lists=lists)
    assert {"Backup"} == matched(match("example.com", "v1", "backups"), people, lists=lists)


def test_the_plurals_of_all_built_in_kinds_are_regular() -> None:
    """A kind of the shipped table has the plural that is derived from its name."""
    assert [] == [(kind.kind, kind.plural) for kind in SHIPPED if plural_of(kind.kind) != kind.plural]


@given(st.sets(st.sampled_from(SHIPPED), max_size=6), st.data())
def test_no_kind_that_matches_is_left_out(listed: set[Kind], data: st.DataObject) -> None:
    """Of built-in kinds, exactly those are needed that the rule matches."""
    named = data.draw(st.lists(st.sampled_from([*listed, *SHIPPED[:5]]), min_size=1, max_size=4))
    own = match(named[0].group, named[0].version, *(kind.plural for kind in named))
    others = [match(kind.group, kind.version, kind.plural) for kind in listed]
    lists = [line(kind.api_version, kind.kind) for kind in listed]
    wanted = {(kind.api_version, kind.kind) for kind in listed if could_match(own.rules[0], kind, ("CREATE",))}
    assert wanted == CoveredKinds(lists, [own, *others]).list_matched(own)
