"""`assay token create`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.errors import UsageError

if TYPE_CHECKING:
    from datetime import date

application = typer.Typer(help="Make bearer tokens for `assay serve`.", no_args_is_help=True, rich_markup_mode=None)


@application.callback()
def _root() -> None:
    """Make bearer tokens for `assay serve`."""


@application.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the token in the access log.")],
    expires: Annotated[
        str,
        typer.Option(
            "--expires", metavar="DATE", help="Last day on which the token is valid (in UTC).", show_default=False
        ),
    ] = "",
) -> None:
    """Make a token. Print it on standard output, once, and the lines for assay.yaml on stderr."""
    from scanner.cli.terminal.stdout import standard_output

    _reject_wrong(name)
    day = _read_day(expires)
    token, digest = _make_token()
    with standard_output() as out:
        out.write(f"{token}\n")
    entry = {"name": name, "sha256": digest, **({"expires": day.isoformat()} if day else {})}
    # Quoted, because YAML reads some names as numbers.
    fields = [f'{key}: "{value}"' for key, value in entry.items()]
    lines = ["tokens:", f"  - {fields[0]}", *(f"    {each}" for each in fields[1:])]
    sys.stderr.write("The token is shown once. Keep it secret, and add these lines to assay.yaml:\n\n")
    sys.stderr.writelines(f"{line}\n" for line in lines)
    if day is None:
        sys.stderr.write("\nWithout --expires the token is valid until these lines are removed.\n")


def _reject_wrong(name: str) -> None:
    from scanner.model.access_token import NAME

    if not NAME.fullmatch(name):
        raise UsageError(f"NAME {name}: use at most 64 letters, digits, dots, dashes and underscores")


def _read_day(text: str) -> date | None:
    """The day of a flag; None without it. Raises UsageError."""
    from datetime import date

    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise UsageError(f"--expires {text}: write a date such as 2027-03-31") from error


def _make_token() -> tuple[str, str]:
    """A new token and its digest."""
    from scanner.web.access.tokens import digest_of, new_token

    token = new_token()
    return token, digest_of(token)
