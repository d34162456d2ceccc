"""Facts about the record of an object that a scan examined."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.audit.population import LONGEST_VALUE, record_object
from scanner.audit.redact import remove_data
from scanner.audit.secret_values import mask_values
from scanner.audit.sensitive_fields import MASK
from scanner.model.population import DEFAULT_KEYS, Controller, KeptKeys, PopulationMember
from scanner.model.resource import Kind, resource_of
from tests.documents import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS

KEYS = DEFAULT_KEYS.add_keys(("api-token", "note"), ("example.com/contact", "kubectl.kubernetes.io/last-applied-configuration"))  # fmt: skip
PASSWORD = {"name": "DB_PASSWORD", "value": "hunter22"}


def record(kind: Kind, metadata: dict[str, Any], keys: KeptKeys = KEYS, **rest: Any) -> PopulationMember:
    """The record of an object."""
    body = {"metadata": {"name": "a", "namespace": "shop", "uid": "u", **metadata}, **rest}
    return record_object(resource_of(kind, body), keys)


def with_env(*variables: Any) -> dict[str, Any]:
    """The spec of a pod with these environment variables."""
    return {"containers": [{"name": "main"}, {"name": "side", "env": list(variables)}]}


def reference(name: str, **fields: Any) -> dict[str, Any]:
    """An owner reference to a ReplicaSet."""
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "r", **fields}


def test_the_identity_of_an_object_is_kept() -> None:
    """The record of an object without labels and controller has nothing but its identity."""
    assert PopulationMember(PODS, "shop", "a", "u") == record(PODS, {})


def test_labels_are_kept_in_the_order_of_their_keys() -> None:
    """Equal labels in another order give an equal record."""
    labels = {"team": "red", "tier": "web", "app.kubernetes.io/name": "cart", "app": "cart"}
    expected = (("app", "cart"), ("app.kubernetes.io/name", "cart"), ("team", "red"))
    assert expected == record(PODS, {"labels": labels}).labels


def test_a_namespace_keeps_all_its_labels() -> None:
    """Selectors read the labels of namespaces.

    A kind of another group that is called Namespace keeps only the chosen labels.
    """
    other = Kind("example.com", "v1", "Namespace", "namespaces", namespaced=False)
    metadata = {"labels": {"env": "prod", "team": "red"}}
    assert (("env", "prod"), ("team", "red")) == record(NAMESPACES, metadata).labels
    assert (("team", "red"),) == record(other, metadata).labels


def test_annotations_are_kept_by_name_only() -> None:
    """Without a flag no annotation is kept."""
    metadata = {"annotations": {"example.com/contact": "red@example.com", "team": "red"}}
    assert (("example.com/contact", "red@example.com"),) == record(PODS, metadata).annotations
    assert () == record(PODS, metadata, DEFAULT_KEYS).annotations


def test_the_controller_is_the_reference_that_controls() -> None:
    """Other owners are no controllers, and neither is a reference with the text `"true"`."""
    references = [reference("no"), reference("text", controller="true"), reference("yes", controller=True)]
    assert Controller("apps/v1", "ReplicaSet", "yes", "r") == record(PODS, {"ownerReferences": references}).controller
    assert record(PODS, {"ownerReferences": references[:2]}).controller is None


def test_a_controller_with_few_fields_is_kept() -> None:
    """Objects in files may have lost the UID of their controller."""
    metadata = {"ownerReferences": [{"controller": True, "kind": "Job", "name": "a", "apiVersion": 3}]}
    assert Controller("", "Job", "a", "") == record(PODS, metadata).controller


@pytest.mark.parametrize(("name", "kept"), [("web-6b7f9c", "6b7f9c"), ("web", "")])
def test_the_template_hash_is_kept_where_a_name_ends_with_it(name: str, kept: str) -> None:
    """The name is that of a pod's ReplicaSet, or that of the ReplicaSet itself."""
    labels = {"pod-template-hash": "6b7f9c"}
    pod = record(PODS, {"labels": labels, "ownerReferences": [reference(name, controller=True)]})
    assert (kept, kept) == (pod.template_hash, record(DEPLOYMENTS, {"labels": labels, "name": name}).template_hash)


