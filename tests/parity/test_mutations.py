"""The results of mutating policies beside the response to a dry-run update."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.errors import ListFailed
from scanner.model.json import JsonObject
from scanner.model.scans.scan import Scope
from scanner.parity import Parity, Response, verify
from scanner.scan.options import Options
from scanner.scan.prepare import prepare
from tests.documents import namespace
from tests.parity.test_replay import FakeWriter
from tests.scan.fakes import NOON
from tests.scan.test_drift import LABEL, binding, cluster, config_map, policy

STORED = config_map("a", metadata={"uid": "u", "resourceVersion": "7"})
REFUSES = policy("refuses", '[JSONPatch{op: "remove", path: "/x"}]')
REFUSAL = (
    "policy 'refuses' with binding 'refuses' denied request: JSON Patch: error in remove for path: '/x': Unable to remove "
    "nonexistent key: x: missing value"
)


def labelled(body: JsonObject, **labels: str) -> Response:
    """The response of a server that sets labels and a counter."""
    metadata: Any = body["metadata"]
    return Response(200, body={**body, "metadata": {**metadata, "labels": labels, "generation": 2}})


def replayed(answer: Any, *rules: dict[str, Any]) -> Parity:
    """Replay the updates of one config map."""
    held = cluster(namespace("shop"), STORED, *rules)
    writer = FakeWriter([STORED], lambda _, body: answer(body))
    return verify(prepare(held, Options(scope=Scope(operation="update")), NOON), writer, sample=5, seed=0)


def test_a_server_that_makes_the_same_change_agrees() -> None:
    """The server's own counter is no difference."""
    parity = replayed(lambda body: labelled(body, team="x"), LABEL, binding("label"))

    assert (1, 1, []) == (parity.agreed, parity.writes, parity.differences)


@pytest.mark.parametrize(
    ("answer", "server"),
    [
        (lambda body: labelled(body, team="y"), '+ /metadata/labels: {"team": "y"}'),
        (lambda body: Response(200, body=body), "(nothing)"),
        (lambda _: Response(403, "Invalid", REFUSAL), REFUSAL),
    ],
)
def test_a_server_that_does_something_else_is_shown(answer: Any, server: str) -> None:
    """A difference has both changes, after a second write."""
    parity = replayed(answer, LABEL, binding("label"))
    (discrepancy,) = parity.differences

    assert ("label", '+ /metadata/labels: {"team": "x"}', server) == (
        discrepancy.difference.policy,
        discrepancy.difference.assay,
        discrepancy.difference.server,
    )
    assert 2 == parity.writes


def test_the_same_refusal_agrees() -> None:
    """A failing mutation denies the request with the server's text."""
    assert 1 == replayed(lambda _: Response(403, "Invalid", REFUSAL), REFUSES, binding("refuses")).agreed


def test_a_refusal_that_does_not_come_is_a_difference() -> None:
    """The server admits an object that Assay denies."""
    (discrepancy,) = replayed(lambda body: Response(200, body=body), REFUSES, binding("refuses")).differences

    assert (REFUSAL, "(nothing)") == (discrepancy.difference.assay, discrepancy.difference.server)


MISTYPES = policy("mistypes", '[JSONPatch{op: "add", path: "/data", value: 1}]')
UNREADABLE = "Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string"
ENDS = policy("ends", '[JSONPatch{op: "add", path: "/data", value: {"a": Object.data{}}}]')


def test_an_internal_error_that_a_mutation_causes_agrees_when_it_was_predicted() -> None:
    """The error ends the request without the policy's name."""
    assert 1 == replayed(lambda _: Response(500, "InternalError", UNREADABLE), MISTYPES, binding("mistypes")).agreed


@pytest.mark.parametrize("rules", [(LABEL, binding("label")), (REFUSES, binding("refuses"))])
def test_an_internal_error_that_was_not_predicted_is_a_difference(rules: tuple[dict[str, Any], ...]) -> None:
    """Assay expected a change or another denial."""
    (discrepancy,) = replayed(lambda _: Response(500, "InternalError", UNREADABLE), *rules).differences

    assert UNREADABLE == discrepancy.difference.server


def test_an_internal_error_that_does_not_come_is_a_difference() -> None:
    """The server accepts an object that Assay cannot decode."""
    (discrepancy,) = replayed(lambda body: Response(200, body=body), MISTYPES, binding("mistypes")).differences

    assert (UNREADABLE, "(nothing)") == (discrepancy.difference.assay, discrepancy.difference.server)


def test_a_missing_response_of_a_webhook_concerns_no_mutation() -> None:
    """The internal error of a webhook concerns no policy."""
    broken = Response(500, "InternalError", 'Internal error occurred: failed calling webhook "w": no route to host')
    parity = replayed(lambda _: broken, LABEL, binding("label"))

    assert ([], 1) == (parity.differences, parity.unseen.total())


def unanswered(_: JsonObject) -> Response:
    """A connection that breaks."""
    raise ListFailed("failed", "no answer")


@pytest.mark.parametrize(
    ("rules", "agreed", "gaps"), [((ENDS, binding("ends")), 1, 0), ((LABEL, binding("label")), 0, 1)]
)
def test_a_connection_that_ends_agrees_where_that_was_predicted(
    rules: tuple[dict[str, Any], ...], agreed: int, gaps: int
) -> None:
    """An object inside a map ends the server's connection; any other missing response is a gap."""
    parity = replayed(unanswered, *rules)

    assert (agreed, gaps) == (parity.agreed, len(parity.gaps))


def test_a_refusal_that_only_some_orders_end_in_agrees() -> None:
    """If one policy's change makes another fail, both responses of a server are correct."""
    adds = policy("adds", 'Object{data: {"x": "1"}}')
    fails = policy("fails", '[JSONPatch{op: "add", path: "/data/y", value: object.data.x}]')
    text = (
        "policy 'fails' with binding 'fails' denied request: expression '[JSONPatch{op: \"add\", path: \"/data/y\", value: "
        "object.data.x}]' resulted in error: no such key: x"
    )
    rules = (adds, binding("adds"), fails, binding("fails"))

    assert 1 == replayed(lambda _: Response(403, "Invalid", text), *rules).agreed
    assert (
        []
        == replayed(
            lambda body: Response(200, body={**body, "data": {"a": "1", "x": "1", "y": "1"}}), *rules
        ).differences
    )


def test_policies_with_conflicting_changes_cannot_be_compared() -> None:
    """The order of the policies is random on a server."""
    first, second = policy("one", 'Object{data: {"a": "one"}}'), policy("two", 'Object{data: {"a": "two"}}')
    parity = replayed(
        lambda body: Response(200, body={**body, "data": {"a": "one"}}), first, binding("one"), second, binding("two")
    )

    assert [] == parity.differences
    assert ["the result depends on the order of mutating policies, which an API server does not define"] == [
        *parity.unseen
    ]
