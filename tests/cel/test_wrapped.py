"""The expressions that can distinguish the native values of Kubernetes 1.37 from plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from scanner import cel
from scanner.cel.checking.env import ADMISSION
from scanner.cel.types.type_system import INT, list_of, map_of, object_type

CONTAINER, SPEC, META, ROOT = (object_type(name) for name in ("Container", "Spec", "Meta", "Root"))
TYPES = {
    ROOT.name: {"metadata": META, "spec": SPEC, "kind": cel.STRING},
    META.name: {"name": cel.STRING, "labels": map_of(cel.STRING, cel.STRING)},
    SPEC.name: {"containers": list_of(CONTAINER), "replicas": INT, "args": list_of(cel.STRING), "port": cel.DYN},
    CONTAINER.name: {"name": cel.STRING, "resources": map_of(cel.STRING, cel.STRING)},
}


@dataclass(frozen=True)
class Types:
    """A kind with a list of structures, a map and scalars."""

    def find_type(self, name: str) -> cel.Type | None:
        return object_type(name) if name in TYPES else None

    def field(self, type_name: str, name: str) -> cel.Type | None:
        return TYPES[type_name].get(name)

    def maker(self, type_: cel.Type) -> Callable[[dict[str, cel.Value]], cel.Value]:
        return lambda fields: fields


VARIABLES = tuple((name, ROOT if name in ("object", "oldObject") else type_) for name, type_ in ADMISSION)
TYPED = cel.Environment(variables=VARIABLES, version=(1, 37), structs=Types())


def differing(text: str) -> tuple[str, ...]:
    """Return the parts of an expression whose outcome may differ in 1.37."""
    return tuple(difference.text for difference in cel.find_wrapper_differences(text, TYPED)[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.spec == 1", "object == int"),
        ("object.metadata.labels != 'a'", "map != string"),
        ("object.spec.containers == {}", "list == map"),
        ("dyn(object.spec) == 1", "object == int"),
        ("dyn(request.userInfo) == 1", "object == int"),
        ("object.?spec.orValue(null) == 1", "object == int"),
        ("object.spec.containers.exists(c, c.resources == 1)", "map == int"),
        ("[object.spec] == [1]", "list == list"),
        ("[dyn(object.spec)] == [1]", "list == list"),
        ("[object.spec] + [1] == [1, 1]", "mixed == list"),
        ("{'k': object.metadata} == {'k': 1}", "map == map"),
        ("[object.spec] in [[1]]", "list in list"),
        ("object.spec == {'replicas': 1, 'containers': 2}", "object == map"),
        ("object.spec.containers[0] == object.spec.containers[1]", "object == object"),
        ("object.spec.containers[0] in oldObject.spec.containers", "object in list"),
        ("object.spec.containers[0u].name == ''", "list[uint]"),
        ("object.spec.containers[?1.0].hasValue()", "list[double]"),
        ("object.metadata.labels[0] == 'a'", "map[int]"),
        ("object.spec[true] == 1", "object[bool]"),
        ("1 in object.metadata.labels", "int in map"),
        ("optional.ofNonZeroValue(object.spec).hasValue()", "optional.ofNonZeroValue of object"),
    ],
)
def test_operations_that_can_differ(text: str, expected: str) -> None:
    """Comparisons of unlike kinds, odd keys, whole structures and tests of emptiness can differ."""
    assert (expected,) == differing(text)


@pytest.mark.parametrize(
    "text",
    [
        "object.metadata.name == 'a' && object.spec.replicas != 3",
        "object.metadata.labels == {'app': 'web'}",
        "object.spec.args == ['--a']",
        "object.spec == null || oldObject == null",
        "object.spec == oldObject.spec && object == oldObject",
        "1 == object.spec",
        "object.spec.port == 'http' || object.spec.port == 80",
        "'app' in object.metadata.labels && object.metadata.labels['app'] == 'x'",
        "'a' in object.spec.args && object.spec.args[0] == 'b'",
        "object.spec.containers.all(c, c.name in ['a', 'b'] && c.resources.all(k, k != ''))",
        "optional.ofNonZeroValue(object.metadata.name).hasValue()",
        "[1, 2] == [3] && {'a': 1} != {'a': 2}",
        "request.userInfo.groups == ['a'] && request.kind == request.requestKind",
        "object.spec.containers.map(c, c.name) == ['a']",
        "object.spec.containers[",
    ],
)
def test_operations_that_cannot_differ(text: str) -> None:
    """Well-typed expressions and comparisons of a place before and after cannot differ; a text that does not parse has no result."""
    assert () == differing(text)


def test_a_variable_has_the_type_of_its_expression() -> None:
    """A variable that returns a part of the object has the type of that part."""
    type_, _ = cel.find_wrapper_differences("object.spec", TYPED)
    environment = replace(TYPED, composed=TYPED.composed.declare("spec", type_))

    assert (cel.WrapperDifference("object == int"),) == cel.find_wrapper_differences(
        "variables.spec == 1", environment
    )[1]


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.containers[0] == object.spec.containers[1]",
        "[object.spec.containers[0]] == [object.spec.containers[1]]",
        "object.spec.containers[0] in oldObject.spec.containers",
    ],
)
def test_comparisons_of_structures_are_not_evaluated(text: str) -> None:
    """An evaluation cannot compare structures: their free-form parts are compared as the bytes that the server received."""
    assert [False] == [difference.evaluated for difference in cel.find_wrapper_differences(text, TYPED)[1]]


@pytest.mark.parametrize("text", ["object.spec == {'replicas': 1, 'containers': 2}", "[object.spec] + [1] == [1, 1]"])
def test_errors_between_elements_are_evaluated(text: str) -> None:
    """An evaluation answers comparisons of a structure or of a sum of lists, in which an error between two values counts."""
    assert [True] == [difference.evaluated for difference in cel.find_wrapper_differences(text, TYPED)[1]]
