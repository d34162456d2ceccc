"""The cluster's authorizer, through reviews, which the server does not store.

Source of truth: `authorization.k8s.io/v1`. A SubjectAccessReview has the decision that kube-apiserver's authorizer gives an
expression: allowed, the reason, and an error as `evaluationError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scanner.audit.sensitive_fields import names_secret
from scanner.cel import AuthorizerAnswer, Question
from scanner.cluster.requests.session import ApiSession, NoResponse
from scanner.errors import AuthorizerFailed, ClusterError
from scanner.model.json import JsonObject, as_text, dig

_GROUP: Final = "authorization.k8s.io"
_VERSION: Final = f"{_GROUP}/v1"
_REVIEWS: Final = f"/apis/{_VERSION}/subjectaccessreviews"
_SELF_REVIEWS: Final = f"/apis/{_VERSION}/selfsubjectaccessreviews"
_CREATED: Final = 201
_NOT_SERVED: Final = (400, 403, 404, 405)


class Reviewer:
    """Decides authorizer checks by SubjectAccessReview. Satisfies `scanner.cel.Decider`."""

    def __init__(self, session: ApiSession) -> None:
        """Use a session whose user may create these reviews."""
        self._session = session

    def decide(self, question: Question) -> AuthorizerAnswer:
        """The authorizer's decision. Raises AuthorizerFailed without one, because a denial would be a guess."""
        self._session.add_secrets(*_list_secrets(question))
        try:
            answer = self._session.review(_REVIEWS, _make_review(question))
        except (NoResponse, ClusterError) as error:
            raise AuthorizerFailed(f"the authorizer check failed: {error}") from error
        status = answer.body().get("status")
        if answer.status != _CREATED or not isinstance(dig(status, "allowed"), bool):
            raise AuthorizerFailed(
                f"the authorizer check failed: the server answered {answer.status}: {answer.message()}. Scan again"
            )
        return AuthorizerAnswer(
            allowed=dig(status, "allowed") is True,
            reason=as_text(dig(status, "reason")),
            error=as_text(dig(status, "evaluationError")) or None,
        )


def may_create_reviews(session: ApiSession) -> bool:
    """Return whether this user may create reviews about other users. Raises NoResponse and ClusterError."""
    attributes: JsonObject = {"group": _GROUP, "resource": "subjectaccessreviews", "verb": "create"}
    document: JsonObject = {
        "apiVersion": _VERSION,
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = session.review(_SELF_REVIEWS, document)
    if answer.status in _NOT_SERVED:
        return False
    allowed = dig(answer.body(), "status", "allowed")
    if answer.status != _CREATED or not isinstance(allowed, bool):
        raise NoResponse(f"the server answered {answer.status}: {answer.message()}")
    return allowed


def _list_secrets(question: Question) -> Iterator[str]:
    """The extra values of the user under names of secrets."""
    return (value for key, values in question.subject.extra if names_secret(key) for value in values)


def _make_review(question: Question) -> JsonObject:
    subject = question.subject
    extra: JsonObject = {key: list(values) for key, values in subject.extra}
    spec = {
        "user": subject.username,
        "uid": subject.uid,
        "groups": list(subject.groups),
        "extra": extra,
        **_make_attributes(question),
    }
    return {
        "apiVersion": _VERSION,
        "kind": "SubjectAccessReview",
        "spec": {key: value for key, value in spec.items() if value},
    }


def _make_attributes(question: Question) -> JsonObject:
    if question.path:
        return {"nonResourceAttributes": {"path": question.path, "verb": question.verb}}
    names = {
        "verb": question.verb,
        "group": question.group,
        "version": question.version,
        "resource": question.resource,
        "subresource": question.subresource,
        "namespace": question.namespace,
        "name": question.name,
    }
    selectors = {"fieldSelector": question.field_selector, "labelSelector": question.label_selector}
    raw_selectors: JsonObject = {key: {"rawSelector": text} for key, text in selectors.items() if text}
    return {"resourceAttributes": {**{key: value for key, value in names.items() if value}, **raw_selectors}}
