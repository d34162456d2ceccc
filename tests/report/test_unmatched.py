"""A policy matches nothing only if the scan shows that: the alert on it must be true, and must be able to fire."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.scan import Coverage, CoverageState, Scope
from scanner.report.document.document import document_of
from scanner.report.document.scan_numbers import find_unmatched_policies, numbers_in
from tests.report.in_memory import ScanInMemory

from .records import binding, small_record

NAME = "no-host-network"
KEY = "ValidatingAdmissionPolicy", NAME


def unmatched(record: ScanInMemory) -> frozenset[tuple[str, str]]:
    """The policies that match nothing, which a document and a record must agree on."""
    found = find_unmatched_policies(record)
    assert found == numbers_in(document_of(record)).unmatched
    return found


def with_scope(scope: Scope) -> ScanInMemory:
    """The small scan, in which one policy on `apps` matched no object, with a scope."""
    record = small_record()
    return replace(record, scan=replace(record.scan, scope=scope))


@pytest.mark.parametrize("scope", [Scope(), Scope(skip_kinds=("secrets",)), Scope(exclude_namespaces=("kube-system",))])
def test_standing_exclusions_hide_no_policy_of_other_kinds(scope: Scope) -> None:
    """The chart leaves out Secrets in each scan, and its alert can fire."""
    assert {KEY} == unmatched(with_scope(scope))


@pytest.mark.parametrize(
    "scope",
    [
        Scope(namespaces=("shop",)),
        Scope(kinds=("Pod",)),
        Scope(policies=(NAME,)),
        Scope(bindings=(NAME,)),
        Scope(selector="app=web"),
        Scope(operation="create"),
    ],
)
def test_a_part_of_the_cluster_shows_nothing_about_a_policy(scope: Scope) -> None:
    """The objects of the policy may be in the other part."""
    assert frozenset() == unmatched(with_scope(scope))


@pytest.mark.parametrize("state", [state for state in CoverageState if state is not CoverageState.LISTED])
def test_a_policy_needs_each_of_its_kinds_listed(state: CoverageState) -> None:
    """The objects that it matches may be among those that were not listed."""
    record = small_record()
    coverage = (*record.coverage, Coverage("apps/v1", "StatefulSet", state))

    assert frozenset() == unmatched(replace(record, coverage=coverage))


@pytest.mark.parametrize("kind", [GapKind.OBJECT, GapKind.CONVERSION, GapKind.EVALUATION])
def test_a_gap_about_its_kind_hides_a_policy(kind: GapKind) -> None:
    """An object that could not be read may be one that the policy matches; a gap of another kind is none."""
    record = small_record()
    own = replace(record, gaps=(Gap(kind, "apps/v1/Deployment shop/web", "not readable"),))
    other = replace(record, gaps=(Gap(kind, "v1/Namespace shop", "not readable"),))

    assert [frozenset(), frozenset({KEY})] == [unmatched(own), unmatched(other)]


def test_a_policy_on_a_kind_that_was_left_out_is_not_known_to_match_nothing() -> None:
    """In an installation with the chart no policy on Secrets has an alert."""
    record = small_record()
    used = next(used for used in record.policies if used.policy.key == KEY)
    match = used.policy.match
    assert match is not None
    rules = tuple(replace(rule, api_groups=("",), resources=("secrets",)) for rule in match.rules)
    on_secrets = replace(used, policy=replace(used.policy, match=replace(match, rules=rules)))

    assert frozenset() == unmatched(replace(record, policies=(on_secrets,)))


def test_a_policy_of_which_one_binding_matches_matches_something() -> None:
    """Policy health names the binding that matches nothing; the metric is about policies."""
    record = small_record()
    used = next(used for used in record.policies if used.policy.key == KEY)
    two = replace(used, bindings=(*used.bindings, binding("other", NAME, "Warn")))

    assert frozenset() == unmatched(replace(record, policies=(two,)))


def test_a_preview_is_no_bound_policy() -> None:
    """Nothing that an assumed binding matches or not is in force."""
    record = small_record()
    assumed = tuple(
        replace(used, bindings=tuple(replace(each, assumed=True) for each in used.bindings)) for used in record.policies
    )

    assert frozenset() == unmatched(replace(record, policies=assumed))


def test_a_policy_on_no_served_kind_matches_nothing() -> None:
    """Its rules have a typing error."""
    record = small_record()
    health = (Health(HealthKind.NO_KIND, NAME, "", "no kind is served"),)

    assert {KEY} == unmatched(replace(record, health=health))
