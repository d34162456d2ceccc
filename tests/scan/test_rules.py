"""The rules that a scan records besides policies and bindings, and the kinds that none of its policies covers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scanner.errors import ClusterError
from scanner.model.resource import UserInfo, build_user_info
from scanner.model.scans.method import Method
from scanner.model.scans.scan import Scope
from scanner.scan.options import Options
from tests.documents import CONFIG_MAPS, LIMITS, SECRETS, Document, binding, namespace, pod, policy, thing
from tests.scan.fakes import FakeCluster, forbidden, scanned

PARAM = {"apiVersion": "v1", "kind": "ConfigMap"}
WITH_PARAM = policy("p", "true", paramKind=PARAM)
SPACES = (namespace("default"), namespace("prod", tier="gold", team="shop"))


def limits(name: str, place: str, **labels: str) -> Document:
    """A ConfigMap with limits."""
    return thing(CONFIG_MAPS, name, place, metadata={"labels": labels}, data={"maximum": "3"})


def bound(**reference: Any) -> Document:
    """A binding with params."""
    return binding("b", "p", paramRef={"parameterNotFoundAction": "Deny", **reference})


def rules(*documents: Document, options: Options | None = None, **cluster: Any) -> list[str]:
    """Type and name of the rules of a scan."""
    start = scanned(FakeCluster([*SPACES, *documents], **cluster), options).start
    return [f"{rule.type.value} {rule.name}" for rule in start.rules]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"name": "limits", "namespace": "prod"}, ["ConfigMap prod/limits"]),
        ({"name": "limits"}, ["ConfigMap default/limits", "ConfigMap prod/limits"]),
        ({"selector": {"matchLabels": {"a": "b"}}, "namespace": "prod"}, ["ConfigMap prod/labelled"]),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "odd"}]}}, []),
        ({"name": "missing"}, []),
    ],
)
def test_params_are_those_that_a_binding_selects(reference: Document, expected: list[str]) -> None:
    """Other objects of the same kind are no rules."""
    params = [limits("limits", "default"), limits("limits", "prod"), limits("labelled", "prod", a="b")]

    assert [f"param {name}" for name in expected] == rules(WITH_PARAM, bound(**reference), *params)


def test_the_name_of_a_param_begins_with_group_and_kind() -> None:
    """Params of two kinds can have the same name."""
    documents = (
        policy("p", "true", paramKind={"apiVersion": "example.com/v1", "kind": "Limit"}),
        bound(name="limits"),
        thing(LIMITS, "limits", spec={"maximum": 3}),
    )

    assert ["param example.com/Limit limits"] == rules(*documents)


def test_params_of_an_unbound_policy_are_no_rules() -> None:
    """Nothing is evaluated with them."""
    assert [] == rules(WITH_PARAM, limits("limits", "prod"))


def test_params_that_cannot_be_listed_are_no_rules() -> None:
    """Their policy is not evaluated, and the scan is incomplete."""
    documents = (WITH_PARAM, bound(name="limits", namespace="prod"), limits("limits", "prod"))

    assert [] == rules(*documents, refused={"configmaps": forbidden("configmaps")})


def test_a_secret_param_is_kept_without_data() -> None:
    """Its version stands for the data."""
    documents = (
        policy("p", "true", paramKind={"apiVersion": "v1", "kind": "Secret"}),
        bound(name="limits", namespace="prod"),
        thing(SECRETS, "limits", "prod", metadata={"uid": "u", "resourceVersion": "7"}, data={"maximum": "Mw=="}),
    )
    start = scanned(FakeCluster([*SPACES, *documents])).start

    assert ["Mw==" in str(rule.document) for rule in start.rules] == [False]
    assert start.policy_set_digest


def test_a_secret_param_without_version_leaves_the_policy_set_unknown() -> None:
    """A file has no resource version, so a change of its data would not be seen."""
    documents = (
        policy("p", "true", paramKind={"apiVersion": "v1", "kind": "Secret"}),
        bound(name="limits", namespace="prod"),
        thing(SECRETS, "limits", "prod", data={"maximum": "Mw=="}),
    )

    assert "" == scanned(FakeCluster([*SPACES, *documents], source="files")).start.policy_set_digest


@pytest.mark.parametrize("expression", ["params.status.maximum > 0", "[params].all(p, p.status.maximum > 0)"])
def test_the_status_of_a_param_is_a_rule_where_an_expression_can_read_it(expression: str) -> None:
    """Another status has another digest."""

    def digest(maximum: int) -> str:
        documents = (
            policy("p", expression, paramKind={"apiVersion": "example.com/v1", "kind": "Limit"}),
            bound(name="limits"),
            thing(LIMITS, "limits", status={"maximum": maximum}),
        )
        return scanned(FakeCluster([*SPACES, *documents])).start.policy_set_digest

    assert digest(1) != digest(2)


BY = {"annotations": {"by": "ops"}}
ON_PODS_OF_GOLD = {
    "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    "namespaceSelector": {"matchLabels": {"tier": "gold"}},
}


@pytest.mark.parametrize(
    "documents",
    [
        (policy("p", "true", matchConstraints=ON_PODS_OF_GOLD), binding("b", "p")),
        (
            policy("p", "true"),
            binding("b", "p", matchResources={"namespaceSelector": {"matchLabels": {"tier": "gold"}}}),
        ),
    ],
)
def test_labels_that_a_selector_reads_are_rules(documents: tuple[Document, ...]) -> None:
    """Of a policy or of a binding; other labels and namespaces without the label are none."""
    start = scanned(FakeCluster([*SPACES, *documents])).start
    [rule] = start.rules

    assert ("namespaceLabels", "prod") == (rule.type.value, rule.name)
    assert {"name": "prod", "labels": {"tier": "gold"}} == rule.document["metadata"]


def test_the_name_label_of_a_namespace_is_no_rule() -> None:
    """It equals the name, and a new ordinary namespace changes no digest."""
    selector = {
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]
    }
    documents = (policy("p", "true"), binding("b", "p", matchResources={"namespaceSelector": selector}))
    before = scanned(FakeCluster([*SPACES, *documents])).start
    after = scanned(FakeCluster([*SPACES, namespace("new"), *documents])).start

    assert () == before.rules
    assert before.policy_set_digest == after.policy_set_digest


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("namespaceObject.metadata.labels['tier'] == 'gold'", {"labels": {"tier": "gold"}}),
        ("namespaceObject.metadata.labels.exists(k, k == 'x')", {"labels": {"team": "shop", "tier": "gold"}}),
        ("namespaceObject.metadata.labels[object.metadata.name] == 'x'", {"labels": {"team": "shop", "tier": "gold"}}),
        ("has(namespaceObject.metadata.annotations) && namespaceObject.metadata.annotations['by'] == 'x'", BY),
        ("namespaceObject.metadata.name == 'prod'", None),
        ("object.metadata.labels['tier'] == 'gold'", None),
    ],
)
def test_labels_and_annotations_that_an_expression_reads_are_rules(
    expression: str, expected: dict[str, dict[str, str]] | None
) -> None:
    """Without them, a change of a namespace would look like a fix of its objects."""
    prod = namespace("prod", tier="gold", team="shop")
    prod["metadata"]["annotations"] = {"by": "ops"}
    start = scanned(FakeCluster([namespace("default"), prod, policy("p", expression), binding("b", "p")])).start
    documents = [rule.document["metadata"] for rule in start.rules]

    assert ([{"name": "prod", **expected}] if expected else []) == documents


def test_a_label_that_exempts_a_namespace_changes_the_policy_set() -> None:
    """A namespace that leaves the selection looks clean, and is not."""
    documents = (policy("p", "true", matchConstraints=ON_PODS_OF_GOLD), binding("b", "p"))
    digests = {
        scanned(FakeCluster([namespace("prod", tier=tier), *documents])).start.policy_set_digest
        for tier in ("gold", "silver")
    }

    assert 2 == len(digests)


def test_kinds_without_a_policy_are_recorded() -> None:
    """A kind that a policy matches is covered in every scope; a kind in two groups is one."""
    cluster = FakeCluster([*SPACES, policy("p", "true"), binding("b", "p"), pod()])
    recorded = scanned(cluster, Options(Scope(skip_kinds=("pods",))))

    uncovered = [f"{kind.api_version}/{kind.kind}" for kind in recorded.end.uncovered]
    assert "v1/Pod" not in uncovered
    assert {"v1/Secret", "apps/v1/Deployment", "autoscaling/v2/HorizontalPodAutoscaler"} <= {*uncovered}
    assert 1 == sum(name.endswith("/Event") for name in uncovered)
    assert sorted(uncovered) == sorted({*uncovered})


def test_a_policy_that_cannot_be_evaluated_covers_its_kinds() -> None:
    """It is in force, and its missing params are a gap of the scan."""
    documents = (WITH_PARAM, bound(name="limits", namespace="prod"))
    recorded = scanned(FakeCluster([*SPACES, *documents], refused={"configmaps": forbidden("configmaps")}))

    kinds = {kind.kind for kind in recorded.end.uncovered}
    assert (False, True) == ("Pod" in kinds, "Secret" in kinds)


USER = UserInfo("auditor", "u-1", ("auditors",), (("token", ("id",)),))


def test_the_scanner_is_the_user_that_the_server_reports() -> None:
    """Another user of the simulated requests is not the scanner; of the scanner, name and groups are kept."""
    start = scanned(FakeCluster(SPACES, user=USER), Options(user=build_user_info("bob"))).start

    assert ("bob", UserInfo("auditor", groups=("auditors",))) == (start.requester.username, start.method.scanner)


def test_files_have_no_scanner() -> None:
    """No server knows who reads them."""
    assert UserInfo() == scanned(FakeCluster(SPACES, source="files", user=USER)).start.method.scanner


class Unreported(FakeCluster):
    """A cluster that does not report the user of the credentials."""

    def requester(self) -> UserInfo:
        raise ClusterError("no answer")


def test_an_unknown_scanner_does_not_stop_a_scan_for_another_user() -> None:
    """The scan needs that user for nothing else."""
    assert UserInfo() == scanned(Unreported(SPACES), Options(user=build_user_info("bob"))).start.method.scanner


def test_the_method_of_the_caller_is_recorded_with_the_workers() -> None:
    """What the command line knows goes with what the scan knows."""
    method = Method(host="audit-1", command_line=("assay", "scan"), chunk_size=500)
    start = scanned(FakeCluster(SPACES), Options(method=method), workers=2).start

    scanner = UserInfo("auditor", groups=("auditors",))
    assert replace(method, scanner=scanner, workers=2, without_counts="no server") == start.method
