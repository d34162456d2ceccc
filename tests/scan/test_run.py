"""The whole line, from two objects in memory to what the store is told."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.errors import ListFailed, UsageError
from scanner.model.outcome import Gap, GapKind
from scanner.model.scan import CoverageState, OutcomeName, ScanState, Scope
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
    """The cluster with more in it."""
    return changed(CLUSTER, documents=[*CLUSTER.documents, *documents])


def test_every_failure_is_told() -> None:
    """Objects that no policy objects to are counted, the others are findings."""
    told = scanned(CLUSTER)
    assert [f"prod/api: {FAILED}", f"prod/db: {FAILED}"] == told.said
    assert [1, 2] == [told.counted(OutcomeName.PASSED), told.counted(OutcomeName.VIOLATED)]


def test_a_scan_that_saw_everything_is_complete() -> None:
    """Nothing is missing: no gap, and the kind that a policy needs is listed to its end."""
    told = scanned(CLUSTER)
    assert (ScanState.COMPLETE, (), CoverageState.LISTED) == (told.scan.state, told.gaps, told.coverage("Pod").state)


def test_only_kinds_that_a_policy_can_match_are_listed() -> None:
    """Besides the policies, the bindings and the namespaces, whatever else there is."""
    cluster = changed(CLUSTER)
    scanned(cluster)
    assert {
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "namespaces",
        "pods",
    } == set(cluster.listed)


def test_the_ledger_says_what_was_listed() -> None:
    """Objects, pages, bytes and the resource version of the first page."""
    line = scanned(CLUSTER).coverage("Pod")
    assert ("v1", 3, 3, 2, "100") == (line.api_version, line.objects, line.evaluated, line.pages, line.resource_version)
    assert line.bytes > 0


def test_the_beginning_is_told_before_anything_is_judged() -> None:
    """Which cluster, when, which policies and bindings."""
    start = scanned(CLUSTER).start
    assert ("test", NOON, ["no-host-network"], ["no-host-network"]) == (
        start.cluster.name,
        start.started_at,
        [it.name for it in start.policies],
        [it.name for it in start.bindings],
    )


def test_a_finding_stands_alone() -> None:
    """It names policy, binding, check, object and what admission would do, and needs the cluster no more."""
    finding = next(it for it in scanned(CLUSTER).findings if it.name == "db")
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
def test_what_the_user_leaves_out_is_not_missing(scope: Scope, names: list[str]) -> None:
    """Such a scan is complete: it saw what it was asked to see."""
    told = scanned(changed(CLUSTER), Options(scope=scope))
    assert (names, ScanState.COMPLETE) == (sorted(it.name for it in told.findings), told.scan.state)


def test_policy_files_add_to_the_cluster() -> None:
    """Their documents are policies, bindings and params like the cluster's."""
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
    told = scanned(CLUSTER, Options(manifests=manifests))
    assert ["api", "db"] == sorted(it.name for it in told.findings if it.policy == "named")
    assert {("default", "names")} == {
        (it.param_namespace, it.param_name) for it in told.findings if it.policy == "named"
    }


def test_a_policy_file_may_replace_the_clusters() -> None:
    """With cluster_policies off, only files count."""
    told = scanned(CLUSTER, Options(cluster_policies=False))
    assert ((), []) == (told.start.policies, told.said)


def test_a_policy_that_nothing_binds_can_be_previewed() -> None:
    """The binding that is made up for it carries the chosen action, and is marked."""
    told = scanned(with_documents(policy("new", "false")), Options(assume_bound=(("new", "Warn"),)))
    previewed = [it for it in told.findings if it.policy == "new"]
    assert {("assumed:new", ("Warn",), False)} == {(it.binding, it.actions, it.denies) for it in previewed}
    assert 3 == len(previewed)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (Options(assume_bound=(("nope", "Deny"),)), "--assume-bound names policy nope"),
        (Options(assume_bound=(("no-host-network", "Shout"),)), "the action must be Deny, Warn or Audit"),
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