@pytest.mark.parametrize(
    "rest",
    [
        {"spec": with_env(PASSWORD)},
        {"spec": {"initContainers": [{"env": [PASSWORD]}]}},
        {"spec": {"template": {"spec": with_env(PASSWORD)}}},
        {"template": {"spec": with_env(PASSWORD)}},
        {"spec": {"jobTemplate": {"spec": {"template": {"spec": with_env(PASSWORD)}}}}},
        {"spec": {**with_env(PASSWORD), "template": {"spec": {"containers": []}}}},
        {"spec": {"containers": [{"env": [{"value": "no name"}, "text", PASSWORD]}, None]}},
        {"spec": {"containers": [{"env": [{"name": ["TOKEN"]}, {"name": 3}, {"name": None}, PASSWORD]}]}},
        {"spec": {"containers": [{"env": {"name": "TOKEN"}}, {"env": "TOKEN"}, {"env": [PASSWORD]}]}},
        {"spec": {"containers": {}, "template": None, "jobTemplate": 3, "ephemeralContainers": [{"env": [PASSWORD]}]}},
        {"spec": {"containers": [{"env": [{**PASSWORD, "value": 3}, {**PASSWORD, "value": "short"}, PASSWORD]}]}},
    ],
)
def test_the_value_of_a_password_variable_is_masked_in_labels(rest: dict[str, Any]) -> None:
    """The containers of every pod template are searched, beside malformed ones too."""
    kept = record(PODS, {"labels": {"app": "x-hunter22", "team": "red"}}, **rest)
    assert (("app", f"x-{MASK}"), ("team", "red")) == kept.labels


def test_variables_of_the_same_names_may_have_other_values() -> None:
    """What is remembered about names is not remembered about values."""
    kept = [
        record(PODS, {"labels": {"app": "hunter22"}}, spec=with_env({"name": "DB_PASSWORD", "value": value})).labels
        for value in ("hunter22", "another", "hunter")
    ]
    assert [(("app", MASK),), (("app", "hunter22"),), (("app", f"{MASK}22"),)] == kept


def test_the_value_of_a_plain_variable_is_not_masked_in_labels() -> None:
    """OTEL_SERVICE_NAME often equals the label `app`: a mask would hide the names of many applications."""
    variable = {"name": "OTEL_SERVICE_NAME", "value": "checkout"}
    assert (("app", "checkout"),) == record(PODS, {"labels": {"app": "checkout"}}, spec=with_env(variable)).labels


def test_the_value_of_any_variable_is_masked_in_annotations() -> None:
    """Annotations are free text, like messages."""
    variable = {"name": "DSN", "value": "s3cr3t-dsn"}
    metadata = {"annotations": {"example.com/contact": "see s3cr3t-dsn, password: abc"}}
    kept = record(PODS, metadata, spec=with_env(variable)).annotations
    assert (("example.com/contact", f"see {MASK}, password: {MASK}"),) == kept


@pytest.mark.parametrize("withheld", [False, True])
def test_the_data_of_a_secret_is_masked_in_its_labels(withheld: bool) -> None:  # noqa: FBT001 -- a row of the table
    """The value is masked encoded and decoded, and also if the data is withheld from the evaluation."""
    data = base64.b64encode(b"hunter22").decode()
    body: dict[str, Any] = {
        "metadata": {"name": "a", "labels": {"app": "hunter22", "team": data}},
        "data": {"password": data},
    }
    secret = resource_of(SECRETS, body)
    kept = record_object(remove_data(secret) if withheld else secret, DEFAULT_KEYS)
    assert (("app", MASK), ("team", MASK)) == kept.labels


@pytest.mark.parametrize("text", ["abc", "ключ", "🔑" * 12, "x" * LONGEST_VALUE])
def test_the_longest_secret_that_a_label_can_contain_is_masked(text: str) -> None:
    """Base64 needs up to six characters for a character of text; only longer data cannot be part of a label."""
    data = base64.b64encode(text.encode()).decode()
    kept = record(
        SECRETS, {"labels": {"app": text, "team": "red"}}, data={"key": data}, stringData={"other": "x" * 9999}
    )
    assert (("app", MASK), ("team", "red")) == kept.labels


