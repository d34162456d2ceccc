"""The labels of namespaces, which may name the owners of objects, are recorded once."""

from __future__ import annotations

from scanner.errors import ListFailed
from scanner.model.scans.scan import Scope
from scanner.scan.options import Options
from tests.documents import binding, pod, policy, rule
from tests.scan.fakes import FakeCluster, scanned

POLICY = policy("p", "true", matchConstraints={"resourceRules": [rule("pods")]})
SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "blue"}}}
PAY = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pay"}}


def cluster(*documents: dict[str, object], **fields: object) -> FakeCluster:
    """Two namespaces, and these documents."""
    return FakeCluster((SHOP, PAY, *documents), **fields)  # type: ignore[arg-type]


def labels(fake: FakeCluster, scope: Scope | None = None) -> dict[str, tuple[tuple[str, str], ...]]:
    """The recorded labels of the namespaces of a scan, by name."""
    recorded = scanned(fake, Options(scope=scope or Scope()))
    return {namespace.name: namespace.labels for namespace in recorded.namespaces}


def test_namespaces_that_no_policy_matches_are_recorded() -> None:
    """With all their labels."""
    assert {"shop": (("team", "blue"),), "pay": ()} == labels(cluster(POLICY, binding("b", "p"), pod()))


def test_evaluated_namespaces_are_recorded_as_objects_alone() -> None:
    """The page of Namespaces has their labels."""
    matching = policy("p", "true", matchConstraints={"resourceRules": [rule("namespaces", scope="*")]})

    assert {} == labels(cluster(matching, binding("b", "p")))


def test_excluded_namespaces_are_not_recorded() -> None:
    """The user left them out."""
    assert {"shop"} == labels(cluster(POLICY, binding("b", "p"), pod()), Scope(exclude_namespaces=("p*",))).keys()


def test_namespaces_that_cannot_be_listed_are_not_recorded() -> None:
    """The gap of the scan names them already."""
    refused = {"namespaces": ListFailed("forbidden", "cannot list namespaces: forbidden")}

    assert {} == labels(cluster(POLICY, binding("b", "p"), pod(), refused=refused))
