"""A review has the decision of a live cluster's authorizer, and no other decision replaces it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scanner.cel import AuthorizerAnswer, AuthorizerSubject, Question
from scanner.cluster.live.cluster import LiveCluster
from scanner.errors import AuthorizerFailed, ClusterError
from tests.cluster.server import FakeApi, Reply

SELF = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
BOB = AuthorizerSubject("bob", ("dev",), "u-1", (("scopes", ("a",)),))
DELETE_PODS = Question(BOB, verb="delete", version="*", resource="pods", namespace="shop", name="web")
YES = Reply({"status": {"allowed": True}}, 201)


def review_response(**status: Any) -> Reply:
    """The response to a review."""
    return Reply({"kind": "SubjectAccessReview", "status": status}, 201)


def answered(api: FakeApi, cluster: LiveCluster, reply: Reply, question: Question = DELETE_PODS) -> AuthorizerAnswer:
    """The authorizer's answer, if reviews are allowed and the server sends this reply."""
    api.says(SELF, YES)
    api.says(REVIEWS, reply)
    decider = cluster.authorizer()
    assert decider is not None
    return decider.decide(question)


@pytest.mark.parametrize(
    "reply", [Reply({"status": {"allowed": False}}, 201), Reply({"message": "no"}, 403), Reply({}, 404)]
)
def test_a_user_without_permission_has_no_authorizer(api: FakeApi, cluster: LiveCluster, reply: Reply) -> None:
    """A user who may not create reviews has no authorizer, because a refused review is no answer."""
    api.says(SELF, reply)
    assert None is cluster.authorizer()


@pytest.mark.parametrize(
    "reply", [Reply({}, cut=True), Reply({}, 201), Reply({"status": {"allowed": "yes"}}, 201), Reply({}, 200)]
)
def test_a_failing_server_is_no_refusal(api: FakeApi, cluster: LiveCluster, reply: Reply) -> None:
    """An error of the server does not show whether reviews are allowed."""
    api.says(SELF, reply)
    with pytest.raises(ClusterError, match="cannot determine the permission to create SubjectAccessReviews"):
        cluster.authorizer()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"allowed": True, "reason": "RBAC: allowed"}, AuthorizerAnswer(allowed=True, reason="RBAC: allowed")),
        ({"allowed": False}, AuthorizerAnswer(allowed=False)),
        ({"allowed": False, "denied": True, "reason": "no"}, AuthorizerAnswer(allowed=False, reason="no")),
        ({"allowed": False, "evaluationError": "oops"}, AuthorizerAnswer(allowed=False, error="oops")),
    ],
)
def test_answers_are_the_authorizers(
    api: FakeApi, cluster: LiveCluster, status: dict[str, Any], expected: AuthorizerAnswer
) -> None:
    """The answer has the decision, the reason, and the error of a denial."""
    assert expected == answered(api, cluster, review_response(**status))


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
    """A response without a decision is no answer."""
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
def test_the_review_has_the_whole_question(
    api: FakeApi, cluster: LiveCluster, question: Question, attributes: dict[str, Any]
) -> None:
    """The review has the user and the attributes of the question, and no others."""
    answered(api, cluster, review_response(allowed=True), question)
    spec = json.loads(api.requests[-1].body)["spec"]
    assert {"user": "bob", "uid": "u-1", "groups": ["dev"], "extra": {"scopes": ["a"]}, **attributes} == spec


def test_a_token_in_the_extra_info_of_the_user_is_not_repeated(api: FakeApi, cluster: LiveCluster) -> None:
    """The review has sent it; another value of the user stays in the reason."""
    carol = AuthorizerSubject(
        "carol", (), "u-2", (("session-token", ("hidden-own-token",)), ("scopes", ("view-only",)))
    )
    question = Question(carol, verb="get", version="*", resource="pods", namespace="shop", name="web")
    reply = review_response(
        allowed=False, reason="hidden-own-token has view-only", evaluationError="not hidden-own-token"
    )
    expected = AuthorizerAnswer(allowed=False, reason="[redacted] has view-only", error="not [redacted]")
    assert expected == answered(api, cluster, reply, question)
