"""Configurations that write the same values into every element of a list."""

from __future__ import annotations

from typing import Any

import pytest

from scanner import cel
from scanner.cluster.schemas import builtin_schemas
from scanner.mutate.unchanged import find_copied_lists, make_copied_test

PULL = "object.spec.containers.map(c, Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})"


def program(containers: str) -> cel.Program:
    """The expression of a mutation that writes these containers."""
    environment = cel.allow_patches(cel.Environment()).require_results(cel.OBJECT)
    return cel.compile(f"Object{{spec: Object.spec{{hostNetwork: true, containers: {containers}}}}}", environment)


def pod(*containers: dict[str, Any]) -> dict[str, Any]:
    """A Pod in the network of its host."""
    return {"spec": {"hostNetwork": True, "containers": [*containers]}}


def test_the_list_and_the_copied_field_are_found() -> None:
    """The configuration reads nothing else."""
    assert find_copied_lists(program(PULL).analysis.root) == {("spec", "containers"): "name"}


@pytest.mark.parametrize(
    "containers",
    [
        "object.spec.initContainers.map(c, Object.spec.containers{name: c.name})",
        "object.spec.containers.map(c, Object.spec.containers{name: c.image})",
        "object.spec.containers.map(c, Object.spec.containers{name: c.name, image: c.image})",
        "object.spec.containers.map(c, c.name != 'a', Object.spec.containers{name: c.name})",
        "object.spec.containers.map(c, Object.spec.containers{name: c.name, image: object.metadata.name})",
        "object.spec.containers.map(c, Object.spec.containers{?name: c.?name})",
        "object.spec.containers.filter(c, c.name != 'a')",
        "object.spec.containers",
    ],
)
def test_a_configuration_of_another_shape_has_no_such_lists(containers: str) -> None:
    """The configuration depends on the object in another way."""
    assert find_copied_lists(program(containers).analysis.root) == {}


@pytest.mark.parametrize(
    ("expected", "live"),
    [
        (
            True,
            pod({"name": "a", "imagePullPolicy": "Always", "image": "x"}, {"name": "b", "imagePullPolicy": "Always"}),
        ),
        (False, pod({"name": "a", "imagePullPolicy": "Always"}, {"name": "b", "imagePullPolicy": "Never"})),
        (False, pod({"name": "a", "imagePullPolicy": "Always"}, {"name": "a", "imagePullPolicy": "Always"})),
        (False, pod({"name": "a", "imagePullPolicy": "Always"}, {"imagePullPolicy": "Always"})),
        (False, pod({"name": 1, "imagePullPolicy": "Always"})),
        (False, pod()),
        (False, {"spec": {"hostNetwork": True}}),
        (False, {"spec": {"hostNetwork": False, "containers": [{"name": "a", "imagePullPolicy": "Always"}]}}),
        (False, {"spec": {"hostNetwork": True, "containers": ["a"]}}),
    ],
)
def test_an_object_holds_it_where_every_element_does(expected: bool, live: dict[str, Any]) -> None:  # noqa: FBT001
    """Each element has its own key, and the object holds the rest of the configuration."""
    written = program(PULL)
    holds = make_copied_test(builtin_schemas()["", "v1", "Pod"], written, find_copied_lists(written.analysis.root))

    assert holds(live) is expected


def test_what_has_no_key_is_tested_as_a_whole() -> None:
    """Elements that are merged by another field are computed for each object."""
    written = program("object.spec.containers.map(c, Object.spec.containers{image: c.image})")
    holds = make_copied_test(builtin_schemas()["", "v1", "Pod"], written, find_copied_lists(written.analysis.root))

    assert not holds(pod({"name": "a", "image": "x"}))
