"""The formats of a report: the flags that choose them, from the table `scanner.report.FORMATS`, and their rendering.

`-o` names the format of standard output. `--export FORMAT=PATH` writes a format into a file or folder, and some formats
have a flag of their own, too: `--html DIR`. All of them are checked before a scan begins.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.terminal.stdout import standard_output
from scanner.errors import UsageError
from scanner.report import FORMATS

if TYPE_CHECKING:
    from scanner.report.document.document import Document
    from scanner.report.text.screen import Screen

STREAMS: Final = tuple(name for name, form in FORMATS.items() if form.target != "folder")
FLAGS: Final = {name: form.flag.replace("-", "_") for name, form in FORMATS.items() if form.flag}
"""The formats with a flag of their own, and the names of its parameter."""
DEFAULT: Final = STREAMS[0]
STDIN: Final = Path("-")


@dataclass(frozen=True, slots=True)
class Export:
    """A format and the file or folder to write it into."""

    name: str
    path: Path


def _check_stream(name: str) -> str:
    if name not in STREAMS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, STREAMS))}.")
    return name


ControlsOption = Annotated[
    tuple[Path, ...],
    typer.Option(
        "--controls",
        metavar="PATH",
        help="Report by control: a file or folder of control mappings, or the name of a shipped one such as cis-kubernetes-5 (repeatable).",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class ExportFlags(FlagGroup):
    """`--export`, and the flags of the formats that have one of their own, as the user typed them."""

    texts: tuple[str, ...]
    places: Mapping[str, Path]
    """The files and folders of the formats with a flag of their own, by format."""

    @classmethod
    def flags(cls) -> Iterator[inspect.Parameter]:
        """See FlagGroup. The flags follow from the table of the formats."""
        yield _make_export_flag()
        yield from map(_make_own_flag, FLAGS)

    @classmethod
    def take(cls, values: dict[str, Any]) -> Self:
        """See FlagGroup."""
        texts = tuple(values.pop("export") or ())
        places = {name: values.pop(parameter) for name, parameter in FLAGS.items()}
        return cls(texts, {name: place for name, place in places.items() if place})

    def typed(self) -> list[str]:
        """The flags that have a value."""
        return [*(["--export"] if self.texts else []), *(f"--{FORMATS[name].flag}" for name in self.places)]

    def read(self) -> tuple[Export, ...]:
        """The exports. Raises BadParameter for one that cannot be written, and for two with one place."""
        exports = [_read_export(text) for text in self.texts]
        return _check_exports((*exports, *(Export(name, place) for name, place in self.places.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFlags(FlagGroup):
    """The format of standard output, and the exports."""

    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar=f"<{'|'.join(STREAMS)}>",
            parser=_check_stream,
            autocompletion=lambda: list(STREAMS),
            help="Report format on standard output.",
        ),
    ] = DEFAULT
    exports: ExportFlags

    def outputs(self) -> ReportOutputs:
        """The places of the report. Raises BadParameter for an export that cannot be written."""
        return ReportOutputs(self.output, self.exports.read())


@dataclass(frozen=True, slots=True)
class ReportOutputs:
    """The format of a report on standard output, and the formats in files and folders."""

    stdout: str
    exports: tuple[Export, ...]

    @property
    def has_pages(self) -> bool:
        """Return whether the pages of the HTML report are among the exports."""
        return any(export.name == "html" for export in self.exports)

    def reject_without_files(self, source: Sequence[Path]) -> None:
        """Reject a format of findings in files, if a scan has none. Raises UsageError."""
        if any(place != STDIN for place in source):
            return
        if any(FORMATS[name].needs_files for name in (self.stdout, *(export.name for export in self.exports))):
            from scanner.report.formats.sarif import NO_FILES, STDIN_ALONE

            raise UsageError(STDIN_ALONE if source else NO_FILES)

    def write(self, document: Document, screen: Screen) -> None:
        """Render every format: that of standard output, which carries nothing else, then the exports.

        Raises UsageError for exports that could not be written, after everything else is.
        """
        _write_stdout(document, self.stdout, screen)
        _write_exports(document, self.exports)


def _make_export_flag() -> inspect.Parameter:
    option = typer.Option(
        "--export",
        metavar="FORMAT=PATH",
        autocompletion=lambda: [f"{name}=" for name in FORMATS],
        help=f"Also write the report into a file or folder (repeatable). Formats: {', '.join(FORMATS)}.",
        show_default=False,
    )
    return inspect.Parameter(
        "export", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[list[str] | None, option]
    )


def _make_own_flag(name: str) -> inspect.Parameter:
    folder = FORMATS[name].target == "folder"
    place = "DIR" if folder else "FILE"
    option = typer.Option(
        f"--{FORMATS[name].flag}",
        metavar=place,
        help=f"{'Folder' if folder else 'File'} for the report; the same as --export {name}={place}.",
        show_default=False,
    )
    return inspect.Parameter(
        FLAGS[name], inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[Path | None, option]
    )


def _read_export(text: str) -> Export:
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise typer.BadParameter(f"{text!r} is not FORMAT=PATH, such as json=report.json.", param_hint="--export")
    if name not in FORMATS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, FORMATS))}.", param_hint="--export")
    if path == "-":
        raise typer.BadParameter(f"{text!r} names no file: write to standard output with -o.", param_hint="--export")
    return Export(name, Path(path).expanduser())


def _check_exports(exports: Iterable[Export]) -> tuple[Export, ...]:
    """The exports, if each can be written to a place of its own."""
    places: dict[Path, Export] = {}
    for export in exports:
        place = export.path.expanduser().resolve()
        if (other := places.setdefault(place, export)) is not export:
            raise typer.BadParameter(
                f"{other.name} and {export.name} would both be written to {export.path}.", param_hint="--export"
            )
        _reject_unwritable(export)
    return tuple(places.values())


def _reject_unwritable(export: Export) -> None:
    if FORMATS[export.name].target == "folder":
        from scanner.report.output import reject_occupied

        reject_occupied(export.path)
        return
    if export.path.is_dir():
        raise typer.BadParameter(f"{export.path} is a folder: name a file for {export.name}.", param_hint="--export")
    if not export.path.resolve().parent.is_dir():
        raise typer.BadParameter(f"The folder of {export.path} does not exist: create it.", param_hint="--export")


def _write_stdout(document: Document, name: str, screen: Screen) -> None:
    """Render the format of that name onto standard output, which carries nothing else."""
    report_format = FORMATS[name]
    with standard_output() as out:
        if name == DEFAULT:
            from scanner.report.formats import table

            table.render(document, out, screen=screen)
            return
        report_format.render(document, out.buffer if report_format.target == "binary" else out)


def _write_exports(document: Document, exports: Iterable[Export]) -> None:
    """Render each format into its file or folder, and print where it is.

    Raises UsageError for what could not be written, after everything else is.
    """
    failures: list[str] = []
    for export in exports:
        try:
            _write_export(document, export)
        except UsageError as error:
            failures.append(str(error))
        else:
            sys.stderr.write(f"Report: {export.path / FORMATS[export.name].first_page}\n")
    if failures:
        raise UsageError(" ".join(failures))


def _write_export(document: Document, export: Export) -> None:
    from scanner.report.output import binary_file, text_file

    report_format = FORMATS[export.name]
    match report_format.target:
        case "folder":
            report_format.render(document, export.path)
        case "binary":
            with binary_file(export.path) as binary:
                report_format.render(document, binary)
        case "text":
            with text_file(export.path) as text:
                report_format.render(document, text)
