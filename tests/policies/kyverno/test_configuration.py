"""The requests that Kyverno's configuration keeps from its webhook: by filters, selectors and users."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scanner.model.json import JsonObject
from scanner.model.resource import Kind, UserInfo, resource_of
from scanner.policies.kyverno.configuration import DEFAULT, NOTHING, configuration_of, kind_selector, parse_filters
from tests.documents import KINDS

NAMED = {(kind.api_version, kind.kind): kind for kind in KINDS}
REPLICA_SETS = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
PODS = NAMED["v1", "Pod"]
NAMESPACES = NAMED["v1", "Namespace"]


def config_map(**data: Any) -> Any:
    """Kyverno's ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kyverno", "namespace": "kyverno"},
        "data": {key: text if isinstance(text, str) else json.dumps(text) for key, text in data.items()},
    }


def exempted(configuration: Any, kind: Kind, namespace: str = "team", name: str = "web", **labels: str) -> str:
    """The setting that exempts an object; the labels are the object's."""
    metadata: JsonObject = {"name": name, "labels": labels, **({"namespace": namespace} if kind.namespaced else {})}
    resource = resource_of(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata})
    return str(configuration.exempts(resource, {"kubernetes.io/metadata.name": namespace}))


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (("*", "*", "Pod", ""), "Pod"),
        (("*", "*", "*", "*"), "*/*"),
        (("*", "*", "*", "scale"), "*/scale"),
        (("*", "*", "Pod", ""), "*/Pod"),
        (("*", "v1beta1", "Pod", ""), "v1beta1/Pod"),
        (("*", "*", "Pod", "exec"), "Pod/exec"),
        (("*", "*", "Pod", "exec"), "Pod.exec"),
        (("*", "v1", "Pod", "exec"), "v1/Pod/exec"),
        (("*", "v1", "Pod", "exec"), "v1/Pod.exec"),
        (("apps", "v1", "Deployment", ""), "apps/v1/Deployment"),
        (("apps", "v1", "Deployment", "scale"), "apps/v1/Deployment/scale"),
        (("", "", "", ""), "a/b/c/d/e"),
    ],
)
def test_a_filter_names_kinds_in_several_forms(expected: tuple[str, ...], text: str) -> None:
    """`ParseKindSelector` recognizes versions and subresources by their spelling."""
    assert expected == kind_selector(text)


@pytest.mark.parametrize(
    ("expected", "filters", "kind", "namespace", "name"),
    [
        (True, "[ReplicaSet,*,*]", REPLICA_SETS, "team", "web"),
        (False, "[replicaset,*,*]", REPLICA_SETS, "team", "web"),
        (True, "[Pod,*,*][ReplicaSet,te?m,w*]", REPLICA_SETS, "team", "web"),
        (False, "[ReplicaSet,te?,*]", REPLICA_SETS, "team", "web"),
        (False, "[ReplicaSet/?*,*,*]", REPLICA_SETS, "team", "web"),
        (True, "[ReplicaSet/*,*,*]", REPLICA_SETS, "team", "web"),
        (True, "[*/*,team,*]", REPLICA_SETS, "team", "web"),
        (True, "[apps/v1/ReplicaSet,*,*]", REPLICA_SETS, "team", "web"),
        (False, "[apps/v2/ReplicaSet,*,*]", REPLICA_SETS, "team", "web"),
        (False, "[ ReplicaSet,*,*]", REPLICA_SETS, "team", "web"),
        (False, "[ReplicaSet, *, *]", REPLICA_SETS, "team", "web"),
        (False, "[ReplicaSet,*]", REPLICA_SETS, "team", "web"),
        (False, "[ReplicaSet]", REPLICA_SETS, "team", "web"),
        (False, "[ReplicaSet,*,*,*]", REPLICA_SETS, "team", "web"),
        (False, "ReplicaSet,*,*", REPLICA_SETS, "team", "web"),
        (True, "[Node,*,*]", NODES, "", "web"),
        (False, "[Node,?*,*]", NODES, "", "web"),
        (True, "[*/*,team,*]", NAMESPACES, "", "team"),
        (True, "[Namespace,team,*]", NAMESPACES, "", "team"),
        (True, "[Namespace,team]", NAMESPACES, "", "team"),
        (True, "[Namespace,*,team]", NAMESPACES, "", "team"),
        (False, "[Namespace,other,*]", NAMESPACES, "", "team"),
        (False, "", REPLICA_SETS, "team", "web"),
    ],
)
def test_a_filter_exempts_what_its_patterns_match(
    *, expected: bool, filters: str, kind: Kind, namespace: str, name: str
) -> None:
    """A filter has kind, namespace and name; the request on a Namespace has its name as namespace."""
    configuration = configuration_of(config_map(resourceFilters=filters))
    assert expected == bool(exempted(configuration, kind, namespace, name))


