"""A database with two scans of the example cluster, and the application over it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from starlette.testclient import TestClient

from scanner.report.runs.document import RunExpectations
from scanner.web.server.application import application
from scanner.web.views.library import Clock, ScanLibrary
from tests.command import assay_here

ROOT = Path(__file__).parents[2]
_POLICIES = ("policies", "policies-mutating", "policies-kyverno")
INCOMPLETE = 3
_TRIES = 1_000
"""Each waits a tenth of a second if numbers are missing."""


def scan_examples(url: str, home: Path, *states: str, name: str = "shop") -> None:
    """Scan states of the example cluster into a database; two example files are broken, so the scans are incomplete."""
    for state in states:
        folder = ROOT / "examples" / "cluster" / state
        policies = [flag for each in _POLICIES for flag in ("-f", str(ROOT / "examples" / each))]
        ran = assay_here(
            *("scan", "-q", "--from", str(folder), *policies, "--cluster-name", name, "--db", url), home=home
        )
        assert ran.code == INCOMPLETE, ran.stderr


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Got:
    """An answer."""

    status: int
    text: str
    headers: Mapping[str, str]

    def links(self, beginning: str) -> list[str]:
        """The addresses of links that begin with a text, in the order of the page."""
        found: list[str] = re.findall(rf'href="({re.escape(beginning)}[^"]*)"', self.text)
        return [each.replace("&amp;", "&") for each in found]

    def rows(self, beginning: str = "") -> list[str]:
        """The texts of the rows of tables whose first cell begins with a text, each cell after a bar."""
        found = [_row(row) for row in re.findall(r"<tr>(.*?)</tr>", self.text, re.DOTALL)]
        return [row for row in found if row.startswith(beginning)]

    @property
    def heading(self) -> str:
        """The text of the only heading of the first level."""
        [heading] = re.findall(r"<h1[^>]*>(.*?)</h1>", self.text, re.DOTALL)
        return " ".join(re.sub("<[^>]+>", "", heading).split())


def _row(html: str) -> str:
    cells = re.split(r"<t[hd][^>]*>", html)[1:]
    return " | ".join(" ".join(re.sub("<[^>]+>", "", cell).split()) for cell in cells)


@dataclass(frozen=True)
class Served:
    """The application, and the path of its first cluster."""

    library: ScanLibrary
    client: TestClient

    @property
    def cluster(self) -> str:
        """The path of the first cluster."""
        return f"/clusters/{self.library.key(self.library.clusters()[0])}"

    def get(self, path: str, **headers: str) -> Got:
        """Request a path, or a page of the newest scan if it does not begin with a slash."""
        address = path if path.startswith("/") else f"{self.cluster}/latest/{path}"
        answer = self.client.get(address, headers={name.replace("_", "-"): text for name, text in headers.items()})
        return Got(answer.status_code, answer.text, dict(answer.headers))


@contextmanager
def served(url: str, clock: Clock = _now, expectations: RunExpectations | None = None) -> Iterator[Served]:
    """The application over a database. Errors of the program are answers, as they are for users."""
    library = ScanLibrary(url, clock=clock, expectations=expectations)
    client = TestClient(application(library), raise_server_exceptions=False, follow_redirects=False)
    try:
        yield Served(library, client)
    finally:
        library.close()


def counted(opened: Served) -> None:
    """Wait until the numbers of every cluster are counted."""
    for _ in range(_TRIES):
        if "being counted" not in opened.get("/").text:
            return
    raise AssertionError("the numbers are not counted")
