"""The API server is asked about a request as its own user, and its answer is compared with the decisions of Assay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from scanner.errors import ListFailed
from scanner.model.json import Json, JsonObject
from scanner.model.resource import Kind, UserInfo, build_user_info, resource_of
from scanner.parity.answers import Response
from scanner.preview.asked_requests import RequestAsker
from scanner.preview.object_requests import FINALIZED_BY, UPDATED_BY
from scanner.preview.objects_between import MAKERS
from scanner.preview.pods import CONTROLLERS
from scanner.preview.requested import Requested
from scanner.preview.verdict import Decision, Effect
from scanner.rbac import CONTROLLER_ACCOUNTS
from tests.documents import PODS

OWN = build_user_info("jane")
CONTROLLER = build_user_info("system:serviceaccount:kube-system:replicaset-controller")
ADMITTED = Response(201, body={"kind": "Pod"})
DENIED = Response(422, "Invalid", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no")
QUOTA = Response(403, "Forbidden", 'pods "web" is forbidden: exceeded quota: small')
MAY_NOT_CREATE = Response(
    403, "Forbidden", 'pods is forbidden: User "jane" cannot create resource "pods" in API group ""'
)
MAY_NOT_PATCH = Response(403, "Forbidden", 'pods "web" is forbidden: User "jane" cannot patch resource "pods"')
MAY_NOT_IMPERSONATE = Response(
    403, "Forbidden", 'serviceaccounts "replicaset-controller" is forbidden: User "jane" cannot impersonate resource'
)
REFUSES = Decision(Effect.REFUSES, "no", "p")
UNDECIDED = Decision(Effect.UNDECIDED, "perhaps", "p")


@dataclass
class Writer:
    """A cluster with prepared responses, and the requests that it received: the verb, the user and the content."""

    responses: list[Response]
    is_aggregated: bool = False
    received: list[tuple[str, str, JsonObject]] = field(default_factory=list)

    def is_foreign(self, kind: Kind) -> bool:
        """See RequestWriter."""
        del kind
        return self.is_aggregated

    def create(self, kind: Kind, body: JsonObject, user: UserInfo | None = None) -> Response:
        """See RequestWriter."""
        del kind
        return self._answer("create", user, body)

    def update(self, kind: Kind, body: JsonObject, user: UserInfo | None = None) -> Response:
        """See RequestWriter."""
        del kind
        return self._answer("update", user, body)

    def patch(self, kind: Kind, body: JsonObject, changes: JsonObject, user: UserInfo | None = None) -> Response:
        """See RequestWriter."""
        del kind, body
        return self._answer("patch", user, changes)

    def _answer(self, verb: str, user: UserInfo | None, content: JsonObject) -> Response:
        self.received.append((verb, user.username if user else "", content))
        if not self.responses:
            raise ListFailed("failed", "no response about pods web")
        return self.responses.pop(0)


def pod(**metadata: Json) -> JsonObject:
    """A pod of the shop."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", **metadata}}


CREATE = Requested(resource_of(PODS, pod()), None)
KEPT = pod(finalizers=["example.com/keep"])
FINALIZE = Requested(resource_of(PODS, pod()), None, resource_of(PODS, KEPT))
UPDATE = Requested(resource_of(PODS, KEPT), None, resource_of(PODS, KEPT))


@pytest.mark.parametrize(
    ("response", "decisions", "compared", "admitted"),
    [
        (ADMITTED, (), "agrees", True),
        (DENIED, (REFUSES,), "agrees", False),
        (ADMITTED, (UNDECIDED,), "agrees", True),
        (DENIED, (), "differs", False),
        (ADMITTED, (REFUSES,), "differs", True),
        (DENIED, (UNDECIDED,), "notCompared", False),
        (QUOTA, (), "notCompared", None),
        (MAY_NOT_CREATE, (), "notAsked", None),
    ],
)
def test_an_answer_is_compared_with_the_decisions_by_the_same_rules(
    response: Response, decisions: Sequence[Decision], compared: str, admitted: object
) -> None:
    """The server may know more where something is undecided, and a quota is not a policy."""
    asker = RequestAsker(Writer([response]), OWN)
    answer = asker.compare(asker.ask(CREATE, OWN), lambda *_: decisions)

    assert (compared, admitted) == (answer.compared, answer.admitted)
    assert {compared: 1} == asker.counts
    assert (compared == "notAsked") == bool(asker.reasons)


