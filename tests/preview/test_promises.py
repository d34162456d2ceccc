"""The promises of a preview, about random rules of every language and random objects: it is the difference of two scans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from random import Random

import pytest

from scanner.audit.page import get_identity
from scanner.model.outcome import Finding
from scanner.model.resource import UserInfo, resource_of
from scanner.model.scans.scan import FILES
from scanner.preview.differences import Difference, SideEffect, find_effect
from scanner.preview.object_requests import ObjectRequests
from scanner.preview.requested import Requested
from scanner.preview.risk_rules import RiskRules, make_risk_rules
from scanner.preview.rule_change import RuleChange, apply_change
from scanner.preview.rule_preview import PreviewResult, preview
from scanner.preview.workload_risks import Action
from scanner.scan.options import Options
from scanner.scan.prepare import gather, plan_scan
from tests.preview.made import KINDS, list_pages, make_change, make_cluster, make_next, make_objects, make_rules
from tests.scan.fakes import NOON, FakeCluster, scanned
from tests.thorough import examples

SEEDS = range(examples(60))
REQUESTS = range(60)
SOURCES = ("cluster", FILES)
OPTIONS = Options(allow_empty=True)
Effects = tuple[SideEffect, frozenset[str]]
Key = tuple[str, str, str, str]


class WholeRequests(RiskRules):
    """Rules that decide each request by both sides from its start."""

    def share(self, requested: Requested, user: UserInfo) -> None:
        """Share nothing."""


def compare(cluster: FakeCluster, change: RuleChange) -> PreviewResult:
    """Preview a change of a cluster."""
    return preview(cluster, change, OPTIONS, NOON)


def describe(findings: Iterable[Finding]) -> Effects:
    """The effect of findings of one policy about one object, and their messages."""
    every = [each for each in findings if not each.excepted_by]
    return find_effect(every), frozenset(each.outcome.message for each in every)


def list_effects(cluster: FakeCluster) -> dict[Key, Effects]:
    """The effect of each policy on each object, as a scan finds it."""
    found: dict[Key, list[Finding]] = {}
    for each in scanned(cluster, OPTIONS).findings:
        found.setdefault((each.kind, each.namespace, each.name, str(each.policy_key)), []).append(each)
    return {key: describe(findings) for key, findings in found.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_set_of_rules_compared_with_itself_changes_nothing(seed: int) -> None:
    """The same documents again: no part of a change, no object, no workload."""
    chance = Random(seed)
    rules = make_rules(chance)
    source = SOURCES[seed % 2]
    result = compare(make_cluster(rules, make_objects(chance), source), make_change(rules, rules))

    assert ((), (), (), ()) == (result.causes, result.objects, result.workloads, result.gaps)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_opposite_change_mirrors_every_difference(seed: int) -> None:
    """A against B, and B against A. No request is newly refused by both."""
    chance = Random(seed)
    one = make_rules(chance)
    other, objects = make_next(chance, one), make_objects(chance)
    source = SOURCES[seed % 2]
    there = compare(make_cluster(one, objects, source), make_change(one, other))
    back = compare(make_cluster(other, objects, source), make_change(other, one))

    def list_differences(result: PreviewResult) -> dict[tuple[object, object], Difference]:
        every = ((each.object, one) for each in result.objects for one in each.difference.policies)
        return {(place, one.policy): one.difference for place, one in every}

    def list_refused(result: PreviewResult) -> set[tuple[object, Action]]:
        risks = (risk for each in result.workloads for risk in each.risks if risk.is_refused)
        return {(risk.object, risk.action) for risk in risks}

    assert {key: each.mirrored for key, each in list_differences(there).items()} == list_differences(back)
    assert set() == list_refused(there) & list_refused(back)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_preview_is_the_difference_of_two_scans(seed: int) -> None:
    """For each policy and object, the effect and the messages before and after the change."""
    chance = Random(seed)
    one = make_rules(chance)
    other, objects = make_next(chance, one), make_objects(chance)
    clusters = [make_cluster(each, objects, SOURCES[seed % 2]) for each in (one, other)]
    result = compare(clusters[0], make_change(one, other))
    before, after = map(list_effects, clusters)

    nothing: Effects = (SideEffect.NONE, frozenset())
    keys = {*before, *after}
    differ = {key: (before.get(key, nothing), after.get(key, nothing)) for key in keys}
    shown = {
        (each.object.kind.kind, each.object.namespace, each.object.name, str(policy.policy)): (
            describe(policy.before),
            describe(policy.after),
        )
        for each in result.objects
        for policy in each.difference.policies
    }
    assert {key: each for key, each in differ.items() if each[0] != each[1]} == shown


@pytest.mark.parametrize("seed", REQUESTS)
def test_the_shortcuts_of_requests_decide_nothing(seed: int) -> None:
    """Every request decided by both sides from its start, and each object decoded again: the same risks."""
    chance = Random(seed)
    one = make_rules(chance)
    other, objects = make_next(chance, one), make_objects(chance)
    cluster = make_cluster(one, objects)
    gathered = gather(cluster, OPTIONS, keep_lists=True)
    changed, _ = apply_change(make_change(one, other), gathered, OPTIONS.languages)
    before, after = (plan_scan(each, OPTIONS, NOON) for each in (gathered, changed))
    keys = {bound.policy.key for each in (before, after) for bound in each.evaluation.bound}
    rules = make_risk_rules(before, after, sorted(key for key in keys if key[1] != "c"))
    whole = WholeRequests(**{each.name: getattr(rules, each.name) for each in fields(rules)} | {"stored": False})
    fast, slow = (ObjectRequests(gathered, each, after, as_manager=False) for each in (rules, whole))
    identities = [get_identity(resource_of(KINDS[0], each)) for each in objects]

    for page in list_pages(cluster, fast.list_kinds(KINDS)):
        assert slow.find_risks(page, identities) == fast.find_risks(page, identities)
