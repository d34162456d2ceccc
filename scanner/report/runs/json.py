"""The run register and the completeness sheet as JSON: one document, with an entry or a kind on each line.

Shapes: `docs/runs.schema.json` and `docs/run.schema.json`. A minor version only adds fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from scanner.model.json import Json, JsonObject
from scanner.model.scans.run import RunDetails
from scanner.model.scans.scan import Scan
from scanner.posture.run_register import RegisterEntry, RunState
from scanner.report.document.method import MethodSection, Requester
from scanner.report.runs.document import Agreement, KindLine, RegisterDocument, RunExpectation, RunSheet
from scanner.report.text.json_text import dump, gap_json
from scanner.report.text.times import iso

VERSION: Final = "1.0"


def register_lines(document: RegisterDocument) -> Iterator[str]:
    """The lines of the register."""
    head: JsonObject = {
        "schemaVersion": VERSION,
        "cluster": document.cluster,
        "expect": _expectation(document.expectation),
        "since": _moment(document.since),
        "until": iso(document.until),
        "expected": _counts(document.expected_states, RunState),
        "other": _counts(document.other_states, RunState),
    }
    return _document(head, "runs", map(entry_json, document.shown_entries))


def sheet_lines(sheet: RunSheet) -> Iterator[str]:
    """The lines of a completeness sheet."""
    head: JsonObject = {
        "schemaVersion": VERSION,
        "state": sheet.entry.state.value,
        "why": list(sheet.entry.why),
        "run": run_json(sheet.details),
        "scan": scan_json(sheet.record.scan) if sheet.record else None,
        "method": _method(sheet.method) if sheet.method else None,
        "comparison": {"whyNot": sheet.why_not_compared, "kinds": _counts(sheet.agreements, Agreement)},
        "gaps": [gap_json(gap) for gap in (sheet.record.gaps if sheet.record else ())],
    }
    return _document(head, "kinds", map(_kind, sheet.kinds))


def entry_json(entry: RegisterEntry) -> JsonObject:
    """An entry of the register."""
    return {
        "expected": _moment(entry.expected),
        "state": entry.state.value,
        "lateSeconds": None if entry.late is None else int(entry.late.total_seconds()),
        "why": list(entry.why),
        "run": run_json(entry.run) if entry.run else None,
    }


def run_json(details: RunDetails) -> JsonObject:
    """A recorded run."""
    run = details.run
    return {
        "number": run.number,
        "name": run.name,
        "host": run.host,
        "startedAt": iso(run.started_at),
        "finishedAt": _moment(run.finished_at),
        "exitCode": run.exit_code,
        "reason": run.reason,
        "scanId": run.scan,
        "commandLine": list(run.command_line),
    }


def _kind(line: KindLine) -> JsonObject:
    coverage = line.coverage
    return {
        "apiVersion": coverage.api_version,
        "kind": coverage.kind,
        "state": coverage.state.value,
        "listed": line.listed,
        "examined": line.examined,
        "excluded": line.excluded,
        "matched": coverage.evaluated,
        "pages": coverage.pages,
        "bytes": coverage.bytes,
        "note": coverage.note,
        "server": {"atStart": line.at_start, "atEnd": line.at_end},
        "agreement": line.agreement.value,
        "difference": line.difference,
        "whyNot": line.why_not,
    }


def scan_json(scan: Scan) -> JsonObject:
    """A scan."""
    return {
        "id": scan.id,
        "state": scan.state.value,
        "startedAt": iso(scan.started_at),
        "finishedAt": _moment(scan.finished_at),
        "cluster": {
            "name": scan.cluster.name,
            "uid": scan.cluster.uid,
            "serverVersion": scan.cluster.server_version,
            "source": scan.cluster.source,
        },
        "policySetDigest": scan.policy_set_digest,
        "findings": scan.findings,
    }


def _method(method: MethodSection) -> JsonObject:
    scope = method.scope
    return {
        "scanner": _user(method.scanner),
        "requester": _user(method.requester),
        "host": method.host,
        "commandLine": list(method.command_line),
        "scope": {
            "namespaces": list(scope.namespaces),
            "excludeNamespaces": list(scope.exclude_namespaces),
            "kinds": list(scope.kinds),
            "skipKinds": list(scope.skip_kinds),
            "skipLanguages": list(scope.skip_languages),
            "policies": list(scope.policies),
            "bindings": list(scope.bindings),
            "selector": scope.selector,
            "operation": scope.operation,
        },
        "kyvernoRelease": method.kyverno_release,
        "kyvernoNote": method.kyverno_note,
        "network": method.network,
        "networkTo": list(method.network_to),
        "workers": method.workers,
        "chunkSize": method.chunk_size,
        "toolVersion": method.tool_version,
        "databaseSchema": method.database_schema,
        "configuration": {
            "path": method.configuration.path,
            "digest": method.configuration.digest,
            "settings": [
                {"key": each.key, "place": each.place, "value": each.value} for each in method.configuration.settings
            ],
        },
    }


def _user(user: Requester) -> JsonObject:
    return {"username": user.username, "groups": list(user.groups)}


def _expectation(expectation: RunExpectation | None) -> JsonObject | None:
    if expectation is None:
        return None
    seconds = int(expectation.tolerance.total_seconds())
    return {"schedule": expectation.schedule, "timeZone": expectation.time_zone, "toleranceSeconds": seconds}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


def _counts(counts: Mapping[RunState, int] | Mapping[Agreement, int], names: type[StrEnum]) -> JsonObject:
    """The count of every name, also 0."""
    numbers = {str(name): number for name, number in counts.items()}
    return {name.value: numbers.get(name.value, 0) for name in names}


def _document(head: JsonObject, name: str, rows: Iterable[Json]) -> Iterator[str]:
    """An object whose last field is a list with a row on each line."""
    yield "{"
    for key, value in head.items():
        yield f"{_text(key)}: {_text(value)},"
    before = ""
    for row in rows:
        yield before or f"{_text(name)}: ["
        before = f"{_text(row)},"
    yield from (before.removesuffix(","), "]") if before else (f"{_text(name)}: []",)
    yield "}"


def _text(value: Json) -> str:
    return dump(value).decode()