def test_a_secret_across_two_labels_is_in_none() -> None:
    """Labels are tested together, and masked one by one."""
    kept = record(SECRETS, {"labels": {"app": "cart", "team": "red"}}, stringData={"key": "cart\nred"})
    assert (("app", "cart"), ("team", "red")) == kept.labels


def test_a_value_whose_key_names_a_secret_is_masked() -> None:
    """The copy of the object that kubectl keeps is masked too, even if a flag names it."""
    metadata = {
        "labels": {"api-token": "abc"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    kept = record(CONFIG_MAPS, metadata)
    assert (MASK, MASK) == (kept.labels[0][1], kept.annotations[0][1])


def test_a_long_value_is_cut_after_it_was_masked() -> None:
    """A part of a secret at the end of a cut value would not be recognised."""
    secret = "s" * 40
    value = "x" * (LONGEST_VALUE - 20) + secret
    kept = record(PODS, {"labels": {"note": value}}, spec=with_env({"name": "TOKEN", "value": secret})).labels
    assert (("note", "x" * (LONGEST_VALUE - 20) + MASK),) == kept
    plain = record(PODS, {"labels": {"note": value}}).labels[0][1]
    assert (LONGEST_VALUE, "x…") == (len(plain), record(PODS, {"labels": {"note": "x" * 999}}).labels[0][1][-2:])


def test_more_names_than_are_remembered_are_kept_and_masked() -> None:
    """A Namespace may have any labels: the oldest names are forgotten, and no secret with them."""
    labels = {f"key-{number}": "value" for number in range(5000)}
    kept = record(NAMESPACES, {"labels": {"a-token": "abc", **labels, "z-token": "abc"}}).labels
    again = record(NAMESPACES, {"labels": {"a-token": "abc", "team": "red"}}).labels
    assert (5002, {("a-token", MASK), ("z-token", MASK)}) == (len(kept), {pair for pair in kept if pair[1] != "value"})
    assert (("a-token", MASK), ("team", "red")) == again


def test_other_keys_keep_other_labels() -> None:
    """What is remembered about keys ends with them."""
    metadata = {"labels": {"team": "red", "note": "x"}}
    counts = [len(record(PODS, metadata, keys).labels) for keys in (KEYS, DEFAULT_KEYS, KEYS)]
    assert [2, 1, 2] == counts


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["TOKEN", "URL", "DB_PASSWORD"]), st.text("abc", min_size=4, max_size=8)), max_size=4
    ),
    st.dictionaries(st.sampled_from(["app", "team", "api-token", "tier"]), st.text("abc", max_size=30), max_size=4),
)
def test_no_label_has_the_value_of_a_password_variable(
    variables: list[tuple[str, str]], labels: dict[str, str]
) -> None:
    """The shortcuts for plain objects show nothing that the rule hides, and hide nothing else."""
    env = [{"name": name, "value": value} for name, value in variables]
    hidden = [value for name, value in variables if name != "URL" and len(value) >= 6]
    expected = [
        (key, MASK if key == "api-token" else mask_values(value, hidden))
        for key, value in sorted(labels.items())
        if key != "tier"
    ]
    assert tuple(expected) == record(PODS, {"labels": labels}, spec=with_env(*env)).labels


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": None, "annotations": None, "ownerReferences": None},
        {"labels": [], "annotations": "text", "ownerReferences": {"controller": True}},
        {"labels": {"app": 3, "pod-template-hash": 3}, "annotations": {"example.com/contact": {}}},
        {"labels": "app", "ownerReferences": ["text", None, {"controller": 1}]},
        {"ownerReferences": [{"controller": True, "name": "a"}, {"controller": True, "kind": "A", "name": 3}]},
        {"ownerReferences": [{"controller": True, "apiVersion": "v1", "kind": ["A"], "name": "", "uid": {}}]},
    ],
)
def test_a_malformed_object_keeps_its_identity(metadata: dict[str, Any]) -> None:
    """Objects in files may be malformed, because no server has validated them."""
    assert PopulationMember(PODS, "shop", "a", "u") == record(PODS, metadata)
