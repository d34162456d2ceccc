"""Pod Security in a scan: levels of namespaces, templates and their pods, exemptions, and the health of labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scanner.documents.pod_security import read_pod_security
from scanner.model.scans.tally import OutcomeName
from scanner.policies.language import with_options
from scanner.policies.pod_security.language import LANGUAGE, PodSecurity
from scanner.policies.pod_security.standards import STANDARDS
from scanner.posture.severity import Severity, describe
from scanner.scan.options import Options
from tests.documents import DEPLOYMENTS, Document, namespace, pod, thing
from tests.policies.pod_security.made import PLAIN, PRIVILEGED, SAFE, deployment, labelled
from tests.scan.fakes import FakeCluster, Recorded, scanned

FILE = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: v1.24}
    exemptions: {namespaces: [system], runtimeClasses: [sandboxed]}
"""


def scan_of(*documents: Document, language: PodSecurity | None = None, **options: Any) -> Recorded:
    """A scan of a cluster, by Pod Security with some configuration."""
    languages = with_options(pod_security=language or PodSecurity())
    return scanned(FakeCluster(documents), Options(languages=languages, allow_empty=True, **options))


@pytest.fixture
def configured(tmp_path: Path) -> PodSecurity:
    """The language with defaults and exemptions."""
    path = tmp_path / "admission.yaml"
    path.write_text(FILE, encoding="utf-8")
    return PodSecurity(read_pod_security(path))


def found(scan: Recorded) -> list[str]:
    """The findings as binding, object and check, sorted."""
    return sorted(f"{each.binding} {each.namespace}/{each.name} {each.check.expression}" for each in scan.findings)


def test_a_pod_that_breaks_the_enforced_level_would_be_refused() -> None:
    """The message is that of the API server, and the implicit warning of the same level is another action of the problem."""
    scan = scan_of(labelled("shop", "baseline"), pod("web", "shop", containers=[PRIVILEGED]))

    assert ["enforce-baseline-latest shop/web privileged", "warn-baseline-latest shop/web privileged"] == found(scan)
    refusal = next(each for each in scan.findings if each.denies)
    assert 'privileged (container "app" must not set securityContext.privileged=true)' == refusal.outcome.message


def test_a_deployment_is_admitted_and_its_pods_would_be_refused() -> None:
    """Its own write has a warning and no refusal."""
    scan = scan_of(labelled("shop", "baseline"), deployment("web", "shop", PRIVILEGED))

    assert [
        ("enforce-baseline-latest-pods", ("RefusePods",), False),
        ("warn-baseline-latest", ("Warn",), False),
    ] == sorted((each.binding, each.actions, each.denies) for each in scan.findings)


def test_the_pods_of_a_template_have_what_the_server_adds_to_pods() -> None:
    """A template in the network of the host has host ports only in its pods."""
    container = {"name": "app", "ports": [{"containerPort": 80}]}
    scan = scan_of(labelled("shop", "baseline"), deployment("web", "shop", container, hostNetwork=True))

    assert [
        "enforce-baseline-latest-pods shop/web hostNamespaces",
        "enforce-baseline-latest-pods shop/web hostPorts",
        "warn-baseline-latest shop/web hostNamespaces",
    ] == found(scan)


def test_a_version_newer_than_the_server_acts_as_the_latest() -> None:
    """The name of the binding keeps what the label names, and policy health tells it."""
    scan = scan_of(labelled("shop", "baseline", version="v1.99"), pod("web", "shop", containers=[PRIVILEGED]))

    assert "enforce-baseline-v1.99 shop/web privileged" in found(scan)
    assert any("which the server does not know" in each.detail for each in scan.end.health)


def test_a_namespace_without_labels_is_judged_by_the_defaults_of_the_file(configured: PodSecurity) -> None:
    """Without the file it is not covered."""
    documents = namespace("shop"), pod("web", "shop", containers=[PRIVILEGED])

    assert [] == found(scan_of(*documents))
    assert ["enforce-baseline-v1.24 shop/web privileged"] == found(scan_of(*documents, language=configured))


@pytest.mark.parametrize(
    ("space", "spec", "reason"),
    [
        ("system", {}, "the namespace is exempt in the configuration of Pod Security"),
        ("shop", {"runtimeClassName": "sandboxed"}, "the runtime class is exempt in the configuration of Pod Security"),
    ],
)
def test_what_is_exempt_is_excepted_with_its_reason(
    configured: PodSecurity, space: str, spec: dict[str, str], reason: str
) -> None:
    """It is counted, and would not be refused."""
    documents = namespace(space), pod("web", space, containers=[PRIVILEGED], **spec)
    (finding,) = scan_of(*documents, language=configured).findings

    assert (reason, False) == (finding.excepted_by, finding.denies)


