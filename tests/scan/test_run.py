"""A whole scan with a cluster and a store in memory."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.errors import ListFailed, UsageError
from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.scan import CoverageState, ScanState, Scope
from scanner.model.scans.tally import OutcomeName
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from scanner.scan.run import run
from tests.documents import CONFIG_MAPS, NODES, PODS, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import NOON, FakeCluster, FakeStore, changed, forbidden, scanned

NO_HOST_NETWORK = policy("no-host-network", "!has(object.spec.hostNetwork) || !object.spec.hostNetwork")
BOUND = binding("no-host-network", "no-host-network")
CLUSTER = FakeCluster(
    [
        namespace("default"),
        namespace("prod", env="prod"),
        pod("web", "default"),
        pod("db", "prod", hostNetwork=True),
        pod("api", "prod", hostNetwork=True, labels={"app": "api"}),
        thing(NODES, "n1"),
        NO_HOST_NETWORK,
        BOUND,
    ]
)
FAILED = "failed expression: !has(object.spec.hostNetwork) || !object.spec.hostNetwork"


def with_documents(*documents: dict[str, Any]) -> FakeCluster:
    """The cluster with more documents."""
    return changed(CLUSTER, documents=[*CLUSTER.documents, *documents])


def test_every_violation_is_a_finding() -> None:
    """Objects that pass are counted, the others are findings."""
    recorded = scanned(CLUSTER)
    assert [f"prod/api: {FAILED}", f"prod/db: {FAILED}"] == recorded.messages
    assert [1, 2] == [recorded.counted(OutcomeName.PASSED), recorded.counted(OutcomeName.VIOLATED)]


def test_a_scan_that_listed_everything_is_complete() -> None:
    """The scan has no gap, and the kind that a policy needs is listed completely."""
    recorded = scanned(CLUSTER)
    assert (ScanState.COMPLETE, (), CoverageState.LISTED) == (
        recorded.scan.state,
        recorded.gaps,
        recorded.coverage("Pod").state,
    )


def test_only_kinds_that_a_policy_can_match_are_listed() -> None:
    """Policies, bindings and namespaces are listed besides them."""
    cluster = changed(CLUSTER)
    scanned(cluster)
    assert {
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "namespaces",
        "pods",
    } == set(cluster.listed)


def test_coverage_counts_the_listed_objects() -> None:
    """Coverage has objects, pages, bytes and the resource version of the first page."""
    line = scanned(CLUSTER).coverage("Pod")
    assert ("v1", 3, 3, 2, "100") == (line.api_version, line.objects, line.evaluated, line.pages, line.resource_version)
    assert line.bytes > 0


def test_the_start_is_recorded_before_the_first_page() -> None:
    """The start names the cluster, the time, the policies and the bindings."""
    start = scanned(CLUSTER).start
    assert ("test", NOON, ["no-host-network"], ["no-host-network"]) == (
        start.cluster.name,
        start.started_at,
        [policy.name for policy in start.policies],
        [binding.name for binding in start.bindings],
    )


def test_a_finding_is_complete() -> None:
    """A finding names policy, binding, check, object and the decision of admission."""
    finding = next(finding for finding in scanned(CLUSTER).findings if finding.name == "db")
    assert ("no-host-network", "no-host-network", "v1", "Pod", "prod", "CREATE", ("Deny",), True) == (
        finding.policy,
        finding.binding,
        finding.api_version,
        finding.kind,
        finding.namespace,
        finding.operation,
        finding.actions,
        finding.denies,
    )
    assert 64 == len(finding.fingerprint)


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        (Scope(namespaces=("default",)), []),
        (Scope(namespaces=("default", "prod")), ["api", "db"]),
        (Scope(exclude_namespaces=("pr*",)), []),
        (Scope(selector="app=api"), ["api"]),
        (Scope(kinds=("Node",)), []),
        (Scope(kinds=("PODS",)), ["api", "db"]),
        (Scope(skip_kinds=("pods",)), []),
        (Scope(policies=("no-*",)), ["api", "db"]),
        (Scope(bindings=("no-host-network",)), ["api", "db"]),
    ],
)
def test_kinds_that_the_user_leaves_out_are_no_gaps(scope: Scope, names: list[str]) -> None:
    """A scan of a limited scope is complete."""
    recorded = scanned(changed(CLUSTER), Options(scope=scope))
    assert (names, ScanState.COMPLETE) == (sorted(finding.name for finding in recorded.findings), recorded.scan.state)


def test_policy_files_add_to_the_cluster() -> None:
    """The policies, bindings and params of files are used like those of the cluster."""
    manifests = (
        Manifest(
            "f.yaml, document 1",
            policy(
                "named", "object.metadata.name == params.data.name", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}
            ),
        ),
        Manifest(
            "f.yaml, document 2",
            binding(
                "named", "named", paramRef={"name": "names", "namespace": "default", "parameterNotFoundAction": "Deny"}
            ),
        ),
        Manifest("f.yaml, document 3", thing(CONFIG_MAPS, "names", "default", data={"name": "web"})),
    )
    recorded = scanned(CLUSTER, Options(manifests=manifests))
    assert ["api", "db"] == sorted(finding.name for finding in recorded.findings if finding.policy == "named")
    assert {("default", "names")} == {
        (finding.param_namespace, finding.param_name) for finding in recorded.findings if finding.policy == "named"
    }


def test_the_policies_of_the_cluster_can_be_left_out() -> None:
    """Without `cluster_policies` only files are read."""
    recorded = scanned(CLUSTER, Options(cluster_policies=False))
    assert ((), []) == (recorded.start.policies, recorded.messages)


def test_a_policy_without_a_binding_can_be_previewed() -> None:
    """The assumed binding has the chosen action, and is marked."""
    recorded = scanned(with_documents(policy("new", "false")), Options(assume_bound=(("new", "Warn"),)))
    previewed = [finding for finding in recorded.findings if finding.policy == "new"]
    assert {("assumed:new", ("Warn",), False)} == {
        (finding.binding, finding.actions, finding.denies) for finding in previewed
    }
    assert 3 == len(previewed)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (Options(assume_bound=(("nope", "Deny"),)), "--assume-bound names policy nope"),
        (Options(assume_bound=(("no-host-network", "Shout"),)), "the action must be Deny, Warn or Audit"),
        (
            Options(assume_bound=(("no-host-network", "Deny"),)),
            "the policy is bound already, by no-host-network. Leave out --assume-bound no-host-network; to preview another",
        ),
        (Options(scope=Scope(policies=("nope",))), "--policy nope matches nothing; there is: no-host-network"),
        (Options(scope=Scope(bindings=("nope",))), "--binding nope matches nothing; there is: no-host-network"),
        (Options(scope=Scope(kinds=("Widget",))), "--kind Widget matches nothing that the cluster serves"),
        (Options(scope=Scope(namespaces=("prd",))), "--namespace prd: the cluster has no such namespace"),
    ],
)
def test_options_that_name_nothing_are_usage_errors(options: Options, text: str) -> None:
    """A typing error must not look like a clean cluster; nothing is recorded."""
    with pytest.raises(UsageError, match=text):
        scanned(CLUSTER, options)


def test_a_denied_list_is_a_gap() -> None:
    """The scan continues with the other kinds."""
    cluster = with_documents(
        policy("nodes", "false", matchConstraints={"resourceRules": [rule("nodes", "pods")]}), binding("nodes", "nodes")
    )
    recorded = scanned(changed(cluster, refused={"pods": forbidden("pods")}))
    assert [Gap(GapKind.LIST, "v1/Pod", "cannot list pods: forbidden")] == list(recorded.gaps)
    assert (ScanState.INCOMPLETE, CoverageState.FORBIDDEN, CoverageState.LISTED) == (
        recorded.scan.state,
        recorded.coverage("Pod").state,
        recorded.coverage("Node").state,
    )
    assert ["n1"] == [finding.name for finding in recorded.findings]


def test_a_list_that_breaks_off_keeps_its_pages() -> None:
    """The listed objects count, and the rest is a gap."""
    recorded = scanned(changed(CLUSTER, broken={"pods": ListFailed("failed", "the connection was lost")}))
    assert (2, CoverageState.PARTIAL, "the connection was lost") == (
        recorded.coverage("Pod").objects,
        recorded.coverage("Pod").state,
        recorded.coverage("Pod").note,
    )
    assert ScanState.INCOMPLETE == recorded.scan.state


def test_one_denied_namespace_does_not_hide_the_others() -> None:
    """Each chosen namespace is listed by itself."""
    refused = {"default/pods": forbidden("pods in default")}
    recorded = scanned(changed(CLUSTER, refused=refused), Options(scope=Scope(namespaces=("default", "prod"))))
    assert (["api", "db"], CoverageState.PARTIAL) == (
        sorted(finding.name for finding in recorded.findings),
        recorded.coverage("Pod").state,
    )


def test_an_interrupted_scan_names_the_kinds_that_it_did_not_list() -> None:
    """Evaluated pages stay, and coverage has every kind that was not listed completely."""
    cluster = with_documents(
        policy("nodes", "false", matchConstraints={"resourceRules": [rule("nodes", "pods")]}), binding("nodes", "nodes")
    )
    recorded = scanned(changed(cluster, refused={"nodes": KeyboardInterrupt()}))
    assert [CoverageState.FAILED, CoverageState.FAILED] == [recorded.coverage(kind).state for kind in ("Node", "Pod")]
    assert ScanState.INCOMPLETE == recorded.scan.state


def test_files_need_no_namespaces() -> None:
    """A namespace that no document describes has its name label only."""
    documents = [pod("web", "nowhere", hostNetwork=True), NO_HOST_NETWORK, BOUND]
    recorded = scanned(FakeCluster(documents, source="files"))
    assert ([f"nowhere/web: {FAILED}"], ScanState.COMPLETE) == (recorded.messages, recorded.scan.state)


def test_an_object_in_an_unknown_namespace_is_a_gap_on_a_cluster() -> None:
    """The namespace may have been created during the scan, so its labels are not known."""
    recorded = scanned(with_documents(pod("late", "brand-new", hostNetwork=True)))
    assert ["v1/Pod brand-new/late"] == [gap.where for gap in recorded.gaps]
    assert ScanState.INCOMPLETE == recorded.scan.state


def test_without_namespaces_only_policies_that_read_them_are_gaps() -> None:
    """All other policies are evaluated."""
    selective = policy(
        "selective",
        "false",
        matchConstraints={"resourceRules": [rule("pods")], "namespaceSelector": {"matchLabels": {"env": "prod"}}},
    )
    cluster = with_documents(selective, binding("selective", "selective"))
    recorded = scanned(changed(cluster, refused={"namespaces": forbidden("namespaces")}))
    assert (
        {"no-host-network"}
        == {finding.policy for finding in recorded.findings}
        == {name for _, name in recorded.end.evaluated_policies}
    )
    assert {"policy selective", "v1/Namespace"} == {gap.where for gap in recorded.gaps}


def test_a_policy_whose_params_may_not_be_listed_is_a_gap() -> None:
    """A missing param would be a verdict, a missing permission is a gap."""
    needy = policy("needy", "false", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    reference = {"name": "x", "namespace": "default", "parameterNotFoundAction": "Deny"}
    cluster = with_documents(needy, binding("needy", "needy", paramRef=reference))
    recorded = scanned(changed(cluster, refused={"default/configmaps": forbidden("configmaps")}))
    assert (["policy needy"], {"no-host-network"}) == (
        [gap.where for gap in recorded.gaps],
        {finding.policy for finding in recorded.findings},
    )


@pytest.mark.parametrize("plural", ["validatingadmissionpolicies", "validatingadmissionpolicybindings"])
def test_unlisted_policies_are_a_gap(plural: str) -> None:
    """Policy health reports neither policies without bindings nor bindings without policies then."""
    recorded = scanned(changed(CLUSTER, refused={f"{plural}.admissionregistration.k8s.io": forbidden(plural)}))
    assert (ScanState.INCOMPLETE, [], []) == (recorded.scan.state, recorded.messages, recorded.health)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"items": 3}', b'{"kind": "Status"}', b"\xff"])
def test_an_unreadable_page_is_a_gap(data: bytes) -> None:
    """The other pages are evaluated."""
    good = b'{"items": [{"metadata": {"name": "ok", "namespace": "prod"}, "spec": {"hostNetwork": true}}]}'
    recorded = scanned(changed(CLUSTER, raw={"pods": [data, good]}))
    assert (["v1/Pod"], ["ok"]) == (
        [gap.where for gap in recorded.gaps],
        [finding.name for finding in recorded.findings],
    )
    assert (ScanState.INCOMPLETE, CoverageState.PARTIAL) == (recorded.scan.state, recorded.coverage("Pod").state)


@pytest.mark.parametrize("plural", ["namespaces", "validatingadmissionpolicies.admissionregistration.k8s.io"])
@pytest.mark.parametrize("data", [b"{", b'{"items": [3]}', b'{"items": [{"metadata": 3}]}'])
def test_an_unreadable_page_of_namespaces_or_params_is_a_gap(plural: str, data: bytes) -> None:
    """Items that are no objects make the scan partial."""
    recorded = scanned(changed(CLUSTER, raw={plural: [data]}))
    assert ScanState.INCOMPLETE == recorded.scan.state
    assert recorded.gaps


def test_progress_is_shown_page_by_page() -> None:
    """The progress has the coverage of the kind so far."""
    seen: list[int] = []
    run(
        changed(CLUSTER),
        FakeStore(),
        Options(),
        scan_id="s",
        clock=lambda: NOON,
        progress=lambda coverage: seen.append(coverage.objects),
    )
    assert [2, 3] == seen


def test_params_are_found_in_their_namespace() -> None:
    """The namespace is that of the request if the reference names none; without a param the binding allows or denies."""
    sized = policy("sized", "int(params.data.most) > 0", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    reference = {"name": "size", "parameterNotFoundAction": "Allow"}
    cluster = with_documents(
        sized, binding("sized", "sized", paramRef=reference), thing(CONFIG_MAPS, "size", "prod", data={"most": "0"})
    )
    recorded = scanned(cluster)
    assert {("prod", "api"), ("prod", "db")} == {
        (finding.namespace, finding.name) for finding in recorded.findings if finding.policy == "sized"
    }


def test_a_scan_without_policies_is_not_complete() -> None:
    """Without policies no object is listed. It has no gap."""
    recorded = scanned(FakeCluster([namespace("default"), pod()]))
    assert ((), (), (), ScanState.INCOMPLETE) == (
        recorded.start.policies,
        recorded.end.coverage,
        recorded.gaps,
        recorded.scan.state,
    )


@pytest.mark.parametrize(
    ("options", "state"),
    [
        (Options(), ScanState.INCOMPLETE),
        (Options(allow_empty=True), ScanState.COMPLETE),
        (Options(scope=Scope(namespaces=("default",))), ScanState.COMPLETE),
        (Options(scope=Scope(selector="a=b")), ScanState.COMPLETE),
        (Options(scope=Scope(kinds=("Pod",))), ScanState.COMPLETE),
        (Options(scope=Scope(policies=("small",))), ScanState.COMPLETE),
        (Options(scope=Scope(skip_kinds=("nodes",))), ScanState.COMPLETE),
        (Options(scope=Scope(operation="create")), ScanState.COMPLETE),
    ],
)
def test_a_scan_without_objects_is_complete_only_if_the_user_narrowed_it(options: Options, state: ScanState) -> None:
    """Or accepts it."""
    recorded = scanned(
        FakeCluster([namespace("default"), policy("small", "false"), binding("small", "small")]), options
    )
    assert (0, state) == (sum(line.objects for line in recorded.end.coverage), recorded.scan.state)


@pytest.mark.parametrize("scope", [Scope(), Scope(namespaces=("default",))])
def test_a_scan_without_a_bound_policy_is_never_complete_by_itself(scope: Scope) -> None:
    """However narrow it is: nothing was evaluated."""
    recorded = scanned(FakeCluster([namespace("default"), pod(), policy("small", "false")]), Options(scope=scope))
    assert ScanState.INCOMPLETE == recorded.scan.state


def test_kinds_that_two_policies_want_are_listed_once() -> None:
    """Both policies evaluate the same page."""
    cluster = with_documents(policy("other", "true"), binding("other", "other"))
    scanned(cluster)
    assert 1 == cluster.listed.count(PODS.plural)
