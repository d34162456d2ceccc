"""The flags that choose report formats. They follow from the table `scanner.report.FORMATS`.

`-o` names the format of standard output. Each format that fills a folder has a flag of its own: `--html DIR`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from scanner.report import FORMATS

STREAMS: Final = tuple(name for name, form in FORMATS.items() if form.target != "folder")
FOLDERS: Final = tuple(name for name, form in FORMATS.items() if form.target == "folder")
DEFAULT: Final = STREAMS[0]

Folders: TypeAlias = dict[str, Path]
"""Folders to write, by format."""


def _stream(name: str) -> str:
    if name not in STREAMS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, STREAMS))}.")
    return name


OutputOption = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar=f"<{'|'.join(STREAMS)}>",
        parser=_stream,
        autocompletion=lambda: list(STREAMS),
        help="Report format on standard output.",
    ),
]


def with_folder_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's parameter `folders` by one flag for each format that fills a folder."""
    parameters = list(inspect.signature(command, eval_str=True).parameters.values())
    place = [parameter.name for parameter in parameters].index("folders")

    @wraps(command)
    def run(**values: object) -> None:
        given = {name: values.pop(name) for name in FOLDERS}
        command(**values, folders={name: folder for name, folder in given.items() if folder})

    flags = [_flag(name) for name in FOLDERS]
    run.__signature__ = inspect.Signature([*parameters[:place], *flags, *parameters[place + 1 :]])  # type: ignore[attr-defined]
    return run


def _flag(name: str) -> inspect.Parameter:
    option = typer.Option(f"--{name}", metavar="DIR", help=f"Folder for the {name.upper()} report.", show_default=False)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[Path | None, option]
    )