def test_a_refused_list_is_a_gap() -> None:
    """The scan goes on with the other kinds."""
    cluster = with_documents(
        policy("nodes", "false", matchConstraints={"resourceRules": [rule("nodes", "pods")]}), binding("nodes", "nodes")
    )
    told = scanned(changed(cluster, refused={"pods": forbidden("pods")}))
    assert [Gap(GapKind.LIST, "v1/Pod", "cannot list pods: forbidden")] == list(told.gaps)
    assert (ScanState.PARTIAL, CoverageState.FORBIDDEN, CoverageState.LISTED) == (
        told.scan.state,
        told.coverage("Pod").state,
        told.coverage("Node").state,
    )
    assert ["n1"] == [it.name for it in told.findings]


def test_a_list_that_breaks_off_keeps_its_pages() -> None:
    """What was seen counts; the rest is a gap."""
    told = scanned(changed(CLUSTER, broken={"pods": ListFailed("failed", "the connection was lost")}))
    assert (2, CoverageState.PARTIAL, "the connection was lost") == (
        told.coverage("Pod").objects,
        told.coverage("Pod").state,
        told.coverage("Pod").note,
    )
    assert ScanState.PARTIAL == told.scan.state


def test_one_refused_namespace_does_not_hide_the_others() -> None:
    """With several namespaces chosen, each is listed by itself."""
    refused = {"default/pods": forbidden("pods in default")}
    told = scanned(changed(CLUSTER, refused=refused), Options(scope=Scope(namespaces=("default", "prod"))))
    assert (["api", "db"], CoverageState.PARTIAL) == (
        sorted(it.name for it in told.findings),
        told.coverage("Pod").state,
    )


def test_an_interrupted_scan_says_what_it_did_not_list() -> None:
    """Pages that were judged stay; every kind that was not listed to its end is in the ledger."""
    cluster = with_documents(
        policy("nodes", "false", matchConstraints={"resourceRules": [rule("nodes", "pods")]}), binding("nodes", "nodes")
    )
    told = scanned(changed(cluster, refused={"nodes": KeyboardInterrupt()}))
    assert [CoverageState.FAILED, CoverageState.FAILED] == [told.coverage(it).state for it in ("Node", "Pod")]
    assert ScanState.PARTIAL == told.scan.state


def test_files_need_no_namespaces() -> None:
    """A namespace that no document describes exists with its name label only."""
    documents = [pod("web", "nowhere", hostNetwork=True), NO_HOST_NETWORK, BOUND]
    told = scanned(FakeCluster(documents, source="files"))
    assert ([f"nowhere/web: {FAILED}"], ScanState.COMPLETE) == (told.said, told.scan.state)


def test_an_object_in_an_unknown_namespace_is_a_gap_on_a_cluster() -> None:
    """It may have been created while the scan ran: its namespace's labels are not known."""
    told = scanned(with_documents(pod("late", "brand-new", hostNetwork=True)))
    assert ["v1/Pod brand-new/late"] == [gap.where for gap in told.gaps]
    assert ScanState.PARTIAL == told.scan.state


def test_unlisted_namespaces_blind_only_policies_that_need_them() -> None:
    """Others are judged; those that need them are gaps, not verdicts."""
    selective = policy(
        "selective",
        "false",
        matchConstraints={"resourceRules": [rule("pods")], "namespaceSelector": {"matchLabels": {"env": "prod"}}},
    )
    cluster = with_documents(selective, binding("selective", "selective"))
    told = scanned(changed(cluster, refused={"namespaces": forbidden("namespaces")}))
    assert (
        {"no-host-network"} == {it.policy for it in told.findings} == {name for _, name in told.end.evaluated_policies}
    )
    assert {"policy selective", "v1/Namespace"} == {gap.where for gap in told.gaps}


