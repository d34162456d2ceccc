"""Namespaces are listed once: their labels decide about other objects, and the same list is evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from scanner.model.resource import Kind, Page
from scanner.model.scans.scan import CoverageState, Scope
from scanner.policies.language import LANGUAGES
from scanner.scan.lists import ScanLists
from scanner.scan.options import Options
from tests.documents import NAMESPACES, PODS, binding, namespace, pod, policy, rule
from tests.policies.pod_levels import ENFORCE, PodLevels
from tests.scan.fakes import FakeCluster, Recorded, forbidden, scanned

LABELLED = policy(
    "labelled", "has(object.metadata.labels.team)", matchConstraints={"resourceRules": [rule("namespaces")]}
)
TEAMS = {"resourceRules": [rule("pods")], "namespaceSelector": {"matchLabels": {"team": "a"}}}
DOCUMENTS = (
    *(namespace(f"n{number}", team="a") for number in range(5)),
    namespace("bare"),
    pod("web", "bare"),
    pod("web", "n1"),
    LABELLED,
    binding("labelled", "labelled"),
    policy("pods-of-team", "false", matchConstraints=TEAMS),
    binding("pods-of-team", "pods-of-team"),
)


def scan_of(cluster: FakeCluster, **options: Any) -> Recorded:
    """A scan by policies on Namespaces, on labels of namespaces, and derived from them."""
    return scanned(cluster, Options(languages=(*LANGUAGES, PodLevels()), **options))


def test_one_list_serves_matching_derived_policies_and_evaluation() -> None:
    """A scan that needs Namespaces for all three sends one request for them, and fetches none of them ahead."""
    cluster = FakeCluster((*DOCUMENTS, namespace("level", **{ENFORCE: "strict"})), page_size=3)
    scan = scan_of(cluster)

    assert (1, False) == (cluster.listed.count("namespaces"), "namespaces" in cluster.expected)
    assert ["/bare: failed expression: has(object.metadata.labels.team)"] == [
        each for each in scan.messages if "/bare" in each
    ]
    assert (7, CoverageState.LISTED) == (scan.coverage("Namespace").objects, scan.coverage("Namespace").state)


@dataclass
class _Labelling(FakeCluster):
    """A cluster in which a namespace loses its label after each list of Namespaces."""

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        yield from super().pages(kind, namespace=namespace, selector=selector)
        if kind == NAMESPACES:
            self.documents = [
                {**each, "metadata": {"name": each["metadata"]["name"]}} if each["kind"] == "Namespace" else each
                for each in self.documents
            ]


def test_a_label_that_changes_meanwhile_gives_no_contradiction() -> None:
    """A namespace has the label for its pods, and for its own policy: both are as of one list."""
    scan = scan_of(_Labelling(DOCUMENTS))

    assert [
        "/bare: failed expression: has(object.metadata.labels.team)",
        "n1/web: failed expression: false",
    ] == scan.messages


def test_a_param_or_an_expression_needs_no_further_list() -> None:
    """Namespaces as params are those of the same list."""
    by_param = policy("by-param", "true", paramKind={"apiVersion": "v1", "kind": "Namespace"})
    reference = {"name": "n1", "parameterNotFoundAction": "Deny"}
    cluster = FakeCluster((*DOCUMENTS, by_param, binding("by-param", "by-param", paramRef=reference)))
    scan = scan_of(cluster)

    assert (1, ()) == (cluster.listed.count("namespaces"), scan.gaps)


def test_a_selector_of_objects_needs_a_list_of_its_own() -> None:
    """The server alone selects by `--selector`, so Namespaces to evaluate are listed again, narrowed."""
    cluster = FakeCluster(DOCUMENTS)
    scan = scan_of(cluster, scope=Scope(selector="team=a"))

    assert (2, 5) == (cluster.listed.count("namespaces"), scan.coverage("Namespace").objects)


def test_a_list_that_failed_is_tried_again() -> None:
    """The coverage of the kind states the reason."""
    cluster = FakeCluster(DOCUMENTS, refused={"namespaces": forbidden("namespaces")})
    scan = scan_of(cluster)

    assert (2, CoverageState.FORBIDDEN) == (cluster.listed.count("namespaces"), scan.coverage("Namespace").state)


@pytest.mark.parametrize("kinds", [(PODS,), (NAMESPACES,)], ids=["others", "Namespaces"])
def test_pages_are_kept_only_to_be_evaluated(kinds: tuple[Kind, ...]) -> None:
    """They are released if no policy evaluates Namespaces, and after they were read."""
    cluster = FakeCluster(DOCUMENTS)
    listing = ScanLists(cluster, Scope(), ahead=False)
    objects = [*listing.list_all(NAMESPACES), *listing.list_all(NAMESPACES)]
    listing.expect(kinds)
    lists: list[int] = []
    for _ in range(2):
        assert objects[:6] == objects[6:]
        assert 3 == sum(len([*pages]) for pages in listing.list_pages(NAMESPACES))
        lists.append(cluster.listed.count("namespaces"))

    assert ([2, 3] if kinds == (PODS,) else [1, 2]) == lists
