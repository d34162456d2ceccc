"""The facts in a response to a dry-run write."""

from __future__ import annotations

import pytest

from scanner.parity.answers import (
    Denial,
    Response,
    is_unsendable,
    parse_warning,
    read_denial,
    read_unrelated,
    write_warning,
)

DENIED = (
    "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'limit' with binding 'limit-prod' denied request: "
    "failed expression: a\n&& b"
)
MISCONFIGURED = (
    "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: no"
)
RBAC = 'pods is forbidden: User "guest" cannot create resource "pods" in API group "" in the namespace "shop"'


def test_a_refusal_names_policy_binding_and_reason() -> None:
    """The reason is all text after the prefix, line ends included."""
    assert Denial("limit", "limit-prod", "failed expression: a\n&& b") == read_denial(Response(422, "Invalid", DENIED))


def test_a_policy_that_is_at_fault_itself_is_named_without_a_binding() -> None:
    """The bindings of such a policy are not evaluated."""
    assert Denial("p", "", "failed to configure policy: no") == read_denial(Response(422, "Invalid", MISCONFIGURED))


@pytest.mark.parametrize(
    "response",
    [Response(200), Response(201), Response(409, "AlreadyExists", "exists"), Response(422, "Invalid", DENIED)],
)
def test_responses_of_admission(response: Response) -> None:
    """An admitted write, a denial by a policy and an existing object show the decision of admission."""
    assert read_unrelated(response, "CREATE", "pods") is None


@pytest.mark.parametrize(
    ("response", "operation", "why"),
    [
        (Response(409, "Conflict", "modified"), "UPDATE", "the object was changed or deleted during the replay"),
        (Response(404, "NotFound", "not found"), "UPDATE", "the object was changed or deleted during the replay"),
        (Response(405, "MethodNotAllowed", "no"), "CREATE", "the server does not support CREATE of pods"),
        (
            Response(422, "Invalid", "spec.x: Required value"),
            "CREATE",
            "the server rejects the CREATE of pods for another reason (422 Invalid)",
        ),
        (
            Response(403, "Forbidden", 'admission webhook "w" denied the request'),
            "UPDATE",
            "the server rejects the UPDATE of pods for another reason (403 Forbidden)",
        ),
        (Response(500), "UPDATE", "the server rejects the UPDATE of pods for another reason (500)"),
    ],
)
def test_responses_without_admission(response: Response, operation: str, why: str) -> None:
    """Other responses are no verdict."""
    unrelated = read_unrelated(response, operation, "pods")  # type: ignore[arg-type]

    assert unrelated is not None
    assert (why, "") == (unrelated.reason, unrelated.permission)


def test_a_missing_right_is_named() -> None:
    """The response names the missing permission."""
    unrelated = read_unrelated(Response(403, "Forbidden", RBAC), "CREATE", "pods")

    assert unrelated is not None
    assert ("create on pods", False) == (unrelated.permission, unrelated.stale)


def test_an_object_that_exists_answers_an_update_with_a_conflict() -> None:
    """Only for a CREATE does an existing object mean an admitted write."""
    assert read_unrelated(Response(409, "AlreadyExists", "exists"), "UPDATE", "pods") is not None


def test_a_warning_names_policy_and_binding() -> None:
    """Warnings of another origin have no policy."""
    assert ("p", "b") == parse_warning(write_warning("p", "b", "no"))
    assert parse_warning("metadata.finalizers: prefer a domain-qualified name") is None


@pytest.mark.parametrize(
    ("text", "dropped"), [("plain", False), ("é\u2028", False), ("a\nb", True), ("\x07", True), ("\x85", True)]
)
def test_control_characters_keep_a_warning_from_being_sent(text: str, dropped: bool) -> None:  # noqa: FBT001 - data
    """A header cannot hold control characters of any alphabet."""
    assert dropped == is_unsendable(write_warning("p", "b", text))
