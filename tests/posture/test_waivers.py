"""Which waivers apply on a day, and to which findings."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.selector import Requirement, Selector
from scanner.model.waiver import Waiver, WaiverSubject
from scanner.posture.waivers.waivers import (
    IN_FORCE,
    WaiverIndex,
    WaiverRules,
    WaiverState,
    conditions_of,
    select_by_cluster,
    select_matching,
    state_on,
)
from tests.posture.waivers import DAY, subject, waiver

RULES = WaiverRules()
_DAYS = st.dates(date(2026, 1, 1), date(2026, 2, 10))


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, WaiverState.ACTIVE),
        ({"until": DAY}, WaiverState.EXPIRING),
        ({"until": DAY + timedelta(days=6)}, WaiverState.EXPIRING),
        ({"until": DAY + timedelta(days=7)}, WaiverState.ACTIVE),
        ({"until": DAY - timedelta(days=1)}, WaiverState.EXPIRED),
        ({"since": DAY}, WaiverState.ACTIVE),
        ({"since": DAY + timedelta(days=1)}, WaiverState.NOT_YET_ACTIVE),
        ({"approved_by": " Ann "}, WaiverState.SELF_APPROVED),
        ({"namespace": ""}, WaiverState.TOO_BROAD),
        ({"namespace": "", "check": "c-1", "cluster": "prod"}, WaiverState.TOO_BROAD),
        ({"namespace": "", "workload": "web"}, WaiverState.ACTIVE),
        ({"namespace": "", "object": "web"}, WaiverState.ACTIVE),
        ({"namespace": "", "selector": Selector((Requirement("app", "Exists"),))}, WaiverState.ACTIVE),
    ],
)
def test_the_state_of_a_waiver_follows_from_its_fields_and_the_day(fields: dict[str, Any], state: WaiverState) -> None:
    """Both days are inclusive."""
    assert state == state_on(waiver(**fields), DAY, RULES)


@pytest.mark.parametrize(
    ("since", "until", "state"),
    [
        (DAY, DAY + timedelta(days=29), WaiverState.ACTIVE),
        (DAY, DAY + timedelta(days=30), WaiverState.TOO_LONG),
        (None, DAY + timedelta(days=8), WaiverState.TOO_LONG),
    ],
)
def test_a_waiver_that_applies_for_too_long_waives_nothing(since: date | None, until: date, state: WaiverState) -> None:
    """Without a first day, the number of days is unknown."""
    assert state == state_on(waiver(since=since, until=until), DAY, WaiverRules(longest_days=30))


@given(st.lists(st.tuples(st.none() | _DAYS, _DAYS), max_size=8), _DAYS)
def test_the_waivers_in_force_are_those_of_a_naive_evaluation(
    ranges: list[tuple[date | None, date]], day: date
) -> None:
    """For every date."""
    waivers = [waiver(f"w{number}", since=since, until=until) for number, (since, until) in enumerate(ranges)]
    naive = {each.name for each in waivers if (each.since or date.min) <= day <= each.until}
    assert naive == {each.name for each in waivers if state_on(each, day, RULES) in IN_FORCE}


@pytest.mark.parametrize(
    ("fields", "failing"),
    [
        ({}, []),
        ({"policy": "other"}, ["policy"]),
        ({"check": "c-1"}, []),
        ({"check": "object.spec.replicas <= 5"}, []),
        ({"check": "object.spec.replicas <= 6"}, ["check"]),
        ({"check": "0"}, ["check"]),
        ({"namespace": "sho"}, ["namespace"]),
        ({"workload": "deployment/web"}, []),
        ({"workload": "web"}, []),
        ({"workload": "StatefulSet/web"}, ["workload"]),
        ({"object": "Pod/web-1"}, []),
        ({"object": "Pod/web-2"}, ["object"]),
        ({"selector": Selector((Requirement("app", "In", ("web", "api")),))}, []),
        ({"selector": Selector((Requirement("app", "NotIn", ("web",)),))}, ["selector"]),
        ({"selector": Selector((Requirement("tier", "Exists"),)), "workload": "api"}, ["workload", "selector"]),
    ],
)
def test_a_waiver_matches_a_finding_if_each_of_its_fields_does(fields: dict[str, Any], failing: list[str]) -> None:
    """The fields that do not match are known by name."""
    own = waiver(**fields)
    assert failing == [name for name, test in conditions_of(own) if not test(subject())]
    assert ([] if failing else [own]) == _found([own], subject())


def _found(waivers: list[Waiver], of: WaiverSubject) -> list[Waiver]:
    """The waivers that an index finds."""
    return select_matching(
        WaiverIndex(waivers).find_near(of.policy, of.name, of.workload_name, of.namespace, of.labels), of
    )


_NAMES = st.sampled_from(["a", "b"])
_MAYBE = st.sampled_from(["", "a", "b"])
_SELECTORS = st.sampled_from(
    [
        (),
        (Requirement("app", "In", ("a",)),),
        (Requirement("app", "In", ("a", "b")), Requirement("team", "Exists")),
        (Requirement("app", "NotIn", ("a",)),),
    ]
)
_WAIVERS = st.builds(
    lambda policy, check, namespace, workload, name, selector, until: waiver(
        policy=policy,
        check=check,
        namespace=namespace,
        workload=workload,
        object=name,
        selector=Selector(selector),
        until=until,
    ),
    *(_NAMES, _MAYBE, _MAYBE, st.sampled_from(["", "a", "K/b"]), st.sampled_from(["", "k/a", "b"]), _SELECTORS, _DAYS),
)
_LABELS = st.sampled_from([(), (("app", "a"),), (("app", "b"), ("team", "a"))])
_SUBJECTS = st.builds(WaiverSubject, *(_NAMES,) * 4, st.just("K"), _NAMES, st.just("K"), _NAMES, _LABELS)


@given(st.lists(_WAIVERS, max_size=12), _SUBJECTS)
def test_the_index_finds_the_waivers_that_match(unnamed: list[Waiver], found: WaiverSubject) -> None:
    """As many as a comparison with every waiver finds, the one that applies longest first. No two have the same name."""
    waivers = [replace(each, name=f"waiver-{number}") for number, each in enumerate(unnamed)]
    naive = [each for each in waivers if all(test(found) for _, test in conditions_of(each))]
    assert sorted(naive, key=lambda each: (-each.until.toordinal(), each.name)) == _found(waivers, found)


def test_a_waiver_is_for_the_clusters_that_its_glob_matches() -> None:
    """Without a cluster, it is for all."""
    waivers = [waiver("all"), waiver("prod", cluster="prod-*"), waiver("dev", cluster="dev")]
    assert ["all", "prod"] == [each.name for each in select_by_cluster(waivers, ("prod-eu",))]
