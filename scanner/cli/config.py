"""`assay config view`, `check` and `init`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.catalog import DEFINERS, settings
from scanner.cli.configured import ConfigOption
from scanner.cli.output import Form, FormOption
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.config.configuration import Configuration, Value

_EPILOG: Final = "Exit codes: 0 no error · 2 an error in the file or in a variable."
_FILE: Final = Path("assay.yaml")

application = typer.Typer(
    help="Print, check or begin the configuration: assay.yaml and ASSAY_ variables.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@application.callback()
def _root() -> None:
    """Print, check or begin the configuration: assay.yaml and ASSAY_ variables."""


@application.command(epilog=_EPILOG)
def view(
    config: ConfigOption = None,
    given: Annotated[bool, typer.Option("--given", help="Only values of the file and of variables.")] = False,
    output: FormOption = Form.TABLE,
) -> None:
    """Print the value of every setting, and its source. Secrets are masked."""
    from scanner.config.configuration import read

    configuration = read(settings(), str(config or ""), os.environ)
    values = list(configuration.given() if given else configuration.values.values())
    if output is Form.JSON:
        _print_json(configuration, values)
    else:
        _print_table(configuration, values)


@application.command(epilog=_EPILOG)
def check(config: ConfigOption = None) -> None:
    """Check the file and the variables, and print every error."""
    from scanner.cli.terminal import text
    from scanner.config.configuration import errors, read

    found = list(errors(settings(), str(config or ""), os.environ))
    if not found:
        configuration = read(settings(), str(config or ""), os.environ)
        found = list(_conflicts(configuration))
    if found:
        sys.stderr.writelines(f"assay: {error}\n" for error in found)
        raise typer.Exit(UsageError.exit_code)
    given = sum(1 for _ in configuration.given())
    place = configuration.path or "There is no file"
    text([f"{place}: no error. {given} of {len(configuration.values)} keys of flags have a value."])


@application.command()
def init(
    path: Annotated[Path, typer.Argument(metavar="[PATH]", help="File to write, which must not exist.")] = _FILE,
) -> None:
    """Write a file with every key, its default and its help, as comments to begin with."""
    from scanner.cli.terminal import text
    from scanner.config.example import example, schema_path

    _write(path, example(settings(), schema_path().as_uri()))
    text([f"{path} has every key as a comment. Remove the # of those to set, then run: assay config check"])


def _write(path: Path, content: str) -> None:
    """Write a new file. Raises UsageError for a file that exists or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError as error:
        raise UsageError(f"{path} exists: name another file, or remove it") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _conflicts(configuration: Configuration) -> Iterator[UsageError]:
    """The errors that a command without flags would have: values that exclude each other, or need another one."""
    from scanner.cli.flags import flags_of
    from scanner.cli.sources import Sources

    seen: set[str] = set()
    for command in DEFINERS.values():
        try:
            Sources(flags_of(command), {}, configuration=configuration)
        except UsageError as error:
            if str(error) not in seen:
                seen.add(str(error))
                yield error


def _print_table(configuration: Configuration, values: list[Value]) -> None:
    from scanner.cli.terminal import table, text
    from scanner.config.configuration import shown

    table(
        ("KEY", "VALUE", "SOURCE"),
        ((value.setting.key, shown(value) or "-", value.place or "default") for value in values),
    )
    if configuration.path:
        text(["", f"File {configuration.path}, {configuration.digest}"])


def _print_json(configuration: Configuration, values: list[Value]) -> None:
    import orjson

    from scanner.cli.output import standard_output
    from scanner.config.configuration import masked_value

    document = {
        "path": configuration.path,
        "digest": configuration.digest,
        "settings": [
            {
                "key": value.setting.key,
                "variable": value.setting.variable,
                "flag": value.setting.flag,
                "value": masked_value(value),
                "source": value.source.name.lower(),
                "place": value.place,
            }
            for value in values
        ],
    }
    with standard_output() as out:
        out.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
