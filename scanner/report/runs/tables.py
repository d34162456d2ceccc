"""The run register and the completeness sheet as text of at most 80 columns, apart from long names; the sheet also of fewer."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from scanner.posture.run_register import RegisterEntry, RunState, write_duration
from scanner.report.document.method import MethodSection, Requester
from scanner.report.runs.document import Agreement, KindLine, RegisterDocument, RunSheet
from scanner.report.text.numbers import join_texts, plural
from scanner.report.text.safe_text import visible
from scanner.report.text.scope import exclusions_of, scope_of
from scanner.report.text.times import duration, minute, stamp

_WIDTH: Final = 80
_LABEL: Final = 15
_KIND: Final = 18
_NUMBERS: Final = (
    ("LISTED", 8),
    ("EXAMINED", 10),
    ("EXCLUDED", 10),
    ("SERVER", 8),
    ("DIFF", 6),
    ("PAGES", 7),
    ("BYTES", 10),
)
_WORDS: Final = {
    Agreement.EQUAL: "equal",
    Agreement.CHANGED: "changed during the scan",
    Agreement.DIFFERENT: "different",
    Agreement.NOT_COMPARED: "not compared",
}
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_THOUSAND: Final = 1000


def register_lines(document: RegisterDocument, width: int = _WIDTH) -> Iterator[str]:
    """The lines of the register: an entry for each expected time and each other run, with the reason below it."""
    width = min(width, _WIDTH)
    expects = document.expectation is not None
    head = ("STATE", "RUN", "STARTED", "EXIT", "CLUSTER")
    rows = [(("EXPECTED",) if expects else ()) + head, *(_row(entry, expects) for entry in document.shown_entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    yield lines[0]
    for line, entry in zip(lines[1:], document.shown_entries, strict=True):
        yield line
        yield from _wrap("; ".join(map(visible, entry.why)), "    ", width)
    yield ""
    yield from _wrap(summary(document), width=width)


def _row(entry: RegisterEntry, expects: bool) -> tuple[str, ...]:  # noqa: FBT001 - whether the first column exists
    expected = (_minute(entry.expected) if entry.expected else "-",) if expects else ()
    if entry.run is None:
        return (*expected, entry.state.value, "-", "-", "-", "")
    run = entry.run.run
    code = "-" if run.exit_code is None else str(run.exit_code)
    return (*expected, entry.state.value, str(run.number), _second(run.started_at), code, visible(run.name))


def summary(document: RegisterDocument) -> str:
    """The numbers of expected and other runs in each state."""
    since = f" since {minute(document.since)} UTC" if document.since else ""
    hidden = len(document.entries) - len(document.shown_entries)
    more = (
        f" The newest {len(document.shown_entries)} of {len(document.entries)} are listed; see --limit."
        if hidden
        else ""
    )
    others = plural(sum(document.other_states.values()), "run")
    if document.expectation is None:
        return f"{others}{since}: {_states(document.other_states)}.{more}"
    tolerance = write_duration(document.expectation.tolerance)
    expected = sum(document.expected_states.values())
    numbers = f"{plural(expected, 'run')} expected{since}: {_states(document.expected_states) or 'none'}"
    other = f" {others} besides the schedule: {_states(document.other_states)}." if document.other_states else ""
    return f"{numbers}. A run is late after {tolerance}.{other}{more}"


def _states(counts: Mapping[RunState, int]) -> str:
    return join_texts(f"{counts[state]} {state.value}" for state in RunState if counts.get(state))


def sheet_lines(sheet: RunSheet, width: int = _WIDTH) -> Iterator[str]:
    """The lines of the completeness sheet: the run, its method, and the kinds with their numbers, in columns where these fit."""
    width = min(width, _WIDTH)
    run = sheet.details.run
    why = "; ".join(map(visible, sheet.entry.why))
    yield from _wrap(
        f"Run {run.number} of {visible(run.name) or 'an unknown cluster'}: {sheet.entry.state.value}{f' ({why})' if why else ''}",
        width=width,
    )
    yield ""
    for label, value in facts(sheet):
        yield from _fact(label, value, width)
    if sheet.record is None:
        return
    for number, gap in enumerate(sheet.record.gaps):
        yield from _fact("" if number else "Gaps", f"{visible(gap.where)}: {visible(gap.why)}", width)
    if not sheet.kinds:
        yield from _fact("Kinds", "none was listed", width)
        return
    yield ""
    if width == _WIDTH:
        yield "KIND".ljust(_KIND) + "".join(name.rjust(columns) for name, columns in _NUMBERS)
    for line in sheet.kinds:
        yield from _kind(line, width)
    yield ""
    yield from _wrap(write_comparison(sheet), width=width)


def facts(sheet: RunSheet) -> Iterator[tuple[str, str]]:
    """The facts of a run and of its scan, with their labels."""
    run = sheet.details.run
    end = (
        f"to {stamp(run.finished_at)} ({duration(run.started_at, run.finished_at)})"
        if run.finished_at
        else "not finished"
    )
    yield "Time", f"{stamp(run.started_at)} {end}"
    yield "Exit code", "-" if run.exit_code is None else str(run.exit_code)
    if run.reason and run.reason not in "; ".join(sheet.entry.why):
        yield "Reason", run.reason
    yield "Host", run.host
    yield "Command", shlex.join(run.command_line) or "not recorded by this version"
    if sheet.record is None:
        yield (
            "Scan",
            f"{run.scan} is still running" if sheet.entry.state is RunState.RUNNING and run.scan else "none began",
        )
        return
    scan = sheet.record.scan
    yield "Scan", f"{scan.id}, {scan.findings} findings"
    yield "Cluster", f"{scan.cluster.name}{f', UID {scan.cluster.uid}' if scan.cluster.uid else ''}"
    yield "Scope", join_texts((*scope_of(scan), *(f"without {text}" for text in exclusions_of(scan.scope))))
    if sheet.method:
        yield from _method(sheet.method, scan.cluster.server_version)


def _method(method: MethodSection, server_version: str) -> Iterator[tuple[str, str]]:
    if method.scanner.username:
        yield "User", _user(method.scanner)
    if method.simulated:
        yield "Requester", f"{_user(method.requester)} (simulated)"
    if method.configuration.path:
        yield "Configuration", f"{method.configuration.path}, {method.configuration.digest}"
    if variables := [each.place for each in method.configuration.settings if each.place.startswith("ASSAY_")]:
        yield "Variables", join_texts(variables)
    network = join_texts(("public addresses", *method.network_to)) if method.network else "none"
    yield "Network", f"{network} besides the cluster" if method.network else "none besides the cluster"
    pages = f", pages of {plural(method.chunk_size, 'object')}" if method.chunk_size else ""
    yield "Workers", f"{method.workers}{pages}"
    server = f", Kubernetes {server_version}" if server_version else ""
    kyverno = f", Kyverno {method.kyverno_release}" if method.kyverno_release else ""
    schema = method.database_schema or "unknown"
    yield "Versions", f"Assay {method.tool_version}, database schema {schema}{server}{kyverno}"


def _user(user: Requester) -> str:
    return f"{user.username or 'unknown'}{f' of {join_texts(user.groups)}' if user.groups else ''}"


def _kind(line: KindLine, width: int) -> Iterator[str]:
    """The numbers of a kind, below its name if that is long, and a note on what is not plain from them."""
    yield from _write_numbers(line, width)
    coverage = line.coverage
    if coverage.note:
        yield from _wrap(f"{coverage.state.value}: {visible(coverage.note)}", "    ", width)
    if line.agreement in {Agreement.CHANGED, Agreement.DIFFERENT}:
        counts = f"the API server counted {_number(line.at_start)} at the start and {_number(line.at_end)} at the end"
        yield from _wrap(f"{_WORDS[line.agreement]}: {counts}", "    ", width)


def _write_numbers(line: KindLine, width: int) -> Iterator[str]:
    """The numbers in columns, or below the name with the heading of each where columns do not fit."""
    coverage = line.coverage
    name = visible(f"{coverage.api_version}/{coverage.kind}")
    numbers = (
        _number(line.listed),
        _number(line.examined),
        _number(line.excluded),
        _number(line.server),
        "-" if line.difference is None else f"{line.difference:+}" if line.difference else "0",
        _number(coverage.pages),
        _size(coverage.bytes),
    )
    if width < _WIDTH:
        yield name
        named = (f"{head.lower()} {cell}" for cell, (head, _) in zip(numbers, _NUMBERS, strict=True) if cell != "-")
        yield from _wrap(join_texts(named), "  ", width)
        return
    columns = "".join(cell.rjust(column) for cell, (_, column) in zip(numbers, _NUMBERS, strict=True))
    if len(name) > _KIND:
        yield name
        name = ""
    yield name.ljust(_KIND) + columns


def write_comparison(sheet: RunSheet) -> str:
    """The result of the comparison with the API server's own counts."""
    if sheet.why_not_compared:
        return f"Not compared with the API server's own counts: {visible(sheet.why_not_compared)}"
    counts = sheet.agreements
    numbers = join_texts(
        f"{plural(counts[agreement], 'kind')} {_WORDS[agreement]}" for agreement in Agreement if counts.get(agreement)
    )
    reasons = dict.fromkeys(line.why_not for line in sheet.kinds if line.why_not and not line.coverage.note)
    why = f" ({join_texts(map(visible, reasons))})" if reasons else ""
    return f"Compared with the API server's own counts, which it takes once a minute: {numbers or 'no kinds'}{why}."


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _size(size: float) -> str:
    """A size in three digits or so: `512 B`, `43.2 kB`."""
    place = 0
    while size >= _THOUSAND and place < len(_UNITS) - 1:
        size, place = size / _THOUSAND, place + 1
    return f"{size:.0f} {_UNITS[place]}" if not place else f"{size:.1f} {_UNITS[place]}"


def _fact(label: str, value: str, width: int) -> Iterator[str]:
    return iter(_fill(visible(value), label.ljust(_LABEL), " " * _LABEL, width))


def _wrap(text: str, indent: str = "", width: int = _WIDTH) -> Iterator[str]:
    return iter(_fill(text, indent, indent, width) if text else ())


def _fill(text: str, first: str, following: str, width: int) -> Sequence[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%MZ}"


def _second(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%SZ}"
