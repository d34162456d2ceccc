"""A second scan of a live cluster resolves a finding only after it has evaluated the object again.

Each test has a policy, objects and a database of its own, so that all of them can share a server.
"""

from __future__ import annotations

import re

import pytest

from scanner.model.json import JsonObject, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration.apiserver import ApiServer
from tests.integration.made import LABEL, binding, labelled, namespace, policy
from tests.integration.manifests import apply, delete

RED, BLUE = "red", "blue"


class Cluster:
    """The shared server as one test sees it: with one policy, and a database that remembers the scans."""

    def __init__(self, server: ApiServer, name: str, assay: Assay) -> None:
        self.server = server
        self.name = name
        self.assay = assay
        apply(server, [policy(name, "configmaps", "services"), binding(name)])

    def hold(self, *documents: JsonObject) -> None:
        """Store objects."""
        apply(self.server, documents)

    def config_map(self, name: str, *, within: str = RED, by: str | None = None) -> JsonObject:
        """A ConfigMap that the policy objects to, or (`by`) no longer."""
        return labelled("ConfigMap", self.name if by is None else by, f"{self.name}-{name}", namespace=within)

    def service(self, name: str, *, by: str | None = None) -> JsonObject:
        """A Service that the policy objects to, or (`by`) no longer."""
        spec = {"type": "ExternalName", "externalName": "example.com"}
        return labelled("Service", self.name if by is None else by, f"{self.name}-{name}", namespace=RED, spec=spec)

    def scan(self, *flags: str) -> Ran:
        """Scan with this policy alone."""
        where = ("--kubeconfig", self.server.kubeconfig, "--policy", self.name)
        ran = self.assay("scan", *where, "-o", "json", *flags)
        assert ran.code == 0, ran.stderr
        return ran


@pytest.fixture
def cluster(api_server: ApiServer, assay: Assay, request: pytest.FixtureRequest) -> Cluster:
    """Two namespaces, and a policy that is named after the test."""
    apply(api_server, [namespace(RED), namespace(BLUE)])
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")[:60].strip("-")
    return Cluster(api_server, name, assay)


def named(ran: Ran, section: str, *, status: str = "") -> list[str]:
    """The last part of the names of a section's objects, sorted; of those with a status if one is given."""
    findings = [finding for finding in as_list(ran.report[section]) if not status or dig(finding, "status") == status]
    return sorted(as_text(dig(finding, "object", "name")).rpartition("-")[2] for finding in findings)


def unchecked(ran: Ran) -> object:
    """The number of open findings that a scan did not check."""
    return dig(ran.report, "changes", "unchecked")


def test_mended_objects_are_resolved(cluster: Cluster) -> None:
    """An object that was changed so that the policy no longer objects is resolved, the other one is still open."""
    cluster.hold(cluster.config_map("mended"), cluster.config_map("broken"))
    first = cluster.scan()
    cluster.hold(cluster.config_map("mended", by="no-policy"))

    second = cluster.scan()

    assert ["broken", "mended"] == named(first, "findings", status="new")
    assert ["broken"] == named(second, "findings", status="open")
    assert ["mended"] == named(second, "resolved")


def test_deleted_objects_are_resolved(cluster: Cluster) -> None:
    """The findings of a deleted object are resolved."""
    cluster.hold(cluster.config_map("gone"), cluster.config_map("kept"))
    cluster.scan()
    delete(cluster.server, cluster.config_map("gone"))

    second = cluster.scan()

    assert (["kept"], ["gone"]) == (named(second, "findings"), named(second, "resolved"))


def test_an_object_made_again_continues_its_finding(cluster: Cluster) -> None:
    """The new object's finding has another identity and the age of the deleted object's: neither is new nor resolved."""
    cluster.hold(cluster.config_map("again"))
    cluster.scan()
    delete(cluster.server, cluster.config_map("again"))
    cluster.hold(cluster.config_map("again"))

    second = cluster.scan()

    assert (["again"], []) == (named(second, "findings", status="open"), named(second, "resolved"))
    [finding] = as_list(second.report["findings"])
    assert dig(finding, "continues")
    assert "objectCreated" == dig(finding, "cause", "kind")


