"""Namespaces whose labels are not known: a gap where a label may decide."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from scanner.cluster.files.snapshot import SnapshotCluster
from scanner.model.scans.scan import ScanState, Scope
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from scanner.scan.run import run
from tests.documents import CONFIG_MAPS, Document, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import NOON, FakeStore, Recorded

PROD = {"namespaceSelector": {"matchLabels": {"env": "prod"}}}
NAME = "kubernetes.io/metadata.name"


def selecting(*requirements: tuple[str, str, list[str]]) -> Document:
    """Match resources with requirements on the labels of a namespace."""
    return {
        "namespaceSelector": {
            "matchExpressions": [
                {"key": key, "operator": operator, **({"values": values} if values else {})}
                for key, operator, values in requirements
            ]
        }
    }


def scan_of(
    folder: Path,
    rules: list[Document],
    *objects: Document,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    scope: Scope | None = None,
) -> Recorded:
    """A scan of objects in files, by policies and bindings."""
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects or [pod("web", "shop")]))
    cluster = SnapshotCluster([folder], namespace_labels=labels or {})
    options = Options(scope or Scope(), tuple(Manifest("rules.yaml", body) for body in rules), cluster_policies=False)
    store = FakeStore()
    scan = run(cluster, store, options, scan_id="s1", clock=lambda: NOON)
    return Recorded(scan, store.starts[0], store.ends[0], tuple(store.pages))


def bound_by(resources: Document, *expressions: str, **spec: Any) -> list[Document]:
    """A policy and its binding with match resources."""
    return [policy("p", *(expressions or ("false",)), **spec), binding(matchResources=resources)]


def test_a_selector_that_an_unknown_label_decides_is_a_gap(tmp_path: Path) -> None:
    """The gap names the policy, the label, the namespace and both remedies."""
    scan = scan_of(tmp_path, bound_by(PROD))

    why = (
        "it depends on the label env of the namespace shop, which no file describes: "
        "add the Namespace to the files, or pass --namespace-label shop=env=VALUE"
    )
    assert (ScanState.INCOMPLETE, [("policy p", why)]) == (
        scan.scan.state,
        [(gap.where, gap.why) for gap in scan.gaps],
    )


def test_the_selector_of_a_policy_counts_like_that_of_a_binding(tmp_path: Path) -> None:
    """Both read the labels of the namespace."""
    constraints = {"resourceRules": [rule("pods")], **PROD}
    scan = scan_of(tmp_path, [policy("p", "false", matchConstraints=constraints), binding()])

    assert ["policy p"] == [gap.where for gap in scan.gaps]


def test_a_policy_in_doubt_resolves_nothing(tmp_path: Path) -> None:
    """A finding that is missing now may be one of the namespace."""
    in_doubt = scan_of(tmp_path, bound_by(PROD))
    without_doubt = scan_of(tmp_path, bound_by({}))

    assert ((), 1) == (in_doubt.end.evaluated_policies, len(without_doubt.end.evaluated_policies))


def test_a_namespace_among_the_files_leaves_no_doubt(tmp_path: Path) -> None:
    """Its labels decide."""
    scan = scan_of(tmp_path, bound_by(PROD), pod("web", "shop"), namespace("shop", env="prod"))

    assert (ScanState.COMPLETE, 1) == (scan.scan.state, len(scan.findings))


@pytest.mark.parametrize(("value", "findings"), [("prod", 1), ("dev", 0)])
def test_the_labels_that_a_user_states_decide(tmp_path: Path, value: str, findings: int) -> None:
    """They are all labels of the namespace, besides its name."""
    scan = scan_of(tmp_path, bound_by(PROD), labels={"shop": {"env": value}})

    assert (ScanState.COMPLETE, findings) == (scan.scan.state, len(scan.findings))


def test_a_stated_label_describes_no_object(tmp_path: Path) -> None:
    """No policy on namespaces evaluates the namespace of the flag."""
    rules = [policy("p", "false", matchConstraints={"resourceRules": [rule("namespaces", "pods")]}), binding()]
    scan = scan_of(tmp_path, rules, labels={"shop": {"env": "prod"}})

    assert ["web"] == [finding.name for finding in scan.findings]


def test_a_namespace_of_the_files_is_not_changed_by_stated_labels(tmp_path: Path) -> None:
    """The file decides alone."""
    objects = (pod("web", "shop"), namespace("shop", env="dev"))
    scan = scan_of(tmp_path, bound_by(PROD), *objects, labels={"shop": {"env": "prod"}})

    assert (ScanState.COMPLETE, 0) == (scan.scan.state, len(scan.findings))


@pytest.mark.parametrize(
    ("resources", "findings"),
    [
        ({}, 1),
        ({"namespaceSelector": {"matchLabels": {NAME: "shop"}}}, 1),
        ({"namespaceSelector": {"matchLabels": {NAME: "other"}}}, 0),
        (selecting((NAME, "NotIn", ["kube-system"])), 1),
        (selecting((NAME, "In", ["other"]), ("env", "Exists", [])), 0),
    ],
)
def test_a_selector_that_the_name_decides_is_no_gap(tmp_path: Path, resources: Document, findings: int) -> None:
    """Every server gives a namespace the label with its name, and one requirement that fails is enough."""
    scan = scan_of(tmp_path, bound_by(resources))

    assert (ScanState.COMPLETE, findings) == (scan.scan.state, len(scan.findings))


@pytest.mark.parametrize("operator", ["Exists", "DoesNotExist"])
def test_a_requirement_on_any_other_label_is_a_gap(tmp_path: Path, operator: str) -> None:
    """Also if the missing label satisfies it, and the policy is evaluated: the real one may not."""
    scan = scan_of(tmp_path, bound_by(selecting(("env", operator, []))))

    assert ["policy p"] == [gap.where for gap in scan.gaps]


@pytest.mark.parametrize(
    ("expression", "gaps"),
    [
        ("namespaceObject.metadata.name == 'shop'", 0),
        (f"namespaceObject.metadata.labels['{NAME}'] == 'shop'", 0),
        ("namespaceObject.metadata.labels['env'] == 'prod'", 1),
        ("'env' in namespaceObject.metadata.labels", 1),
        ("has(namespaceObject.metadata.annotations)", 1),
        ("object.metadata.name != ''", 0),
    ],
)
def test_an_expression_that_reads_the_namespace_object_is_a_gap(tmp_path: Path, expression: str, gaps: int) -> None:
    """Only the name of the namespace is known."""
    scan = scan_of(tmp_path, [policy("p", expression), binding()])

    assert gaps == len(scan.gaps)


def test_a_match_condition_reads_the_namespace_object_too(tmp_path: Path) -> None:
    """It decides whether the policy applies."""
    conditions = [{"name": "prod", "expression": "namespaceObject.metadata.labels['env'] == 'prod'"}]
    scan = scan_of(tmp_path, [policy("p", "true", matchConditions=conditions), binding()])

    assert ["policy p"] == [gap.where for gap in scan.gaps]


def test_params_that_are_namespaces_are_a_gap(tmp_path: Path) -> None:
    """The namespace of the object may be the param, and is not among the files."""
    reference = {"name": "shop", "parameterNotFoundAction": "Deny"}
    rules = [
        policy("p", "true", paramKind={"apiVersion": "v1", "kind": "Namespace"}),
        binding(paramRef=reference),
    ]

    assert ["policy p"] == [gap.where for gap in scan_of(tmp_path, rules).gaps]


def kyverno(**constraints: Any) -> Document:
    """A policy of Kyverno on pods."""
    rules = {"resourceRules": [rule("pods")], **constraints}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "k"},
        "spec": {
            "validationActions": ["Deny"],
            "autogen": {"podControllers": {"controllers": []}},
            "matchConstraints": rules,
            "validations": [{"expression": "false"}],
        },
    }


def test_the_selector_of_a_kyverno_policy_is_a_gap(tmp_path: Path) -> None:
    """It needs no binding."""
    assert ["policy k (ValidatingPolicy)"] == [gap.where for gap in scan_of(tmp_path, [kyverno(**PROD)]).gaps]


@pytest.mark.parametrize(("expression", "gaps"), [("namespaceObject.metadata.labels['env'] == 'dev'", 1), ("false", 0)])
def test_a_condition_of_a_policy_exception_reads_the_namespace_object_too(
    tmp_path: Path, expression: str, gaps: int
) -> None:
    """It decides whether the policy applies."""
    exception = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "shop"},
        "spec": {
            "policyRefs": [{"name": "k", "kind": "ValidatingPolicy"}],
            "matchConditions": [{"name": "dev", "expression": expression}],
        },
    }

    assert gaps == len(scan_of(tmp_path, [kyverno(), exception]).gaps)


@pytest.mark.parametrize(
    "scope",
    [Scope(exclude_namespaces=("sh*",)), Scope(namespaces=("other",)), Scope(skip_kinds=("pods",))],
)
def test_what_the_user_left_out_is_no_gap(tmp_path: Path, scope: Scope) -> None:
    """Nothing of it is evaluated."""
    objects = (pod("web", "shop"), pod("web", "other"), namespace("other"))
    scan = scan_of(tmp_path, bound_by(PROD), *objects, scope=scope)

    assert () == scan.gaps


def test_a_namespace_without_objects_that_rules_can_match_is_no_gap(tmp_path: Path) -> None:
    """The policy is about pods, and one of its bindings about nodes."""
    of_nodes = [policy("p", "true"), binding(matchResources={**PROD, "resourceRules": [rule("nodes")]})]

    config_map = thing(CONFIG_MAPS, "a", "shop")

    assert () == scan_of(tmp_path, bound_by(PROD), config_map, pod("web", "other"), namespace("other")).gaps
    assert () == scan_of(tmp_path, of_nodes).gaps


def test_many_namespaces_are_one_gap_of_the_policy(tmp_path: Path) -> None:
    """The first three are named."""
    scan = scan_of(tmp_path, bound_by(PROD), *(pod("web", f"shop-{number}") for number in range(5)))

    assert 1 == len(scan.gaps)
    assert "the label env of the namespaces shop-0, shop-1, shop-2 and 2 more, which" in scan.gaps[0].why
