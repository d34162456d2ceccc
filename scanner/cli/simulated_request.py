"""The request that a scan simulates: which operation, and who makes it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.model.resource import UserInfo

_PANEL = "Simulated request"


class Operation(StrEnum):
    """The write of an object that is simulated."""

    AUTO = "auto"
    CREATE = "create"
    UPDATE = "update"


OperationOption = Annotated[
    Operation,
    typer.Option(
        "--operation",
        help="The write that is simulated: auto is CREATE where a rule has it, else an UPDATE that changes nothing.",
        rich_help_panel=_PANEL,
    ),
]
UserOption = Annotated[
    str,
    typer.Option(
        "--as-user",
        metavar="USER",
        help="Who is said to make the requests (request.userInfo, authorizer). Default: the identity that scans.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
GroupsOption = Annotated[
    list[str] | None,
    typer.Option("--as-user-group", metavar="GROUP", help="A group of that user (repeatable).", rich_help_panel=_PANEL),
]
UidOption = Annotated[
    str,
    typer.Option(
        "--as-user-uid", metavar="UID", help="The UID of that user.", rich_help_panel=_PANEL, show_default=False
    ),
]
ExtraOption = Annotated[
    list[str] | None,
    typer.Option(
        "--as-user-extra",
        metavar="KEY=VALUE",
        help="What an authenticator adds about that user (repeatable).",
        rich_help_panel=_PANEL,
    ),
]


def requester(user: str, groups: list[str] | None, uid: str, extra: list[str] | None) -> UserInfo | None:
    """Who makes the requests, or None for the identity that scans. Raises UsageError for facts about nobody."""
    from scanner.model.requester import named

    given = {"--as-user-group": groups, "--as-user-uid": uid, "--as-user-extra": extra}
    if not user:
        for flag, value in given.items():
            if value:
                raise UsageError(f"{flag} needs --as-user: name the user that it is about")
        return None
    return named(user, tuple(groups or ()), uid=uid, extra=_pairs(extra or []))


def _pairs(texts: list[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError(f"--as-user-extra {text}: write KEY=VALUE")
        # Extra keys come to a server as headers, which are lower case there.
        found[key.lower()] = (*found.get(key.lower(), ()), value)
    return tuple(found.items())
