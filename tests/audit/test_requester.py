"""Whom a server would take a named user for."""

from __future__ import annotations

import pytest

from scanner.model.requester import named


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
def test_groups_that_nobody_names(username: str, groups: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """A server adds them when it impersonates somebody."""
    assert expected == named(username, groups).groups


def test_the_rest_is_kept() -> None:
    """The UID and what an authenticator adds."""
    user = named("bob", uid="u-1", extra=(("scopes", ("a", "b")),))
    assert ("bob", "u-1", (("scopes", ("a", "b")),)) == (user.username, user.uid, user.extra)
