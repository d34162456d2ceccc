"""The flags of the simulated request: its operation and its user."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.model.resource import UserInfo

_PANEL = "Simulated request"


class Operation(StrEnum):
    """The write that a scan simulates."""

    AUTO = "auto"
    CREATE = "create"
    UPDATE = "update"


OperationOption = Annotated[
    Operation,
    typer.Option(
        "--operation",
        help="Operation to simulate. auto: CREATE where a rule matches it, else a no-op UPDATE.",
        rich_help_panel=_PANEL,
    ),
]
UserOption = Annotated[
    str,
    typer.Option(
        "--as-user",
        metavar="USER",
        help="User of the simulated requests (request.userInfo, authorizer checks). Default: the user that scans.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
GroupsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--as-user-group", metavar="GROUP", help="Group of the --as-user user (repeatable).", rich_help_panel=_PANEL
    ),
]
UidOption = Annotated[
    str,
    typer.Option(
        "--as-user-uid", metavar="UID", help="UID of the --as-user user.", rich_help_panel=_PANEL, show_default=False
    ),
]
ExtraOption = Annotated[
    list[str] | None,
    typer.Option(
        "--as-user-extra",
        metavar="KEY=VALUE",
        help="Extra user info as KEY=VALUE (repeatable).",
        rich_help_panel=_PANEL,
    ),
]


def requester(user: str, groups: list[str] | None, uid: str, extra: list[str] | None) -> UserInfo | None:
    """The user of the simulated requests, or None for the user that scans. Raises UsageError for extra info that is invalid."""
    from scanner.model.resource import build_user_info

    if not user:
        return None
    return build_user_info(user, tuple(groups or ()), uid=uid, extra=_pairs(extra or []))


def _pairs(texts: list[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    extra: dict[str, tuple[str, ...]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError("--as-user-extra: write KEY=VALUE")
        # A server receives extra keys as headers, and reads header names in lower case.
        extra[key.lower()] = (*extra.get(key.lower(), ()), value)
    return tuple(extra.items())
