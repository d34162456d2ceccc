"""`assay config view`, `check` and `init`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.commands.catalog import DEFINERS, find_key, list_settings
from scanner.cli.commands.configured import ConfigOption
from scanner.cli.terminal.stdout import FormOption, OutputForm
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.config.configuration import Configuration
    from scanner.model.json import Json

_EPILOG: Final = "Exit codes: 0 no error · 2 an error in the file or in a variable."
_FILE: Final = Path("assay.yaml")


@dataclass(frozen=True, slots=True)
class _ConfigurationRow:
    """A key with its value as it may be shown. A setting of reports has neither variable nor flag; a value may be None."""

    key: str
    variable: str
    flag: str
    value: Json
    source: str
    place: str

    @property
    def text(self) -> str:
        """The value in one line."""
        match self.value:
            case None:
                return "-"
            case str():
                return self.value
            case list() if all(isinstance(item, str) for item in self.value):
                return ", ".join(map(str, self.value)) or "-"
            case _:
                return json.dumps(self.value, ensure_ascii=False)


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
    output: FormOption = OutputForm.TABLE,
) -> None:
    """Print the value of every setting, and its source. Values that can be secret are withheld."""
    from scanner.config.configuration import read

    configuration = read(list_settings(), str(config or ""), os.environ)
    rows = _list_rows(configuration, given=given)
    if output is OutputForm.JSON:
        _print_json(configuration, rows)
    else:
        _print_table(configuration, rows)


@application.command(epilog=_EPILOG)
def check(config: ConfigOption = None) -> None:
    """Check the file and the variables, and print every error."""
    from scanner.cli.terminal.stdout import text
    from scanner.config.configuration import list_errors, read

    found = list(list_errors(list_settings(), str(config or ""), os.environ))
    if not found:
        configuration = read(list_settings(), str(config or ""), os.environ)
        found = list(_find_conflicts(configuration))
    if found:
        sys.stderr.writelines(f"assay: {error}\n" for error in found)
        raise typer.Exit(UsageError.exit_code)
    given = sum(1 for _ in configuration.list_given())
    place = configuration.path or "There is no file"
    text([f"{place}: no error. {given} of {len(configuration.values)} keys of flags have a value."])


@application.command()
def init(
    path: Annotated[Path, typer.Argument(metavar="[PATH]", help="File to write, which must not exist.")] = _FILE,
) -> None:
    """Write a file with every key, its default and its help, as comments to begin with."""
    from scanner.cli.terminal.stdout import text
    from scanner.config.example import find_schema, write_example

    _write(path, write_example(list_settings(), find_schema().as_uri()))
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


def _find_conflicts(configuration: Configuration) -> Iterator[UsageError]:
    """The errors that a command without flags would have: values that exclude each other, or need another one."""
    from scanner.config.flags import list_flags
    from scanner.config.sources import Sources

    seen: set[str] = set()
    for command in DEFINERS.values():
        try:
            Sources(list_flags(command), {}, find_key, configuration=configuration)
        except UsageError as error:
            if str(error) not in seen:
                seen.add(str(error))
                yield error


def _list_rows(configuration: Configuration, *, given: bool) -> Iterator[_ConfigurationRow]:
    """Every value, or those that are given: of the settings that follow from flags, and of the settings of reports."""
    from scanner.config.configuration import mask_value
    from scanner.config.masking import mask_document
    from scanner.config.unflagged import UNFLAGGED_KEYS

    for value in configuration.list_given() if given else configuration.values.values():
        setting = value.setting
        yield _ConfigurationRow(
            setting.key, setting.variable, setting.flag, mask_value(value), value.source.name, value.place
        )
    for each in UNFLAGGED_KEYS:
        if each.key in configuration.unflagged_values:
            written, place = configuration.unflagged_values[each.key]
            yield _ConfigurationRow(each.key, "", "", mask_document(written, each.key), "FILE", str(place))
        elif not given:
            yield _ConfigurationRow(each.key, "", "", each.default, "DEFAULT", "")


def _print_table(configuration: Configuration, rows: Iterable[_ConfigurationRow]) -> None:
    from scanner.cli.terminal.stdout import table, text

    # The value comes last: it may be long, and nothing is as wide as the longest value.
    table(("KEY", "SOURCE", "VALUE"), ((row.key, row.place or "default", row.text) for row in rows))
    if configuration.path:
        text(["", f"File {configuration.path}, {configuration.digest}"])


def _print_json(configuration: Configuration, rows: Iterable[_ConfigurationRow]) -> None:
    import orjson

    from scanner.cli.terminal.stdout import standard_output

    document = {
        "path": configuration.path,
        "digest": configuration.digest,
        "settings": [
            {
                "key": row.key,
                "variable": row.variable or None,
                "flag": row.flag or None,
                "value": row.value,
                "source": row.source.lower(),
                "place": row.place,
            }
            for row in rows
        ],
    }
    with standard_output() as out:
        out.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
