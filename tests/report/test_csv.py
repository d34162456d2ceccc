"""Findings and the population as CSV, as a spreadsheet reads them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.model.population import EvaluatedObjects, RecordedObject, Workload
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.report.in_memory import ScanInMemory

from .records import LIMITS, check, hostile_record, partial_record, small_record


def rendered(record: ScanInMemory, name: str = "csv") -> str:
    """The report of a scan."""
    out = io.StringIO(newline="")
    FORMATS[name].render(document_of(record), out)
    return out.getvalue()


def rows(text: str) -> list[dict[str, str]]:
    """The lines of a file by their headings."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


class Ids:
    """A set of ids of objects."""

    def __init__(self, *ids: int) -> None:
        self.ids = frozenset(ids)
        self.count = len(self.ids)

    def __contains__(self, number: int, /) -> bool:
        return number in self.ids

    def bits(self) -> int:
        """The set as a number."""
        return sum(1 << number for number in self.ids)


def test_findings_of_a_small_scan(snapshot: SnapshotAssertion) -> None:
    """The file of a small scan equals the recorded one."""
    assert rendered(partial_record()) == snapshot


def test_every_finding_is_a_line() -> None:
    """Open findings come first, then the resolved ones."""
    record = small_record()
    ids = [stored.id for stored in (*record.findings(), *record.resolved_findings())]

    assert ids == [row["id"] for row in rows(rendered(record))]


@pytest.mark.parametrize("name", ["csv", "csv-population"])
def test_no_cell_is_a_formula(name: str) -> None:
    """Texts that a spreadsheet would run begin with a quote."""
    record = replace(hostile_record(), objects=[item("=cmd()"), item("@SUM(1)"), item("\t=1")])
    cells = [cell for row in csv.reader(io.StringIO(rendered(record, name), newline="")) for cell in row]

    assert [] == [
        cell for cell in cells if cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n", "|", "%"))
    ]


def item(name: str, number: int = 1) -> RecordedObject:
    """An examined Deployment of that name."""
    top = Workload("apps/v1", "Deployment", "shop", name)
    return RecordedObject(number, "apps/v1", "Deployment", "shop", name, f"u-{number}", top, (("team", "blue"),))


def evaluated(*ids: int, skipped: tuple[int, ...] = ()) -> EvaluatedObjects:
    """The objects that a check evaluated, and those that it skipped."""
    return EvaluatedObjects(
        language="ValidatingAdmissionPolicy",
        policy="require-limits",
        binding="require-limits-everywhere",
        param_namespace="",
        param_name="",
        check=check(LIMITS),
        api_version="apps/v1",
        kind="Deployment",
        evaluated=Ids(*ids),
        not_evaluated={"condition": Ids(*skipped)},
    )


def test_the_population_has_every_examined_object() -> None:
    """Each with the number of checks that evaluated it, of those that did not, and of its findings."""
    record = replace(
        small_record(),
        objects=[item("web", 1), item("calm", 2), item("other", 3)],
        by_object={1: 2},
        sets=[evaluated(1, 2), evaluated(2, skipped=(3,))],
    )
    columns = ("name", "evaluated", "notEvaluated", "findings")

    found = [tuple(row[column] for column in columns) for row in rows(rendered(record, "csv-population"))]

    assert [("web", "1", "0", "2"), ("calm", "2", "0", "0"), ("other", "0", "1", "0")] == found


def test_the_population_of_a_small_scan(snapshot: SnapshotAssertion) -> None:
    """The file of some objects equals the recorded one."""
    record = replace(
        partial_record(),
        objects=[item("web", 1), item("calm", 2)],
        sets=[evaluated(1, 2)],
    )

    assert rendered(record, "csv-population") == snapshot


def test_the_population_of_an_older_scan_is_only_a_heading() -> None:
    """Scans of older versions recorded no objects."""
    assert [] == rows(rendered(small_record(), "csv-population"))
