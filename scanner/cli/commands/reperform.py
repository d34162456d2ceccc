"""`assay reperform`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from scanner.cli.terminal.stdout import Code, sentences

EPILOG: Final = (
    "Exit codes: 0 every verdict is reproduced · 1 a verdict differs · 2 usage, or a packet that is damaged or of another version · "
    "3 the redaction prevents some of the checks, and all others are equal."
)
_DIFFERS: Final = 1
_REDACTED: Final = 3


def command(
    packet: Annotated[Path, typer.Argument(metavar="PACKET", help="File that `assay sample --snapshot` made.")],
) -> None:
    """Evaluate the items of a packet again and compare the verdicts, without network and database."""
    from scanner import __version__
    from scanner.cli.scanning.packets import reperform
    from scanner.proof.reperformance import ItemState, count_states, describe

    result = reperform(packet)
    sentences(
        [
            f"Packet {packet} has the SHA-256 {result.sha256}, and is whole.",
            f"It has {len(result.results)} items of {result.subject}; the rule draws the same items again.",
            "sample.csv and items/ agree with it; index.html, rule.txt and the history of findings were not compared.",
            f"Made by Assay {result.made_by}, evaluated again by Assay {__version__}.",
            "",
            *(Code(line) if line.startswith(" ") else line for line in describe(result.results)),
        ]
    )
    counts = count_states(result.results)
    if counts[ItemState.DIFFERS]:
        raise typer.Exit(_DIFFERS)
    raise typer.Exit(_REDACTED if counts[ItemState.REDACTED] else 0)
