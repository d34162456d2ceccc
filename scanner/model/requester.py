"""The user info that a server would give a named user.

Source of truth: the impersonation filter of kube-apiserver 1.36. Every user but the anonymous one is authenticated, and
a service account without explicit groups is in the groups of its namespace.
"""

from __future__ import annotations

from collections.abc import Iterator

from scanner.model.resource import UserInfo

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
_ACCOUNT = "system:serviceaccount:"


def named(
    username: str,
    groups: tuple[str, ...] = (),
    *,
    uid: str = "",
    extra: tuple[tuple[str, tuple[str, ...]], ...] = (),
) -> UserInfo:
    """The user info in a request, with the groups that a server adds."""
    given = groups or tuple(_account_groups(username))
    added = () if {AUTHENTICATED, UNAUTHENTICATED} & set(given) else (_group_of_all(username),)
    return UserInfo(username, uid, (*given, *added), extra)


def _group_of_all(username: str) -> str:
    return UNAUTHENTICATED if username == ANONYMOUS else AUTHENTICATED


def _account_groups(username: str) -> Iterator[str]:
    namespace, colon, name = username.removeprefix(_ACCOUNT).partition(":")
    if username.startswith(_ACCOUNT) and colon and namespace and name:
        yield "system:serviceaccounts"
        yield f"system:serviceaccounts:{namespace}"
