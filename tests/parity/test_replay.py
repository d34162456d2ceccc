"""A sample of a cluster's objects, written as dry runs, and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from scanner.errors import ListFailed
from scanner.model.json import JsonObject
from scanner.model.outcome import GapKind
from scanner.model.resource import Kind
from scanner.model.scans.scan import Scope
from scanner.parity import Parity, Response, verify
from scanner.parity.answers import write_warning
from scanner.scan.options import Options
from scanner.scan.prepare import prepare
from tests import documents
from tests.documents import CONFIG_MAPS, SECRETS, binding, namespace, pod, policy, thing
from tests.scan.fakes import NOON, FakeCluster, forbidden

WARNED = write_warning("p", "b", "no")
STALE = Response(409, "Conflict", "the object has been modified")
SECRET = "c2VjcmV0LXZhbHVl"
ANSWERS = Callable[[str, JsonObject], Response]


@dataclass
class FakeWriter:
    """Reads from documents, and gives every write the same response, or that of `answer`."""

    documents: list[documents.Document]
    answer: ANSWERS = lambda operation, body: Response(201 if operation == "CREATE" else 200, body=body)
    elsewhere: frozenset[str] = frozenset()
    refused: ListFailed | None = None
    written: list[tuple[str, str, JsonObject]] = field(default_factory=list)

    def is_foreign(self, kind: Kind) -> bool:
        return kind.resource in self.elsewhere

    def read(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        if self.refused:
            raise self.refused
        for document in self.documents:
            if (document["kind"], document["metadata"]["name"]) == (kind.kind, name):
                return document
        return None

    def create(self, kind: Kind, body: JsonObject) -> Response:
        self.written.append(("CREATE", kind.resource, body))
        return self.answer("CREATE", body)

    def update(self, kind: Kind, body: JsonObject) -> Response:
        self.written.append(("UPDATE", kind.resource, body))
        return self.answer("UPDATE", body)


def objects(*names: str) -> list[documents.Document]:
    """Pods with a UID."""
    return [
        {**(made := pod(name)), "metadata": {**made["metadata"], "uid": f"u-{name}", "resourceVersion": "7"}}
        for name in names
    ]


def replayed(
    writer: FakeWriter,
    *rules: documents.Document,
    sample: int = 10,
    seed: int = 0,
    scope: Scope | None = None,
    **fields: Any,
) -> Parity:
    """Replay the objects of the writer with these policies and bindings."""
    cluster = FakeCluster([namespace("default"), *writer.documents, *rules], **fields)
    return verify(prepare(cluster, Options(scope=scope or Scope()), NOON), writer, sample=sample, seed=seed)


def test_both_operations_are_replayed() -> None:
    """The writes are a create of a copy without UID and resourceVersion, and an update of the object."""
    writer = FakeWriter(objects("web"))
    replayed(writer, policy("p", "true"), binding("b", "p", "Warn"))

    [create, update] = writer.written
    assert ("CREATE", {"name": "web", "namespace": "default"}) == (create[0], create[2]["metadata"])
    assert ("UPDATE", "7") == (update[0], update[2]["metadata"]["resourceVersion"])  # type: ignore[index, call-overload]


def test_only_the_operations_of_rules_are_replayed() -> None:
    """Writes that no policy matches are not sent."""
    writer = FakeWriter(objects("web"))
    rule = documents.rule("pods", operations=["UPDATE", "DELETE"])
    replayed(writer, policy("p", "true", matchConstraints={"resourceRules": [rule]}), binding("b", "p", "Warn"))

    assert ["UPDATE"] == [operation for operation, _, _ in writer.written]


def test_agreement_is_counted() -> None:
    """Two validations have a verdict in each of two operations on each of two objects."""
    writer = FakeWriter(objects("web", "db"))
    parity = replayed(writer, policy("p", "true", "1 == 1"), binding("b", "p", "Warn"))

    assert (2, 4, 8, []) == (parity.objects, parity.writes, parity.agreed, parity.differences)
    assert parity.complete


def test_a_difference_is_shown_with_the_write_that_showed_it() -> None:
    """A second write confirms the difference."""
    writer = FakeWriter(
        objects("web"), lambda operation, body: Response(201, warnings=(WARNED,) if operation == "CREATE" else ())
    )
    parity = replayed(writer, policy("p", "true"), binding("b", "p", "Warn"))

    [discrepancy] = parity.differences
    assert ("CREATE", "v1", "Pod", "default", "web") == (
        discrepancy.operation,
        discrepancy.api_version,
        discrepancy.kind,
        discrepancy.namespace,
        discrepancy.name,
    )
    assert ("p", "b", "(nothing)", WARNED) == (
        discrepancy.difference.policy,
        discrepancy.difference.binding,
        discrepancy.difference.assay,
        discrepancy.difference.server,
    )
    assert ["CREATE", "UPDATE"] * 2 + ["UPDATE"] == [operation for operation, _, _ in writer.written]


def test_what_changes_meanwhile_is_tried_again() -> None:
    """One conflict is no difference."""
    answers = [STALE, Response(200)]
    writer = FakeWriter(objects("web"), lambda *_: answers.pop(0))
    parity = replayed(writer, policy("p", "true"), binding("b", "p", "Warn"), scope=Scope(operation="update"))

    assert (1, [], {}) == (parity.agreed, parity.differences, dict(parity.unseen))


def test_what_is_gone_is_passed_over() -> None:
    """The object was listed, and deleted before the write."""
    writer = FakeWriter(objects("web"))
    cluster = FakeCluster(
        [namespace("default"), *objects("web", "gone"), policy("p", "true"), binding("b", "p", "Warn")]
    )
    parity = verify(prepare(cluster, Options(), NOON), writer, sample=10, seed=0)

    assert (2, 2, []) == (parity.objects, parity.writes, parity.differences)
    assert parity.complete


def test_a_missing_right_makes_it_incomplete() -> None:
    """The permission is named once, with the number of missing writes."""
    message = 'pods is forbidden: User "me" cannot create resource "pods" in API group ""'
    writer = FakeWriter(objects("web", "db"), lambda *_: Response(403, "Forbidden", message))
    parity = replayed(writer, policy("p", "true"), binding("b", "p", "Warn"), scope=Scope(operation="create"))

    assert ({"create on pods": 2}, 0, False) == (dict(parity.missing), parity.agreed, parity.complete)
    assert {"permission to create on pods is missing": 2} == dict(parity.unseen)


def test_an_object_that_cannot_be_read_is_a_gap() -> None:
    """One kind has one gap for any number of objects."""
    writer = FakeWriter(objects("web", "db"), refused=forbidden("pods"))
    parity = replayed(writer, policy("p", "true"), binding("b", "p", "Warn"))

    assert [(GapKind.LIST, "v1/Pod")] == [(gap.kind, gap.where) for gap in parity.gaps]
    assert not parity.complete


def test_a_kind_that_cannot_be_listed_is_a_gap() -> None:
    """The other kinds are replayed."""
    writer = FakeWriter([*objects("web"), thing(CONFIG_MAPS, "map", "default")])
    on_both = {"resourceRules": [documents.rule("pods", "configmaps")]}
    parity = replayed(
        writer,
        policy("p", "true", matchConstraints=on_both),
        binding("b", "p", "Warn"),
        refused={"configmaps": forbidden("configmaps")},
    )

    assert (["v1/ConfigMap"], 2) == ([gap.where for gap in parity.gaps], parity.agreed)


def test_kinds_of_other_servers_are_never_written() -> None:
    """Aggregated API servers may ignore dry runs; the report names their kinds."""
    writer = FakeWriter(objects("web"), elsewhere=frozenset({"pods"}))
    parity = replayed(writer, policy("p", "true"), binding("b", "p", "Warn"))

    why = ["pods: an aggregated API server serves it, or may, and it may ignore dryRun"]
    assert ([], why) == (writer.written, parity.left_out)


def test_a_sample_takes_from_every_kind_in_turn() -> None:
    """The number of objects of a kind does not matter."""
    names = [f"web-{number}" for number in range(20)]
    writer = FakeWriter([*objects(*names), thing(CONFIG_MAPS, "map", "default")])
    on_both = {"resourceRules": [documents.rule("pods", "configmaps")]}
    rules = policy("p", "true", matchConstraints=on_both), binding("b", "p", "Warn")
    replayed(writer, *rules, sample=3, scope=Scope(operation="create"))

    assert ["configmaps", "pods", "pods"] == sorted(resource for _, resource, _ in writer.written)


def test_a_seed_chooses_the_sample() -> None:
    """The same seed chooses the same objects, another seed others."""
    names = [f"web-{number}" for number in range(50)]

    def written(seed: int) -> list[object]:
        writer = FakeWriter(objects(*names))
        replayed(writer, policy("p", "true"), binding("b", "p", "Warn"), sample=5, seed=seed)
        return [body["metadata"]["name"] for _, _, body in writer.written]  # type: ignore[index, call-overload]

    assert written(1) == written(1)
    assert written(1) != written(2)


def test_what_admission_changed_is_not_comparable() -> None:
    """The policy read another label than the stored one."""

    def mutated(_: str, body: JsonObject) -> Response:
        return Response(200, warnings=(WARNED,), body={**body, "metadata": {"name": "web", "labels": {"set": "here"}}})

    writer = FakeWriter(objects("web"), mutated)
    rules = policy("p", "!has(object.metadata.labels)"), binding("b", "p", "Warn")
    parity = replayed(writer, *rules, scope=Scope(operation="update"))

    assert ([], {"admission changes what the policy reads before policies see it": 1}) == (
        parity.differences,
        dict(parity.unseen),
    )


def test_an_update_shows_what_admission_would_change_in_a_copy() -> None:
    """The response for an existing object does not show the changes of admission."""

    def mutated(operation: str, body: JsonObject) -> Response:
        if operation == "CREATE":
            return Response(409, "AlreadyExists", "exists", (WARNED,))
        return Response(200, body={**body, "metadata": {"name": "web", "labels": {"set": "here"}}})

    writer = FakeWriter(objects("web"), mutated)
    rules = policy("p", "!has(object.metadata.labels)"), binding("b", "p", "Warn")
    parity = replayed(writer, *rules, scope=Scope(operation="create"))

    assert ([], 1) == (parity.differences, parity.unseen.total())


@pytest.mark.parametrize("response", [SECRET, "secret-value"])
def test_a_secret_is_in_no_difference(response: str) -> None:
    """Neither Assay's text nor the server's text shows the data of a Secret."""
    secret = {**thing(SECRETS, "s", "default"), "data": {"password": SECRET}}
    writer = FakeWriter([secret], lambda *_: Response(200, warnings=(write_warning("p", "b", f"it is {response}"),)))
    about = {"resourceRules": [documents.rule("secrets")]}
    parity = replayed(
        writer,
        policy(
            "p",
            matchConstraints=about,
            validations=[{"expression": "false", "messageExpression": "object.data.password"}],
        ),
        binding("b", "p", "Warn"),
    )

    assert parity.differences
    assert response not in str(parity.differences)
    assert SECRET not in str(parity.differences)


def test_a_policy_that_could_not_be_evaluated_makes_no_difference() -> None:
    """The params of the policy could not be listed, which is a gap."""
    writer = FakeWriter(objects("web"), lambda *_: Response(201, warnings=(WARNED,)))
    param_kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference = {"name": "c", "namespace": "default", "parameterNotFoundAction": "Allow"}
    parity = replayed(
        writer,
        policy("p", "true", paramKind=param_kind),
        binding("b", "p", "Warn", paramRef=reference),
        policy("q", "true"),
        binding("c", "q", "Warn"),
        refused={"configmaps": forbidden("configmaps")},
    )

    assert ([], 2, False) == (parity.differences, parity.agreed, parity.complete)
    assert {"Assay could not evaluate the policy": 2} == dict(parity.unseen)


def test_policies_about_nothing_replay_nothing() -> None:
    """Without a bound policy no write is sent."""
    writer = FakeWriter(objects("web"))
    parity = replayed(writer, policy("p", "true"))

    assert (0, 0, True) == (parity.objects, parity.writes, parity.complete)
    assert [] == writer.written


def test_kinds_left_out_are_not_written() -> None:
    """The scope is that of a scan."""
    writer = FakeWriter(objects("web"))
    parity = replayed(
        writer, policy("p", "true"), binding("b", "p", "Warn"), scope=replace(Scope(), skip_kinds=("pods",))
    )

    assert (0, []) == (parity.objects, writer.written)
