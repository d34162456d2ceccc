"""`assay token create`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from scanner.errors import UsageError

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
    from datetime import date

    from scanner.cli.output import standard_output
    from scanner.model.access_token import NAME

    if not NAME.fullmatch(name):
        raise UsageError(f"NAME {name}: use at most 64 letters, digits, dots, dashes and underscores")
    day: date | None = None
    if expires:
        try:
            day = date.fromisoformat(expires)
        except ValueError as error:
            raise UsageError(f"--expires {expires}: write a date such as 2027-03-31") from error
    token, digest = _made()
    with standard_output() as out:
        out.write(f"{token}\n")
    lines = [
        "tokens:",
        f"  - name: {name}",
        f"    sha256: {digest}",
        *([f"    expires: {day.isoformat()}"] if day else []),
    ]
    sys.stderr.write("The token is shown once. Keep it secret, and add these lines to assay.yaml:\n\n")
    sys.stderr.writelines(f"{line}\n" for line in lines)
    if day is None:
        sys.stderr.write("\nWithout --expires the token is valid until these lines are removed.\n")


def _made() -> tuple[str, str]:
    """A new token and its digest."""
    from scanner.web.access.tokens import digest_of, new_token

    token = new_token()
    return token, digest_of(token)