def test_a_difference_names_the_policy_that_was_expected_to_refuse() -> None:
    """The message of the policy follows."""
    asker = RequestAsker(Writer([ADMITTED]), OWN)

    assert "p was expected to refuse it: no" == asker.compare(asker.ask(CREATE, OWN), lambda *_: [REFUSES]).why


def test_a_request_is_made_as_its_own_user() -> None:
    """The user of the credentials is not impersonated."""
    writer = Writer([ADMITTED, ADMITTED])
    asker = RequestAsker(writer, OWN)
    users = [asker.ask(CREATE, user).user for user in (CONTROLLER, OWN)]

    assert [CONTROLLER, OWN] == users
    assert [CONTROLLER.username, ""] == [user for _, user, _ in writer.received]


def test_without_the_right_to_impersonate_the_own_user_asks() -> None:
    """The right is asked for once, and the decisions are those about the own user."""
    writer = Writer([MAY_NOT_IMPERSONATE, ADMITTED, ADMITTED])
    asker = RequestAsker(writer, OWN)
    asked = [asker.ask(CREATE, CONTROLLER) for _ in range(2)]
    answers = [asker.compare(each, lambda _, user: [] if user == OWN else [REFUSES]) for each in asked]

    assert [("agrees", "jane")] * 2 == [(answer.compared, answer.user) for answer in answers]
    assert [CONTROLLER.username, "", ""] == [user for _, user, _ in writer.received]


@pytest.mark.parametrize(
    ("requested", "changes"), [(FINALIZE, {"metadata": {"finalizers": None}}), (UPDATE, {})], ids=["finalize", "update"]
)
def test_an_update_is_a_patch(requested: Requested, changes: JsonObject) -> None:
    """It needs no version of the object, which may have changed since it was listed."""
    writer = Writer([ADMITTED])
    RequestAsker(writer, OWN).ask(requested, OWN)

    assert [("patch", "", changes)] == writer.received


def test_a_user_that_may_not_patch_updates() -> None:
    """Some controllers may update objects alone."""
    writer = Writer([MAY_NOT_PATCH, ADMITTED])
    RequestAsker(writer, OWN).ask(FINALIZE, OWN)

    assert ["patch", "update"] == [verb for verb, _, _ in writer.received]


@pytest.mark.parametrize(
    ("writer", "why"),
    [
        (Writer([ADMITTED], is_aggregated=True), "an aggregated API server serves the kind, or may"),
        (Writer([]), "no response about pods web"),
    ],
)
def test_where_the_server_cannot_be_asked_there_is_no_answer(writer: Writer, why: str) -> None:
    """An aggregated server may ignore dryRun, so nothing is sent to it."""
    asker = RequestAsker(writer, OWN)
    answer = asker.compare(asker.ask(CREATE, OWN), lambda *_: ())

    assert ("notAsked", None) == (answer.compared, answer.admitted)
    assert why in answer.why
    assert [] == [verb for verb, _, _ in writer.received if writer.is_aggregated]


def test_the_generated_roles_may_impersonate_every_controller() -> None:
    """The accounts of the requests that a preview makes."""
    creators = {account for account, _ in CONTROLLERS.values()}
    makers = {user.username.rpartition(":")[2] for user in MAKERS.values()}

    assert {*creators, *makers, *UPDATED_BY.values(), *FINALIZED_BY.values()} == set(CONTROLLER_ACCOUNTS)
