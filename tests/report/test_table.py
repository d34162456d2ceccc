"""The summary for a terminal."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from scanner.model.outcome import Gap, GapKind, Violated, WouldChange
from scanner.model.scans.scan import (
    Coverage,
    CoverageState,
    ScanState,
    Scope,
)
from scanner.report.document.document import document_of
from scanner.report.formats.table import render
from scanner.report.text.screen import Screen
from tests.report.in_memory import ScanInMemory

from .records import hostile_record, large_record, partial_record, previewed, scan, small_record, with_findings

SCREEN = Screen()
WIDE = Screen(wide=True)


class Terminal(StringIO):
    """A file that reports that it is a terminal."""

    def isatty(self) -> bool:
        """True."""
        return True


def shown(record: ScanInMemory, *, screen: Screen = SCREEN, **environ: str) -> str:
    """The summary that is written to a file."""
    out = StringIO()
    render(document_of(record), out, environ=environ, screen=screen)
    return out.getvalue()


def test_complete_scan(snapshot: SnapshotAssertion) -> None:
    """The summary of a complete scan."""
    assert shown(small_record()) == snapshot


def test_incomplete_scan(snapshot: SnapshotAssertion) -> None:
    """The summary of an incomplete scan begins with its gaps."""
    assert shown(partial_record()) == snapshot


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_summary_at_usual_widths(columns: int, snapshot: SnapshotAssertion) -> None:
    """The summary of an incomplete scan on a narrow, a usual and a wide terminal."""
    assert shown(partial_record(), COLUMNS=str(columns)) == snapshot


def test_a_wide_summary(snapshot: SnapshotAssertion) -> None:
    """All columns and tables."""
    assert shown(partial_record(), screen=WIDE) == snapshot


@pytest.mark.parametrize(
    ("state", "word"),
    [(ScanState.INCOMPLETE, "INCOMPLETE"), (ScanState.FAILED, "FAILED"), (ScanState.RUNNING, "NOT FINISHED")],
)
def test_state_comes_first(state: ScanState, word: str) -> None:
    """The state of an unfinished scan precedes every number."""
    assert word in shown(replace(small_record(), scan=scan(state))).splitlines()[1]


def test_plain_text_in_a_file() -> None:
    """A file receives no escape sequence."""
    assert "\x1b" not in shown(small_record())


def test_colours_on_a_terminal() -> None:
    """A terminal receives colours unless NO_COLOR is set."""
    coloured, plain = Terminal(), Terminal()
    render(document_of(small_record()), coloured, environ={"TERM": "xterm-256color"})
    render(document_of(small_record()), plain, environ={"TERM": "xterm-256color", "NO_COLOR": "1"})
    assert "\x1b[1;32m" in coloured.getvalue()
    assert "32m" not in plain.getvalue()


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_no_line_is_wider_than_asked(columns: int) -> None:
    """The summary keeps to the width in COLUMNS, with hostile names too."""
    lines = shown(hostile_record(), COLUMNS=str(columns)).splitlines()
    assert max(len(line) for line in lines) <= columns


def test_hostile_names_stay_text() -> None:
    """Escape sequences are escaped, markup is not interpreted, and line ends do not break a row."""
    text = shown(hostile_record(), COLUMNS="300")
    assert [] == [mark for mark in text if not (mark.isprintable() or mark == "\n")]
    for name in (r"\x1b[31mred\x1b[0m\x07", "[bold red]markup[/bold red]", r"line one\nline two", r"\u202egnp.exe"):
        assert name in text


def test_an_ascii_terminal_receives_escapes() -> None:
    """Characters that the encoding lacks are escaped."""
    raw = BytesIO()
    out = TextIOWrapper(raw, encoding="ascii")
    record = small_record()
    named = replace(record.scan, cluster=replace(record.scan.cluster, name="häfen"))
    render(document_of(replace(record, scan=named)), out, environ={})
    out.flush()
    assert b"h\\xe4fen" in raw.getvalue()


def test_long_lists_state_their_length() -> None:
    """A cut list has the number of its shown items, and of all items."""
    text = shown(large_record(400, policies=40, namespaces=30), screen=WIDE)
    assert "25 of 40 policies shown" in text
    assert "25 of 30 namespaces shown" in text


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"policies": ()}, "No policies were found"),
        ({"coverage": ()}, "No object of a kind that a bound policy can match was found"),
        ({"coverage": (), "scan": scan(scope=Scope(namespaces=("shop",)))}, "No bound policy matched an object"),
    ],
)
def test_a_scan_without_policies_or_objects_has_advice(change: dict[str, object], advice: str) -> None:
    """The summary names the remedy."""
    record = replace(small_record(), tallies={}, found=lambda: (()), **change)  # type: ignore[arg-type]
    assert advice in shown(record)


def test_policies_without_bindings_have_advice() -> None:
    """The summary names the command that previews a policy."""
    record = small_record()
    unbound = tuple(replace(policy, bindings=()) for policy in record.policies)
    assert "assay preview --bind POLICY" in shown(replace(record, policies=unbound))


def test_previews_are_no_violations() -> None:
    """They have a banner and a column of their own, and nothing is red."""
    out = Terminal()
    render(document_of(previewed()), out, environ={"TERM": "xterm-256color", "COLUMNS": "120"})

    assert "PREVIEW" in out.getvalue()
    assert "Violated" not in out.getvalue()
    assert "Refused" not in out.getvalue()
    assert "\x1b[1;31m" not in out.getvalue()


def test_rules_that_changed_have_a_banner() -> None:
    """It names the scan with which the rules were compared."""
    record = small_record()
    before = replace(record.scan, id="20260301-140000-aa11", policy_set_digest="other")

    assert " RULES CHANGED  The rules changed since" in shown(replace(record, comparable=before))


def test_drift_is_a_change_and_no_violation() -> None:
    """The problem has the word of its own, which is not red."""
    record = small_record()
    [first, *_] = record.findings()
    drift = first.finding._replace(outcome=WouldChange((), converges=True), denies=False)
    out = Terminal()
    changed = with_findings(record, [replace(first, finding=drift)])
    render(document_of(changed), out, environ={"TERM": "xterm-256color", "COLUMNS": "160"})

    assert "\x1b[36mchanged" in out.getvalue()
    assert "\x1b[1;31m" not in out.getvalue().split("Policies (")[0]


def test_wide_characters_are_counted_as_two_cells() -> None:
    """Names of objects in Chinese keep to the width of the terminal."""
    record = small_record()
    [first, *_] = record.findings()
    wide = first.finding._replace(name="容器" * 40, outcome=Violated("限制" * 80))
    changed = with_findings(record, [replace(first, finding=wide, workload=None)])

    for columns in ("60", "80", "120"):
        assert max(map(cell_len, shown(changed, COLUMNS=columns).splitlines())) <= int(columns)


def test_a_command_with_pages_recommends_problems() -> None:
    """The pages are written already."""
    text = shown(small_record(), screen=Screen(pages=True, options="--db x.db"))

    assert "  assay findings --problems --scan 20260302-140000-ab12 --status new --db x.db" in text
    assert "--html" not in text


def test_commands_that_print_findings_have_the_rules_of_the_user() -> None:
    """Controls and waivers: the pages would lack what this summary has. `explain` has no such flags."""
    text = shown(small_record(), screen=Screen(rules="--controls cis.yaml --waivers w", options="--db x.db"))

    assert "  assay explain 4e17f3eca6 --db x.db " in text
    report = "  assay report 20260302-140000-ab12 --html assay-report --controls cis.yaml --waivers w --db x.db "
    assert report in text


@pytest.mark.parametrize(
    ("record", "command"),
    [
        (replace(previewed(), tallies={}), "findings --scan 20260302-140000-ab12 --status preview"),
        (replace(small_record(), policies=()), "scan --help"),
        (small_record(), "policies --scan 20260302-140000-ab12"),
    ],
    ids=["preview", "nothing", "clean"],
)
def test_a_scan_without_problems_recommends_the_next_thing(record: ScanInMemory, command: str) -> None:
    """The findings of previews, the help if nothing was evaluated, else the policies."""
    clean = record if "preview" in command else with_findings(record, [])

    assert f"  assay {command} " in shown(clean)


def test_the_numbers_of_gaps_are_one_number() -> None:
    """A kind that was not listed counts once, whether it has a gap or not; gaps of one sort that share a line count each."""
    gaps = tuple(Gap(GapKind.DOCUMENT, f"file-{number}.yaml", "no YAML") for number in range(12))
    unlisted = (
        Coverage("v1", "Pod", CoverageState.FORBIDDEN, note="not for jane"),
        Coverage("batch/v1", "Job", CoverageState.FAILED, note="no answer"),
    )
    listed = Gap(GapKind.LIST, "v1/Pod", "not for jane")
    record = replace(
        small_record(),
        scan=scan(ScanState.INCOMPLETE),
        gaps=(*gaps, listed),
        coverage=(*unlisted, *small_record().coverage),
    )

    text = shown(record)

    assert " · 14 gaps\n" in text
    assert "\n14 items could not be scanned; left out on request: " in text
    assert "  - 12 documents could not be read\n" in text


@pytest.mark.parametrize(("columns", "screen"), [("80", WIDE), ("40", SCREEN)])
def test_policies_without_room_for_a_table_have_lines(columns: str, screen: Screen) -> None:
    """The name, and below it the numbers that are not 0: a table of prose would repeat every heading for every 0."""
    text = shown(partial_record(), screen=screen, COLUMNS=columns)
    section = text.split("Policies (")[1].split("\n\n")[0]

    assert "\n  require-limits: medium, Audit, Deny" in section
    assert "3 refused · 3 violated" in section
    assert "Policy" not in section
    assert " 0" not in section
