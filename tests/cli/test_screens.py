"""The whole output of six commands in terminals of three widths, after three scans of the example cluster in a month."""

from __future__ import annotations

import re
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from scanner.store import open_store
from tests.command import assay_here
from tests.demo import demo_in

WIDTHS = (60, 80, 120)
COMMANDS = {
    "summary": ("report",),
    "findings": ("findings", "--problems", "--namespace", "payments"),
    "explain": ("explain", "p-8ecdf69a6045"),
    "trend": ("trend", "--days", "31"),
    "diff": ("diff", "--limit", "3"),
    "controls": ("controls", "--by", "namespace"),
}
_MOMENTS = (
    (re.compile(r"\d{8}T\d{6}Z"), "20260331T120000Z"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "2026-03-31"),
    (re.compile(r"(?<![-\d])\d\d-\d\d(?![-\d])"), "03-31"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?"), lambda found: "12:00:00"[: len(found[0])]),
)
"""The moments of an output, which is recorded with others of the same length: a trend ends today."""


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, and a database in which the demo recorded a month ago, a week ago and today."""
    home = tmp_path_factory.mktemp("month")
    demo = demo_in(home)
    now = datetime.now(UTC)
    clock = demo.Clock(now)
    with chdir(home), open_store("assay.db", clock) as store:
        for night in (30, 7, 0):
            clock.moment = now - timedelta(days=night)
            demo.write_state(night)
            demo.record_night(store, clock, f"{clock.moment:%Y%m%dT%H%M%SZ}-{night:06x}")
    return home


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_at_a_width(month: Path, name: str, width: int, snapshot: SnapshotAssertion) -> None:
    """No line is wider than the terminal, and the text is the recorded one."""
    variables = {"COLUMNS": str(width), "NO_COLOR": "1", "ASSAY_CONFIG": "examples/assay.yaml"}
    ran = assay_here(*COMMANDS[name], "--db", "assay.db", home=month, variables=variables)
    text = "\n".join(filter(None, (ran.stdout.decode(), ran.stderr)))
    for moment, other in _MOMENTS:
        text = moment.sub(other, text)

    assert 0 == ran.code
    assert [] == [line for line in text.splitlines() if cell_len(line) > width]
    assert snapshot == text
