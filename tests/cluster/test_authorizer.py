"""The authorizer of a live cluster is asked by review, and never answered for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scanner.cel import Answer, Question, Subject
from scanner.cluster.live import LiveCluster
from scanner.errors import AuthorizerFailed, ClusterError
from tests.cluster.server import FakeApi, Reply

SELF = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
BOB = Subject("bob", ("dev",), "u-1", (("scopes", ("a",)),))
DELETE_PODS = Question(BOB, verb="delete", version="*", resource="pods", namespace="shop", name="web")
YES = Reply({"status": {"allowed": True}}, 201)


def ruled(**status: Any) -> Reply:
    """The answer to a review."""
    return Reply({"kind": "SubjectAccessReview", "status": status}, 201)


def answered(api: FakeApi, cluster: LiveCluster, reply: Reply, question: Question = DELETE_PODS) -> Answer:
    """What the authorizer says, when it may be asked and the server replies so."""
    api.says(SELF, YES)
    api.says(REVIEWS, reply)
    decider = cluster.authorizer()
    assert decider is not None
    return decider.decide(question)


@pytest.mark.parametrize(
    "reply", [Reply({"status": {"allowed": False}}, 201), Reply({"message": "no"}, 403), Reply({}, 404)]
)
def test_it_is_asked_only_by_who_may_ask(api: FakeApi, cluster: LiveCluster, reply: Reply) -> None:
    """Whoever may not create reviews gets none, instead of refusals that look like answers."""
    api.says(SELF, reply)
    assert None is cluster.authorizer()


@pytest.mark.parametrize(
    "reply", [Reply({}, cut=True), Reply({}, 201), Reply({"status": {"allowed": "yes"}}, 201), Reply({}, 200)]
)
def test_a_server_that_does_not_say_is_no_refusal(api: FakeApi, cluster: LiveCluster, reply: Reply) -> None:
    """It cannot be told whether the authorizer may be asked."""
    api.says(SELF, reply)
    with pytest.raises(ClusterError, match="cannot determine the permission to create SubjectAccessReviews"):
        cluster.authorizer()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"allowed": True, "reason": "RBAC: allowed"}, Answer(allowed=True, reason="RBAC: allowed")),
        ({"allowed": False}, Answer(allowed=False)),
        ({"allowed": False, "denied": True, "reason": "no"}, Answer(allowed=False, reason="no")),
        ({"allowed": False, "evaluationError": "oops"}, Answer(allowed=False, error="oops")),
    ],
)
def test_answers_are_the_authorizers(
    api: FakeApi, cluster: LiveCluster, status: dict[str, Any], expected: Answer
) -> None:
    """Allowed, the reason, and the error that goes with a refusal."""
    assert expected == answered(api, cluster, ruled(**status))


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"message": "forbidden"}, 403),
        Reply({"message": "oops"}, 400),
        Reply({}, 201),
        Reply({"status": {"allowed": "yes"}}, 201),
        Reply({"status": {"allowed": True}}, 200),
        Reply({}, cut=True),
    ],
)
def test_no_answer_is_never_taken_for_one(api: FakeApi, cluster: LiveCluster, reply: Reply) -> None:
    """What the server does not say is not known."""
    with pytest.raises(AuthorizerFailed, match="the authorizer check failed"):
        answered(api, cluster, reply)


@pytest.mark.parametrize(
    ("question", "attributes"),
    [
        (
            DELETE_PODS,
            {
                "resourceAttributes": {
                    "verb": "delete",
                    "version": "*",
                    "resource": "pods",
                    "namespace": "shop",
                    "name": "web",
                }
            },
        ),
        (
            Question(
                BOB,
                verb="list",
                group="apps",
                version="*",
                resource="deployments",
                subresource="scale",
                field_selector="a=b",
                label_selector="c in (d)",
            ),
            {
                "resourceAttributes": {
                    "verb": "list",
                    "group": "apps",
                    "version": "*",
                    "resource": "deployments",
                    "subresource": "scale",
                    "fieldSelector": {"rawSelector": "a=b"},
                    "labelSelector": {"rawSelector": "c in (d)"},
                }
            },
        ),
        (Question(BOB, verb="get", path="/healthz"), {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}),
    ],
)
def test_the_whole_question_is_asked(
    api: FakeApi, cluster: LiveCluster, question: Question, attributes: dict[str, Any]
) -> None:
    """Who, and what, with nothing left out and nothing made up."""
    answered(api, cluster, ruled(allowed=True), question)
    spec = json.loads(api.asked[-1].body)["spec"]
    assert {"user": "bob", "uid": "u-1", "groups": ["dev"], "extra": {"scopes": ["a"]}, **attributes} == spec
