"""Whom a server would take a named user for.

Source of truth: the impersonation filter of kube-apiserver 1.36. Every user but the anonymous one is authenticated, and
a service account of which no groups are named is in those of its namespace.
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
    """The user as requests show it, with the groups that nobody names because a server adds them."""
    given = groups or tuple(_account_groups(username))
    known = () if {AUTHENTICATED, UNAUTHENTICATED} & set(given) else (_everybody(username),)
    return UserInfo(username, uid, (*given, *known), extra)


def _everybody(username: str) -> str:
    return UNAUTHENTICATED if username == ANONYMOUS else AUTHENTICATED


def _account_groups(username: str) -> Iterator[str]:
    namespace, colon, name = username.removeprefix(_ACCOUNT).partition(":")
    if username.startswith(_ACCOUNT) and colon and namespace and name:
        yield "system:serviceaccounts"
        yield f"system:serviceaccounts:{namespace}"
