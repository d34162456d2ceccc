"""The summary for a terminal."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.model.scan import ScanRecord, ScanState
from scanner.report.document import document_of
from scanner.report.table import render

from .records import hostile_record, large_record, partial_record, scan, small_record


class Terminal(StringIO):
    """A file that claims to be a terminal."""

    def isatty(self) -> bool:
        """It does."""
        return True


def shown(record: ScanRecord, **environ: str) -> str:
    """The summary, as a file gets it."""
    out = StringIO()
    render(document_of(record), out, environ=environ)
    return out.getvalue()


def test_complete_scan(snapshot: SnapshotAssertion) -> None:
    """What is said of a complete scan."""
    assert shown(small_record()) == snapshot


def test_incomplete_scan(snapshot: SnapshotAssertion) -> None:
    """What is said of an incomplete scan: first what was not looked at."""
    assert shown(partial_record()) == snapshot


@pytest.mark.parametrize(
    ("state", "word"),
    [(ScanState.PARTIAL, "INCOMPLETE"), (ScanState.FAILED, "FAILED"), (ScanState.RUNNING, "NOT FINISHED")],
)
def test_state_comes_first(state: ScanState, word: str) -> None:
    """The state of an unfinished scan stands before any number."""
    assert word in shown(replace(small_record(), scan=scan(state))).splitlines()[1]


def test_plain_text_in_a_file() -> None:
    """A file gets no escape sequence."""
    assert "\x1b" not in shown(small_record())


def test_colours_on_a_terminal() -> None:
    """A terminal gets colours, unless NO_COLOR is set."""
    coloured, plain = Terminal(), Terminal()
    render(document_of(small_record()), coloured, environ={"TERM": "xterm-256color"})
    render(document_of(small_record()), plain, environ={"TERM": "xterm-256color", "NO_COLOR": "1"})
    assert "\x1b[1;32m" in coloured.getvalue()
    assert "32m" not in plain.getvalue()


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_no_line_is_wider_than_asked(columns: int) -> None:
    """The summary keeps to the width that COLUMNS gives, hostile names included."""
    lines = shown(hostile_record(), COLUMNS=str(columns)).splitlines()
    assert max(len(line) for line in lines) <= columns


def test_hostile_names_stay_text() -> None:
    """Escape sequences are spelled out, markup is not interpreted, line ends do not break a row."""
    text = shown(hostile_record(), COLUMNS="300")
    assert [] == [mark for mark in text if not (mark.isprintable() or mark == "\n")]
    for name in (r"\x1b[31mred\x1b[0m\x07", "[bold red]markup[/bold red]", r"line one\nline two", r"\u202egnp.exe"):
        assert name in text


def test_a_terminal_that_knows_only_ascii() -> None:
    """What the encoding lacks is escaped, and nothing raises."""
    raw = BytesIO()
    out = TextIOWrapper(raw, encoding="ascii")
    record = small_record()
    named = replace(record.scan, cluster=replace(record.scan.cluster, name="häfen"))
    render(document_of(replace(record, scan=named)), out, environ={})
    out.flush()
    assert b"h\\xe4fen" in raw.getvalue()


def test_long_lists_say_what_they_leave_out() -> None:
    """A cut list names the number of what it shows, and of all."""
    text = shown(large_record(400, policies=40, namespaces=30))
    assert "25 of 40 policies shown" in text
    assert "25 of 30 namespaces shown" in text


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"policies": ()}, "No policies were found"),
        ({"coverage": ()}, "No bound policy matched an object"),
    ],
)
def test_nothing_to_do_is_said(change: dict[str, object], advice: str) -> None:
    """Without policies or objects the summary says so, and what to do."""
    record = replace(small_record(), tallies={}, findings=lambda: iter(()), **change)  # type: ignore[arg-type]
    assert advice in shown(record)


def test_no_binding_is_said() -> None:
    """Policies that nothing binds are said to be so, with the way to preview one."""
    record = small_record()
    unbound = tuple(replace(policy, bindings=()) for policy in record.policies)
    assert "--assume-bound" in shown(replace(record, policies=unbound))
