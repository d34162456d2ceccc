"""The user info that a server would give a named user."""

from __future__ import annotations

import pytest

from scanner.model.resource import build_user_info


@pytest.mark.parametrize(
    ("username", "groups", "expected"),
    [
        ("bob", (), ("system:authenticated",)),
        ("bob", ("dev",), ("dev", "system:authenticated")),
        ("bob", ("system:authenticated",), ("system:authenticated",)),
        ("system:anonymous", (), ("system:unauthenticated",)),
        ("bob", ("system:unauthenticated",), ("system:unauthenticated",)),
        (
            "system:serviceaccount:shop:web",
            (),
            ("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"),
        ),
        ("system:serviceaccount:shop:web", ("dev",), ("dev", "system:authenticated")),
        ("system:serviceaccount:shop", (), ("system:authenticated",)),
    ],
)
def test_a_server_adds_groups(username: str, groups: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """A server adds these groups when it impersonates a user."""
    assert expected == build_user_info(username, groups).groups


def test_uid_and_extra_are_kept() -> None:
    """The UID and the extra info of an authenticator are unchanged."""
    user = build_user_info("bob", uid="u-1", extra=(("scopes", ("a", "b")),))
    assert ("bob", "u-1", (("scopes", ("a", "b")),)) == (user.username, user.uid, user.extra)
