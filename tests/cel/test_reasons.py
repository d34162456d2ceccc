"""Why an expression came to what it did."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cel import DYN, Environment, compile

ENVIRONMENT = Environment().with_variable("containers", DYN)
CONTAINERS = [
    {"name": "app", "image": "registry.example.com/app:1", "limits": {"memory": "1Gi"}},
    {"name": "proxy", "image": "envoy"},
]
OBJECT = {
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web", "tier": "front"}},
    "spec": {"replicas": 5, "template": {"spec": {"containers": CONTAINERS}}, "empty": [], "at": 1},
}
PODS = "object.spec.template.spec.containers"


def reasons(text: str, **more: Any) -> list[tuple[str, object, str]]:
    """Part, outcome and path of each reason; errors as their texts."""
    activation = {"object": OBJECT, "params": {"data": {"max": 3}}, "variables": more}
    found = compile(text, ENVIRONMENT).reasons(activation, {"containers": "spec.template.spec.containers"})
    return [(it.text, str(it.outcome) if isinstance(it.outcome, Exception) else it.outcome, it.path) for it in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.spec.replicas <= 3", [("object.spec.replicas", 5, "spec.replicas")]),
        (
            "object.spec.replicas <= 3 && object.metadata.name == 'web'",
            [("object.spec.replicas", 5, "spec.replicas")],
        ),
        (
            "object.spec.replicas <= 3 || object.metadata.name == 'db'",
            [("object.spec.replicas", 5, "spec.replicas"), ("object.metadata.name", "web", "metadata.name")],
        ),
        ("!has(object.spec.replicas)", [("has(object.spec.replicas)", True, "spec.replicas")]),
        (
            f"{PODS}.all(c, c.image.startsWith('registry.example.com/'))",
            [("c.image", "envoy", "spec.template.spec.containers[1].image")],
        ),
        (
            f"{PODS}.all(c, has(c.limits) && has(c.limits.memory))",
            [("has(c.limits)", False, "spec.template.spec.containers[1].limits")],
        ),
        (
            f"{PODS}.exists(c, c.name == 'db')",
            [
                ("c.name", "app", "spec.template.spec.containers[0].name"),
                ("c.name", "proxy", "spec.template.spec.containers[1].name"),
            ],
        ),
        ("object.spec.empty.exists(c, c == 1)", [("object.spec.empty", [], "spec.empty")]),
        (
            "object.metadata.labels.all(k, v, v == 'front')",
            [("v", "web", "metadata.labels['app.kubernetes.io/name']")],
        ),
        (
            "object.metadata.labels['app.kubernetes.io/name'] == 'db'",
            [
                (
                    "object.metadata.labels['app.kubernetes.io/name']",
                    "web",
                    "metadata.labels['app.kubernetes.io/name']",
                )
            ],
        ),
        (
            f"{PODS}[object.spec.at].name == 'db'",
            [(f"{PODS}[object.spec.at].name", "proxy", "spec.template.spec.containers[1].name")],
        ),
        ("size(object.spec.empty) > 0", [("object.spec.empty", [], "spec.empty")]),
        (
            f"{PODS}.filter(c, has(c.limits)).size() == 2",
            [(f"{PODS}.filter(c, has(c.limits))", CONTAINERS[:1], "")],
        ),
        ("object.spec.nodes == 1", [("object.spec.nodes", "no such key: nodes", "spec.nodes")]),
        (
            "object.spec.replicas > 9 ? true : object.metadata.name == 'db'",
            [("object.spec.replicas", 5, "spec.replicas"), ("object.metadata.name", "web", "metadata.name")],
        ),
        ("false", []),
    ],
)
def test_what_decided(text: str, expected: list[tuple[str, object, str]]) -> None:
    """The values, and where in the object they are."""
    assert expected == reasons(text)


def test_elements_of_variables_have_paths_in_the_object() -> None:
    """A variable that is a part of the object leads there."""
    found = reasons("variables.containers.all(c, c.name == 'app')", containers=CONTAINERS)
    assert [("c.name", "proxy", "spec.template.spec.containers[1].name")] == found


def test_a_long_list_gives_a_few_reasons() -> None:
    """Three elements are enough to understand it."""
    found = reasons("variables.containers.exists(c, c == 'x')", containers=["a"] * 50_000)
    assert [
        "spec.template.spec.containers[0]",
        "spec.template.spec.containers[1]",
        "spec.template.spec.containers[2]",
    ] == [path for _, _, path in found]
