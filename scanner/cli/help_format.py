"""Help with the options in groups, in plain text that a page of documentation can show."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from typer.core import TyperCommand


class Formatter(Protocol):
    """The part of click's formatter that writes lists of options."""

    def section(self, name: str) -> AbstractContextManager[None]:
        """A titled block."""
        ...

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Terms and their meanings."""
        ...


class GroupedCommand(TyperCommand):
    """A command whose help groups the options by `rich_help_panel`, in order of appearance."""

    def format_options(self, ctx: Any, formatter: Formatter) -> None:
        """Write one block for each group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                title = "Arguments" if param.param_type_name == "argument" else _group(param)
                groups.setdefault(title, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _group(param: object) -> str:
    return getattr(param, "rich_help_panel", None) or "Options"
