"""The files of a paper: tables as CSV, everything in numbers as JSON, the page, and a list of SHA-256 digests, in one zip.

The same paper is the same bytes: members have one date, and stand in one order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from io import BytesIO, StringIO
from typing import BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from scanner.model.scans.finding_period import FindingOfPeriod
from scanner.posture.run_register import RegisterEntry
from scanner.report.document.document import Document
from scanner.report.document.section_digests import SectionDigest
from scanner.report.formats import csv
from scanner.report.formats.rules import render_csv as render_rules
from scanner.report.formats.samples import SAMPLE_FILE, write_sample
from scanner.report.paper.control_paper import ControlPaper, FindingNumbers
from scanner.report.paper.page import render_page
from scanner.report.text.json_text import Plain, camel, dump
from scanner.report.text.times import iso
from scanner.report.text.titles import check_title

SCHEMA_VERSION: Final = "1.0"
PAGE: Final = "index.html"
SUMS: Final = "SHA256SUMS"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_READABLE: Final = 0o644 << 16


def write_paper(paper: ControlPaper, out: BinaryIO) -> None:
    """Write the zip of a paper."""
    tables = dict(_list_files(paper))
    sums = {name: sha256(content).hexdigest() for name, content in tables.items()}
    page = render_page(paper, sums).encode("utf-8", "backslashreplace")
    sums[PAGE] = sha256(page).hexdigest()
    listed = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, content in ((PAGE, page), *tables.items(), (SUMS, listed.encode())):
            member = ZipInfo(name, _EPOCH)
            member.external_attr, member.compress_type = _READABLE, ZIP_DEFLATED
            archive.writestr(member, content)


def _list_files(paper: ControlPaper) -> Iterator[tuple[str, bytes]]:
    yield "paper.json", _data(paper)
    yield "findings.csv", _table(_FINDING_TITLES, map(_finding_cells, paper.findings))
    yield "runs.csv", _table(_RUN_TITLES, map(_run_cells, paper.runs))
    yield "days.csv", _table(_DAY_TITLES, _list_days(paper))
    yield "waivers.csv", _table(_WAIVER_TITLES, (tuple(map(str, each)) for each in paper.waivers))
    yield "rules.csv", _rules(paper.document)
    yield "rule-changes.csv", _table(_CHANGE_TITLES, _list_changes(paper))
    if paper.sample:
        yield "population.csv", paper.population
        sample = BytesIO()
        write_sample(paper.sample, sample)
        yield SAMPLE_FILE, sample.getvalue()


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    out = StringIO()
    csv.write(out, titles, rows)
    return out.getvalue().encode("utf-8", "backslashreplace")


_FINDING_TITLES: Final = (
    *("id", "policy", "language", "binding", "check", "kind", "namespace", "name", "outcome", "message", "exceptions"),
    *("firstSeen", "openAtBegin", "openAtEnd", "checkedAtEnd", "changes"),
)
_RUN_TITLES: Final = ("run", "state", "startedAt", "finishedAt", "exitCode", "scan", "why")
_DAY_TITLES: Final = ("day", "scan", "findings", "new", "resolved", "rulesChanged", "talliesDigest")
_WAIVER_TITLES: Final = (
    *("name", "policy", "scope", "stateAtBegin", "stateAtEnd", "findings", "reason", "approvedBy", "until"),
)
_CHANGE_TITLES: Final = ("type", "language", "name", "change", "before", "now")


def _finding_cells(each: FindingOfPeriod) -> tuple[str, ...]:
    finding = each.finding
    changes = "; ".join(f"{iso(event.at)} {event.change} {event.reason}".rstrip() for event in each.events)
    return (
        *(each.id, finding.policy, finding.language, finding.binding, check_title(finding.check)),
        *(finding.kind, finding.namespace, finding.name, outcome_word(each), finding.outcome.message),
        *(finding.excepted_by, iso(each.first_seen), _flag(each.open_at_begin), _flag(each.open_at_end)),
        *(_flag(each.checked), changes),
    )


def outcome_word(each: FindingOfPeriod) -> str:
    """The outcome under the name that JSON has."""
    name = type(each.finding.outcome).__name__
    return name[0].lower() + name[1:]


def _run_cells(entry: RegisterEntry) -> tuple[str, ...]:
    details = entry.run
    if details is None:
        return ("", entry.state.value, "", "", "", "", "; ".join(entry.why))
    run = details.run
    return (
        *(str(run.number), entry.state.value, iso(run.started_at), iso(run.finished_at) if run.finished_at else ""),
        *("" if run.exit_code is None else str(run.exit_code), run.scan, "; ".join(entry.why)),
    )


def _list_days(paper: ControlPaper) -> Iterator[tuple[str, ...]]:
    for day, digest in paper.days:
        changed = "notKnown" if day.rules_changed is None else " ".join(part.value for part in day.rules_changed)
        numbers = (str(number) for number in (day.findings, day.new, day.resolved))
        yield (day.day.isoformat(), day.scan, *numbers, changed, digest)


def _list_changes(paper: ControlPaper) -> Iterator[tuple[str, ...]]:
    for each in paper.changes:
        texts = ("" if document is None else dump(document).decode() for document in (each.before, each.now))
        yield (each.kind.value, each.language, each.name, change_word(each.before, each.now), *texts)


def change_word(before: object, now: object) -> str:
    """The change of a rule."""
    if before is None:
        return "added"
    return "removed" if now is None else "changed"


def _rules(document: Document) -> bytes:
    out = StringIO()
    render_rules(document, out)
    return out.getvalue().encode("utf-8", "backslashreplace")


def _flag(value: bool) -> str:  # noqa: FBT001
    return "true" if value else "false"


def _data(paper: ControlPaper) -> bytes:
    """The paper in numbers, with the digests of both scans."""
    control, document = paper.chosen.control, paper.document
    waivers = document.waivers_digest
    data: dict[str, Plain] = {
        "schemaVersion": SCHEMA_VERSION,
        "madeAt": iso(paper.made_at),
        "cluster": paper.cluster,
        "period": {"name": paper.period.text, "first": str(paper.period.first), "last": str(paper.period.last)},
        "framework": paper.chosen.framework.heading,
        "control": {"id": control.id, "title": control.title, "state": control.state.value, "why": list(control.why)},
        "scans": {
            "before": _scan(paper.before, paper.before_id),
            "last": _scan(document, document.provenance.scan_id),
        },
        "findings": _numbers(paper.numbers),
        "policies": [
            {"language": language, "policy": policy, **_numbers(numbers)}
            for (language, policy), numbers in paper.by_policy.items()
        ],
        "runs": {state.value: number for state, number in sorted(paper.run_states.items())},
        "daysWithoutCompleteScan": [day.isoformat() for day in paper.missing_days],
        "waivers": {"number": len(paper.waivers), "digest": waivers.digest if waivers else None},
        "sample": {
            "seed": paper.sample.request.seed,
            "population": {"items": paper.sample.population, "sha256": paper.sample.sha256},
            "items": [item.id for item in paper.sample.items],
        }
        if paper.sample
        else None,
    }
    return json.dumps(data, indent=2, ensure_ascii=True).encode() + b"\n"


def _scan(document: Document | None, scan: str) -> Plain:
    if document is None:
        return {"scan": scan} if scan else None
    digests = document.digests
    return {
        "scan": scan,
        "finishedAt": iso(document.provenance.ended_at),
        "complete": document.complete,
        "digest": digests.digest,
        "sections": [_section(each) for each in digests.sections],
    }


def _section(each: SectionDigest) -> Mapping[str, Plain]:
    return each._asdict()


def _numbers(numbers: FindingNumbers) -> dict[str, Plain]:
    return {camel(name): number for name, number in numbers._asdict().items()}