def test_the_filter_that_exempts_is_named() -> None:
    """The first matching filter is named."""
    configuration = configuration_of(config_map(resourceFilters="[Pod,*,*]\n[ReplicaSet,*,*] [*/*,team,*]"))
    assert "Kyverno's resourceFilters [ReplicaSet,*,*]" == exempted(configuration, REPLICA_SETS)


NOT_TEAM = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["team"]}]}
UNMARKED = {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]}


@pytest.mark.parametrize(
    ("expected", "webhooks", "kind", "labels"),
    [
        ("the namespaceSelector of Kyverno's webhooks", {"namespaceSelector": NOT_TEAM}, PODS, {}),
        ("", {"namespaceSelector": NOT_TEAM}, NODES, {}),
        ("", {"namespaceSelector": NOT_TEAM}, NAMESPACES, {}),
        (
            "the namespaceSelector of Kyverno's webhooks",
            {"namespaceSelector": NOT_TEAM},
            NAMESPACES,
            {"kubernetes.io/metadata.name": "team"},
        ),
        ("the objectSelector of Kyverno's webhooks", {"objectSelector": UNMARKED}, PODS, {"skip": ""}),
        ("", {"objectSelector": UNMARKED}, PODS, {}),
        ("", [{"namespaceSelector": NOT_TEAM}], PODS, {}),
        ("", "no JSON", PODS, {}),
        ("", {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, PODS, {}),
    ],
)
def test_selectors_of_the_webhooks_exempt_as_well(
    expected: str, webhooks: Any, kind: Kind, labels: dict[str, str]
) -> None:
    """Kyverno leaves out the selectors that it cannot read."""
    assert expected == exempted(configuration_of(config_map(webhooks=webhooks)), kind, **labels)


@pytest.mark.parametrize("kind", ["UpdateRequest", "AdmissionReport"])
def test_kyvernos_own_reports_are_never_evaluated(kind: str) -> None:
    """Kyverno exempts its reports with any filters."""
    own = Kind("kyverno.io", "v2", kind, f"{kind.lower()}s", namespaced=True)
    assert exempted(configuration_of(config_map(resourceFilters="[Pod,*,*]")), own)


@pytest.mark.parametrize(
    ("expected", "data"),
    [
        ("excludeUsernames sys*", {"excludeUsernames": "sys*"}),
        ("excludeGroups system:nodes", {"excludeGroups": "a, system:nodes ,"}),
        ("", {"excludeGroups": "system:nodes", "excludeUsernames": "!system:node:?"}),
        ("", {"excludeGroups": "system:node"}),
        ("", {"excludeUsernames": "!"}),
        ("", {}),
    ],
)
def test_users_are_excluded_and_included_by_patterns(expected: str, data: dict[str, str]) -> None:
    """A pattern that includes a user has precedence over patterns that exclude the user."""
    user = UserInfo("system:node:a", groups=("system:nodes", "system:authenticated"))
    assert expected == configuration_of(config_map(**data)).excludes(user)


@pytest.mark.parametrize(
    ("expected", "kind", "namespace"),
    [
        (True, REPLICA_SETS, "team"),
        (True, NODES, ""),
        (True, PODS, "kube-system"),
        (True, PODS, "kube-public"),
        (True, PODS, "kyverno"),
        (False, PODS, "team"),
    ],
)
def test_the_charts_filters_are_known(*, expected: bool, kind: Kind, namespace: str) -> None:
    """`default` stands for the filters of the Helm chart."""
    assert (expected, False) == (bool(exempted(DEFAULT, kind, namespace)), bool(exempted(NOTHING, kind, namespace)))


def test_every_filter_keeps_its_text() -> None:
    """A finding names the filter by its text."""
    assert ["[Pod,*,*]", "[a/b,c,d]"] == [parsed.text for parsed in parse_filters(" [Pod,*,*],[a/b,c,d]")]