def test_unlisted_params_blind_their_policies() -> None:
    """Not finding a param would be a verdict; not being allowed to look is a gap."""
    needy = policy("needy", "false", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    reference = {"name": "x", "namespace": "default", "parameterNotFoundAction": "Deny"}
    cluster = with_documents(needy, binding("needy", "needy", paramRef=reference))
    told = scanned(changed(cluster, refused={"default/configmaps": forbidden("configmaps")}))
    assert (["policy needy"], {"no-host-network"}) == (
        [gap.where for gap in told.gaps],
        {it.policy for it in told.findings},
    )


@pytest.mark.parametrize("plural", ["validatingadmissionpolicies", "validatingadmissionpolicybindings"])
def test_unlisted_policies_are_a_gap(plural: str) -> None:
    """And nothing is said about policies without bindings, or bindings without policies: nobody knows."""
    told = scanned(changed(CLUSTER, refused={f"{plural}.admissionregistration.k8s.io": forbidden(plural)}))
    assert (ScanState.PARTIAL, [], []) == (told.scan.state, told.said, told.health)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"items": 3}', b'{"kind": "Status"}', b"\xff"])
def test_an_unreadable_page_is_a_gap(data: bytes) -> None:
    """The other pages are judged."""
    good = b'{"items": [{"metadata": {"name": "ok", "namespace": "prod"}, "spec": {"hostNetwork": true}}]}'
    told = scanned(changed(CLUSTER, raw={"pods": [data, good]}))
    assert (["v1/Pod"], ["ok"]) == ([gap.where for gap in told.gaps], [it.name for it in told.findings])
    assert (ScanState.PARTIAL, CoverageState.PARTIAL) == (told.scan.state, told.coverage("Pod").state)


@pytest.mark.parametrize("plural", ["namespaces", "validatingadmissionpolicies.admissionregistration.k8s.io"])
@pytest.mark.parametrize("data", [b"{", b'{"items": [3]}', b'{"items": [{"metadata": 3}]}'])
def test_an_unreadable_page_of_what_judging_needs_is_a_gap(plural: str, data: bytes) -> None:
    """Items that are no objects are not passed over."""
    told = scanned(changed(CLUSTER, raw={plural: [data]}))
    assert ScanState.PARTIAL == told.scan.state
    assert told.gaps


def test_progress_is_shown_page_by_page() -> None:
    """With the ledger line so far."""
    seen: list[int] = []
    run(
        changed(CLUSTER),
        FakeStore(),
        Options(),
        scan_id="s",
        clock=lambda: NOON,
        progress=lambda it: seen.append(it.objects),
    )
    assert [2, 3] == seen


def test_params_are_found_where_they_are() -> None:
    """In the request's namespace when the reference names none; a missing one allows or denies as the binding says."""
    sized = policy("sized", "int(params.data.most) > 0", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    reference = {"name": "size", "parameterNotFoundAction": "Allow"}
    cluster = with_documents(
        sized, binding("sized", "sized", paramRef=reference), thing(CONFIG_MAPS, "size", "prod", data={"most": "0"})
    )
    told = scanned(cluster)
    assert {("prod", "api"), ("prod", "db")} == {
        (it.namespace, it.name) for it in told.findings if it.policy == "sized"
    }


def test_nothing_to_do_is_said() -> None:
    """Without policies nothing is listed, and the scan is not complete, although it has no gap."""
    told = scanned(FakeCluster([namespace("default"), pod()]))
    assert ((), (), (), ScanState.PARTIAL) == (
        told.start.policies,
        told.end.coverage,
        told.gaps,
        told.scan.state,
    )


@pytest.mark.parametrize(
    ("options", "state"),
    [
        (Options(), ScanState.PARTIAL),
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
    told = scanned(FakeCluster([namespace("default"), policy("small", "false"), binding("small", "small")]), options)
    assert (0, state) == (sum(line.objects for line in told.end.coverage), told.scan.state)


@pytest.mark.parametrize("scope", [Scope(), Scope(namespaces=("default",))])
def test_a_scan_without_a_bound_policy_is_never_complete_by_itself(scope: Scope) -> None:
    """However narrow it is: nothing was evaluated."""
    told = scanned(FakeCluster([namespace("default"), pod(), policy("small", "false")]), Options(scope=scope))
    assert ScanState.PARTIAL == told.scan.state


def test_kinds_that_two_policies_want_are_listed_once() -> None:
    """Every policy judges the same page."""
    cluster = with_documents(policy("other", "true"), binding("other", "other"))
    scanned(cluster)
    assert 1 == cluster.listed.count(PODS.plural)