def test_a_finding_that_comes_back_is_reopened(cluster: Cluster) -> None:
    """The history of an object goes on where it had ended."""
    cluster.hold(cluster.config_map("back"))
    cluster.scan()
    cluster.hold(cluster.config_map("back", by="no-policy"))
    cluster.scan()
    cluster.hold(cluster.config_map("back"))

    third = cluster.scan()

    assert ["back"] == named(third, "findings", status="reopened")


def test_a_namespace_resolves_nothing_outside(cluster: Cluster) -> None:
    """With -n, fixes in other namespaces stay unseen."""
    cluster.hold(cluster.config_map("here"), cluster.config_map("there", within=BLUE))
    cluster.scan()
    cluster.hold(cluster.config_map("here", by="no-policy"), cluster.config_map("there", within=BLUE, by="no-policy"))

    second = cluster.scan("-n", RED)
    third = cluster.scan()

    assert (["here"], 1) == (named(second, "resolved"), unchecked(second))
    assert (["there"], 0) == (named(third, "resolved"), unchecked(third))


def test_excluded_namespaces_resolve_nothing(cluster: Cluster) -> None:
    """With --exclude-namespace, fixes in that namespace stay unseen."""
    cluster.hold(cluster.config_map("here"), cluster.config_map("there", within=BLUE))
    cluster.scan()
    cluster.hold(cluster.config_map("here", by="no-policy"), cluster.config_map("there", within=BLUE, by="no-policy"))

    second = cluster.scan("--exclude-namespace", "bl*")

    assert (["here"], 1) == (named(second, "resolved"), unchecked(second))


def test_a_selector_resolves_nothing(cluster: Cluster) -> None:
    """With -l, an object that is not listed may have lost its label or its violation, so its finding stays open."""
    cluster.hold(cluster.config_map("kept"), cluster.config_map("mended"))
    cluster.scan()
    cluster.hold(cluster.config_map("mended", by="no-policy"))

    second = cluster.scan("-l", f"{LABEL}={cluster.name}")

    assert (["kept"], [], 1) == (named(second, "findings"), named(second, "resolved"), unchecked(second))


@pytest.mark.parametrize("flag", [("--kind", "ConfigMap"), ("--kind", "configmaps"), ("--skip-kind", "services")])
def test_left_out_kinds_resolve_nothing(cluster: Cluster, flag: tuple[str, str]) -> None:
    """With --kind and --skip-kind, fixes of objects of other kinds stay unseen."""
    cluster.hold(cluster.config_map("data"), cluster.service("door"))
    cluster.scan()
    cluster.hold(cluster.config_map("data", by="no-policy"), cluster.service("door", by="no-policy"))

    second = cluster.scan(*flag)

    assert (["data"], 1) == (named(second, "resolved"), unchecked(second))


def test_a_policy_without_binding_fixes_nothing(cluster: Cluster) -> None:
    """The findings of a policy that is no longer in force are resolved as unbound."""
    cluster.hold(cluster.config_map("still-wrong"))
    cluster.scan()
    delete(cluster.server, binding(cluster.name))

    second = cluster.scan("--allow-empty")

    assert ([], ["wrong"], 0) == (named(second, "findings"), named(second, "resolved"), unchecked(second))
    assert ["unbound"] == [dig(finding, "resolution") for finding in as_list(second.report["resolved"])]


def test_pages_do_not_change_what_is_found(cluster: Cluster) -> None:
    """One object a page or all of them on one: the same findings, which a second scan knows again."""
    cluster.hold(*(cluster.config_map(f"object-{number}") for number in range(5)))
    first = cluster.scan("--chunk-size", "1")

    second = cluster.scan()

    assert 5 == len(named(first, "findings", status="new"))
    assert named(first, "findings") == named(second, "findings", status="open")
