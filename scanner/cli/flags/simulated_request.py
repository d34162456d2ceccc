"""The flags of the simulated request: its operation and its user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.model.resource import UserInfo

_PANEL = "Simulated request"


class SimulatedOperation(StrEnum):
    """The write that a scan simulates."""

    AUTO = "auto"
    CREATE = "create"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class RequesterFlags(FlagGroup):
    """The user of the simulated requests."""

    user: Annotated[
        str,
        typer.Option(
            "--as-user",
            metavar="USER",
            help="User of the simulated requests (request.userInfo, authorizer checks). Default: the user that scans.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = ""
    user_groups: Annotated[
        tuple[str, ...],
        typer.Option(
            "--as-user-group", metavar="GROUP", help="Group of the --as-user user (repeatable).", rich_help_panel=_PANEL
        ),
    ] = ()
    user_uid: Annotated[
        str,
        typer.Option(
            "--as-user-uid",
            metavar="UID",
            help="UID of the --as-user user.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = ""
    user_extra: Annotated[
        tuple[str, ...],
        typer.Option(
            "--as-user-extra",
            metavar="KEY=VALUE",
            help="Extra user info as KEY=VALUE (repeatable).",
            rich_help_panel=_PANEL,
        ),
    ] = ()

    def requester(self) -> UserInfo | None:
        """The user of the requests, or None for the user that scans. Raises UsageError for extra info that is invalid."""
        from scanner.model.resource import build_user_info

        if not self.user:
            return None
        return build_user_info(self.user, self.user_groups, uid=self.user_uid, extra=_read_pairs(self.user_extra))


@dataclass(frozen=True, slots=True)
class RequestFlags(FlagGroup):
    """The operation and the user of the simulated requests."""

    operation: Annotated[
        SimulatedOperation,
        typer.Option(
            "--operation",
            help="Operation to simulate. auto: CREATE where a rule matches it, else a no-op UPDATE.",
            rich_help_panel=_PANEL,
        ),
    ] = SimulatedOperation.AUTO
    as_user: RequesterFlags = field(default_factory=RequesterFlags)

    def requester(self) -> UserInfo | None:
        """See RequesterFlags."""
        return self.as_user.requester()


def _read_pairs(texts: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    extra: dict[str, tuple[str, ...]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError("--as-user-extra: write KEY=VALUE")
        # A server receives extra keys as headers, and reads header names in lower case.
        extra[key.lower()] = (*extra.get(key.lower(), ()), value)
    return tuple(extra.items())
