"""The objects that a scan examined as CSV: who was examined, by how many checks, and with how many findings.

An object without findings whose `evaluated` is not 0 passed all these checks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, TextIO

from scanner.model.population import EvaluatedObjects, ObjectIds, RecordedObject
from scanner.report.document import Document
from scanner.report.spreadsheet import write

TITLES: Final = (
    *("apiVersion", "kind", "namespace", "name", "uid", "workloadKind", "workload", "derived"),
    *("evaluated", "notEvaluated", "findings", "labels"),
)


def render(document: Document, out: TextIO) -> None:
    """Write a heading and one line for each examined object; only the heading for a scan of an older version."""
    write(out, TITLES, _rows(document))


def _rows(document: Document) -> Iterator[tuple[str, ...]]:
    findings = document.stored.findings_by_object()
    checks = _checks_by_kind(document.stored.evaluated())
    for item in document.stored.population():
        yield _cells(item, checks[item.api_version, item.kind], findings.get(item.id, 0))


def _checks_by_kind(evaluated: Iterator[EvaluatedObjects]) -> defaultdict[tuple[str, str], list[EvaluatedObjects]]:
    checks: defaultdict[tuple[str, str], list[EvaluatedObjects]] = defaultdict(list)
    for each in evaluated:
        checks[each.api_version, each.kind].append(each)
    return checks


def _cells(item: RecordedObject, checks: list[EvaluatedObjects], findings: int) -> tuple[str, ...]:
    top = item.workload
    return (
        item.api_version,
        item.kind,
        item.namespace,
        item.name,
        item.uid,
        top.kind,
        top.name,
        "true" if top.derived else "false",
        str(_number(item.id, [each.evaluated for each in checks])),
        str(_number(item.id, [ids for each in checks for ids in each.not_evaluated.values()])),
        str(findings),
        ",".join(f"{key}={value}" for key, value in item.labels),
    )


def _number(item: int, sets: list[ObjectIds]) -> int:
    return sum(1 for ids in sets if item in ids)
