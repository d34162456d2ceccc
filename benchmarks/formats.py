"""Row `formats`: every format for a stream, of 100,000 findings: seconds from exec to exit, peak memory and bytes.

The memory of a format must not grow with findings, so each is compared with its own at a tenth of them. `openmetrics` has counts
alone: `csv` reads all findings, and is its anchor.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.live import ASSAY, rounds, sizes
from benchmarks.processes import peak, timed
from benchmarks.report_cluster import write_cluster
from scanner.report import FORMATS

_NAMES: Final = tuple(name for name, form in FORMATS.items() if form.target != "folder")
_SINGLE: Final = "html-single"
"""The format for small scans: it refuses a large one."""
_GROWTH: Final = 1.25
_COUNTS: Final = "openmetrics"
_ANCHOR: Final = "csv"


def main() -> None:
    """Print a line for each format; the ratio is the largest growth of memory by its goal."""
    names = [name for name in _NAMES if name != _SINGLE]
    with tempfile.TemporaryDirectory() as folder:
        few, many = (_scanned(Path(folder) / str(number), number) for number in sizes("10000,100000"))
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds()):
            for name in names:
                seconds[name].append(timed(_command(many, name), many))
        growth = {}
        for name in names:
            before, after = (peak(_command(home, name), home) for home in (few, many))
            growth[name] = after / before
            size = _written(many, name).stat().st_size
            print(
                f"{name}: {median(seconds[name]):.1f} s, peak {after:.0f} MiB (a tenth: {before:.0f}), {size:,} bytes"
            )
    share = median(seconds[_COUNTS]) / median(seconds[_ANCHOR])
    worst = max(growth.values())
    print(
        f"  {_COUNTS} takes {share:.2f} of the time of {_ANCHOR}; memory grows at most to {worst:.2f}, goal {_GROWTH}"
    )
    print(f"bench=formats ratio={worst / _GROWTH:.2f} goal=1.00 rounds={rounds()}")


def _scanned(home: Path, findings: int) -> Path:
    home.mkdir()
    write_cluster(home / "cluster", findings)
    timed([str(ASSAY), "scan", "--from", str(home / "cluster"), "--db", str(home / "assay.db"), "-q"], home)
    return home


def _command(home: Path, name: str) -> list[str]:
    """The export of a format, beside a table on standard output for whose document every format waits."""
    export = f"{name}={_written(home, name)}"
    return [str(ASSAY), "report", "--db", str(home / "assay.db"), "-o", "table", "--export", export]


def _written(home: Path, name: str) -> Path:
    return home / f"report.{name}"