def test_each_check_of_a_level_has_an_outcome() -> None:
    """A safe pod passes the fifteen checks of the level, and is counted once for each binding."""
    scan = scan_of(labelled("shop", "restricted"), pod("web", "shop", containers=[SAFE]))
    passed = sum(number for key, number in scan.tallies.items() if key.outcome is OutcomeName.PASSED)

    assert [] == found(scan)
    assert 2 * 15 == passed


def test_privileged_namespaces_have_no_binding() -> None:
    """Nothing can be refused there."""
    scan = scan_of(labelled("shop", "privileged"), pod("web", "shop", containers=[PRIVILEGED]))

    assert ([], []) == (found(scan), [each.name for each in scan.start.bindings])


def test_five_thousand_namespaces_cost_a_handful_of_bindings() -> None:
    """A binding is a mode, a level and a version; namespaces belong to it by their labels."""
    namespaces = [labelled(f"n{number}", "baseline" if number % 2 else "restricted") for number in range(5_000)]
    scan = scan_of(*namespaces)

    assert [
        "enforce-baseline-latest",
        "enforce-baseline-latest-pods",
        "enforce-restricted-latest",
        "enforce-restricted-latest-pods",
        "warn-baseline-latest",
        "warn-restricted-latest",
    ] == [each.name for each in scan.start.bindings]


def test_the_pods_of_an_owned_replica_set_are_judged_on_its_deployment() -> None:
    """The server warns of the replica set itself, too."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    replica_sets = replace(DEPLOYMENTS, kind="ReplicaSet", plural="replicasets")
    spec = {"template": {"spec": {"containers": [PRIVILEGED]}}}
    owned = thing(replica_sets, "web-1", "shop", metadata={"ownerReferences": [owner]}, spec=spec)
    cluster = FakeCluster((labelled("shop", "baseline"), owned), kinds=(*FakeCluster().kinds, replica_sets))
    scan = scanned(cluster, Options(allow_empty=True))

    assert ["warn-baseline-latest shop/web-1 privileged"] == found(scan)


def test_health_names_labels_that_do_not_demand_what_they_seem_to() -> None:
    """One line is about all namespaces with one fault."""
    documents = (
        namespace("a", **{"pod-security.kubernetes.io/enforce": "Baseline"}),
        namespace("b", **{"pod-security.kubernetes.io/enforce_version": "v1.30"}),
        labelled("c", "restricted", warn="baseline"),
        labelled("d", "restricted", warn="baseline"),
        namespace("e"),
    )

    assert [
        "namespace a: pod-security.kubernetes.io/enforce is 'Baseline', which must be one of privileged, baseline, restricted: restricted is enforced",
        "namespace b: the label pod-security.kubernetes.io/enforce_version is unknown and decides nothing. Did you mean pod-security.kubernetes.io/enforce-version?",
        "namespace e: no label demands a level, so every pod is admitted",
        "namespaces a, c, d: pod-security.kubernetes.io/warn is weaker than pod-security.kubernetes.io/enforce: no template warns that its pods would be refused",
    ] == sorted(each.detail for each in scan_of(*documents).end.health if each.language == LANGUAGE)


def test_each_check_has_a_severity_and_a_remediation() -> None:
    """A check of restricted that replaces one of baseline finds the same faults, so it is as severe; the policy is as severe as its worst check."""
    policy = next(iter(scan_of(labelled("shop", "baseline")).start.policies))
    described = describe(policy)
    by_id = {each.id: described.severity_of(each.id) for each in STANDARDS}

    assert (Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM) == tuple(
        by_id[name] for name in ("privileged", "hostNamespaces", "runAsNonRoot")
    )
    assert [] == [each.id for each in STANDARDS if each.overrides and by_id[each.id] is not by_id[each.overrides]]
    assert described.severity is min(by_id.values(), key=lambda severity: severity.rank)
    assert len(STANDARDS) - 1 == len({described.remediation_of(each.id) for each in STANDARDS}), (
        "both of procMount are alike"
    )


def test_a_scan_can_leave_pod_security_out() -> None:
    """Then no namespace has a binding."""
    documents = labelled("shop", "baseline"), pod("web", "shop", containers=[PRIVILEGED, PLAIN])
    options = Options(languages=with_options(pod_security=None), allow_empty=True)

    assert [] == found(scanned(FakeCluster(documents), options))
