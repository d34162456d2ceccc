"""Row 8: the HTML report of 10,000 and 100,000 findings, and the list of the larger one in a browser.

Measured are `assay report --html` from exec to exit, its peak memory, the bytes on disk, the largest page, and in a Chromium that
ASSAY_TEST_CHROMIUM names the time until the list can be used, and until 100,000 findings are filtered for the first time.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from playwright.sync_api import sync_playwright

from benchmarks.live import ASSAY, rounds, sizes
from benchmarks.processes import peak, timed
from benchmarks.report_cluster import write_cluster

_SECONDS: Final = 20.0
_MEBIBYTES: Final = 200.0
_DISK: Final = 480.0
_GROWTH: Final = 11.0
_PAGE: Final = 500_000
_BROWSER: Final = 1.0
_MEBIBYTE: Final = 1 << 20
_FILTER: Final = """
() => new Promise((done) => {
  const caption = document.querySelector("caption"), begun = performance.now();
  new MutationObserver(() => {
    if (caption.textContent.endsWith("that match")) done((performance.now() - begun) / 1000);
  }).observe(caption, { childList: true });
  location.hash = "#action=Deny&text=billing";
})
"""


@dataclass(frozen=True)
class _Size:
    """A stored scan with so many findings, and the seconds of its reports."""

    findings: int
    home: Path
    seconds: list[float]

    @property
    def folder(self) -> Path:
        return self.home / "report"

    @property
    def command(self) -> list[str]:
        return [str(ASSAY), "report", "--db", str(self.home / "assay.db"), "--html", str(self.folder), "-o", "table"]


def main() -> None:
    """Measure the sizes in turns, and the last one, the largest, in all other respects."""
    with tempfile.TemporaryDirectory() as folder:
        measured = [_scanned(Path(folder) / str(number), number) for number in sizes("10000,100000")]
        for _ in range(rounds()):
            for size in measured:
                size.seconds.append(timed(size.command, size.home))
        for size in measured:
            times = ", ".join(f"{each:.2f}" for each in size.seconds)
            print(f"{size.findings:,} findings: {median(size.seconds):.2f} s [{times}]")
        first, last = measured[0], measured[-1]
        growth = median(last.seconds) / median(first.seconds)
        print(
            f"  {growth:.1f} times as long for {last.findings / first.findings:.0f} times the findings, goal {_GROWTH}"
        )
        worst = max(median(last.seconds) / _SECONDS, growth / _GROWTH, *_measured(last))
        print(f"bench=8 ratio={worst:.2f} goal=1.00 rounds={rounds()}")


def _scanned(home: Path, findings: int) -> _Size:
    home.mkdir()
    write_cluster(home / "cluster", findings)
    timed([str(ASSAY), "scan", "--from", str(home / "cluster"), "--db", str(home / "assay.db"), "-q"], home)
    return _Size(findings, home, [])


def _measured(size: _Size) -> list[float]:
    """The shares of the goals for memory, disk, pages and browser."""
    memory = peak(size.command, size.home)
    files = {path: path.stat().st_size for path in size.folder.rglob("*") if path.is_file()}
    disk = sum(files.values()) / _MEBIBYTE
    largest = max(bytes_ for path, bytes_ in files.items() if path.suffix == ".html")
    print(f"  peak {memory:.0f} MiB, goal {_MEBIBYTES:.0f}; {disk:.0f} MiB in {len(files):,} files, goal {_DISK:.0f}")
    print(f"  largest page {largest:,} bytes, goal {_PAGE:,}")
    ready, filtered = _in_browser(size.folder)
    print(f"  list usable after {ready:.2f} s, filtered after {filtered:.2f} s, goals {_BROWSER:.0f} s")
    return [memory / _MEBIBYTES, disk / _DISK, largest / _PAGE, ready / _BROWSER, filtered / _BROWSER]


def _in_browser(folder: Path) -> tuple[float, float]:
    """The medians of the seconds until the filter is shown, and of those from a filter to its rows, data loaded."""
    chromium = os.environ.get("ASSAY_TEST_CHROMIUM")
    if not chromium:
        sys.exit("Set ASSAY_TEST_CHROMIUM to a Chromium.")
    ready, filtered = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(rounds()):
            page = browser.new_page()
            started = time.perf_counter()
            page.goto((folder / "findings.html").as_uri())
            page.locator(".filter").wait_for()
            ready.append(time.perf_counter() - started)
            filtered.append(float(page.evaluate(_FILTER)))
            page.close()
        browser.close()
    return median(ready), median(filtered)
