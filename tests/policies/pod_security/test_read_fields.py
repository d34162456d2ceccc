"""The fields that Pod Security reads: a replay of a snapshot evaluates no object of which one of them is withheld."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from scanner.policies.pod_security.checks import READ_FIELDS
from scanner.policies.pod_security.labels import read_version
from scanner.policies.pod_security.pods import find_template, read_pod
from scanner.policies.pod_security.standards import Level, Server, apply_checks, list_judges
from tests.conformance.cases import load
from tests.conformance.pod_security import kind_of

RECORDED = Path(__file__).parents[2] / "conformance" / "recorded" / "pod-security.json.gz"
MINORS = range(24, 38)
Paths = Iterable[tuple[str, ...]]


def keep(value: Any, paths: Paths) -> Any:
    """The parts of a document to which paths lead: `*` is any element, `#` the keys alone, and `PREFIX/*` each key with a prefix."""
    if any(not path for path in paths):
        return value
    if ("#",) in paths:
        return {key: keep(value[key], [path[1:] for path in paths if path[0] == key]) for key in value}
    if isinstance(value, list):
        return [keep(item, [path[1:] for path in paths if path[0] == "*"]) for item in value]
    if not isinstance(value, dict):
        return {}
    below = {name: [path[1:] for path in paths if is_named(name, path[0])] for name in value}
    return {name: keep(value[name], rest) for name, rest in below.items() if rest}


def is_named(name: str, step: str) -> bool:
    """Return whether a step of a path names a key."""
    return name.startswith(step.removesuffix("/*")) if step.endswith("/*") else name == step


def failures(body: Any) -> list[dict[str, Any]]:
    """What the checks of the restricted level find, by the rules of each version."""
    found = find_template(kind_of(body), body)
    assert found
    pod = read_pod(*found)
    versions = [version for minor in MINORS if (version := read_version(f"v1.{minor}"))]
    return [dict(apply_checks(list_judges(Level.RESTRICTED, version, Server((1, 37))), pod)) for version in versions]


@pytest.fixture(scope="module")
def objects() -> list[Any]:
    """The pods and workloads of the recordings."""
    return list(load(RECORDED)["objects"])


def test_the_fields_decide_alone(objects: list[Any]) -> None:
    """Without all other fields, each check finds the same in each recorded object, to the text."""
    paths = [path[1:] for path in READ_FIELDS]
    for body in objects:
        assert failures(body) == failures({"kind": body["kind"], **keep(body, paths)})


@pytest.mark.parametrize("field", ["hostNetwork", "hostUsers", "volumes", "securityContext", "containers"])
def test_no_part_of_them_is_too_much(objects: list[Any], field: str) -> None:
    """Without one of the fields of a pod, a check finds something else in some object."""
    paths = [path[1:] for path in READ_FIELDS if field not in path[:-1] and path[-1] != field]
    assert any(failures(body) != failures({"kind": body["kind"], **keep(body, paths)}) for body in objects)
