"""The content of params and other rule objects: what is kept, what is withheld, and which changes a digest shows."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.audit.rule_content import make_rule_object
from scanner.model.json import dig
from scanner.model.resource import LAST_APPLIED
from scanner.model.rule import RuleObject, RuleType

Document = dict[str, Any]


def config_map(data: Document | None = None, **metadata: Any) -> Document:
    """A ConfigMap as a server returns it."""
    server = {"uid": "u-1", "resourceVersion": "41", "creationTimestamp": "2026-03-01T06:00:00Z", "managedFields": [{}]}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "limits", "namespace": "shop", **server, **metadata},
        "data": {"maximum": "3"} if data is None else data,
    }


def param(body: Document, *, with_status: bool = False) -> RuleObject:
    """The rule object of a param."""
    return make_rule_object(RuleType.PARAM, "limits", body, with_status=with_status)


def test_the_content_is_kept_without_what_a_server_sets() -> None:
    """The name, the namespace and the data are kept."""
    expected = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "limits", "namespace": "shop"},
        "data": {"maximum": "3"},
    }

    assert (expected, False) == (param(config_map()).document, param(config_map()).masked)


@pytest.mark.parametrize(
    "metadata",
    [
        {"uid": "u-2", "resourceVersion": "99", "generation": 4},
        {"annotations": {LAST_APPLIED: '{"data":{"maximum":"3"}}'}},
        {"managedFields": [], "creationTimestamp": None},
    ],
)
def test_equal_content_in_two_clusters_has_one_digest(metadata: Document) -> None:
    """A server's own fields and kubectl's copy are no content."""
    assert param(config_map()).digest == param(config_map(**metadata)).digest


@pytest.mark.parametrize("change", [{"data": {"maximum": "300"}}, {"data": {}}, {"labels": {"tier": "gold"}}])
def test_other_content_has_another_digest(change: Document) -> None:
    """Data and labels are content: expressions and selectors read them."""
    assert param(config_map()).digest != param(config_map(**change)).digest


def test_the_uid_of_an_owner_is_no_content() -> None:
    """An operator makes the same param with another UID in each cluster."""
    owners = [[{"kind": "Limit", "name": "shop", "uid": uid}] for uid in ("u-1", "u-2")]
    first, other = (param(config_map(ownerReferences=owner)) for owner in owners)

    assert first.digest == other.digest


@pytest.mark.parametrize(("with_status", "same"), [(False, True), (True, False)])
def test_status_is_content_where_an_expression_reads_it(with_status: bool, same: bool) -> None:  # noqa: FBT001
    """A status that a controller renews is no rule."""
    first, other = ({**config_map(), "status": {"seen": number}} for number in (1, 2))

    assert same == (param(first, with_status=with_status).digest == param(other, with_status=with_status).digest)


def test_a_secret_is_its_version() -> None:
    """Neither data nor labels of a Secret are kept, and its digest covers the UID and the resource version alone."""
    body = {
        **config_map(labels={"tier": "gold"}),
        "kind": "Secret",
        "data": {"maximum": "Mw=="},
        "stringData": {"a": "b"},
    }
    secret = param(body)

    metadata = {"name": "limits", "namespace": "shop", "uid": "u-1", "resourceVersion": "41"}
    assert {"apiVersion": "v1", "kind": "Secret", "metadata": metadata} == secret.document
    assert secret.masked
    assert secret.digest == param({**body, "data": {"maximum": "MzAw"}}).digest


@pytest.mark.parametrize(
    "data",
    [
        {"password": "hunter2"},
        {"config.yaml": "user: bob\npassword: hunter2\n"},
        {"url": "postgresql://bob:hunter2@db/shop"},
        {"containers": [{"env": [{"name": "PLAIN", "value": "hunter2"}]}]},
        {"headers": [{"key": "Authorization", "value": "hunter2"}]},
    ],
)
def test_what_looks_like_a_secret_is_withheld(data: Document) -> None:
    """The version of the object stands for the withheld text."""
    content = param(config_map(data))
    other = param(config_map(data, resourceVersion="42"))

    assert "hunter2" not in str(content.document)
    assert (True, "41", "u-1") == (
        content.masked,
        dig(content.document, "metadata", "resourceVersion"),
        dig(content.document, "metadata", "uid"),
    )
    assert content.digest != other.digest


def test_a_digest_does_not_depend_on_withheld_text() -> None:
    """Otherwise a reader of the database could guess a short password."""
    first, other = (param(config_map({"password": word})) for word in ("hunter2", "hunter3"))

    assert first.digest == other.digest


def test_a_deep_document_is_cut() -> None:
    """A hostile object cannot exhaust the stack of a scan, and what is cut counts as withheld."""
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    rule = param(config_map({"deep": deep}))

    assert rule.masked
    assert "bottom" not in str(rule.document)
