"""The rules in force: one table as a page, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from scanner.model.scans.rule_times import RuleKey, RuleTimes
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.document.rules_in_force import list_rules
from tests.docs.pages import ROOT
from tests.report.in_memory import ScanInMemory

from .pages import main_of
from .records import BEFORE, FINISHED, hostile_record, partial_record, small_record

VALIDATING = "ValidatingAdmissionPolicy"
LIMITS = RuleKey("policy", VALIDATING, "", "require-limits")
SCHEMA = json.loads((ROOT / "docs" / "rules.schema.json").read_text("utf-8"))


def timed_record() -> ScanInMemory:
    """The small scan, one policy of which changed with it."""
    return replace(small_record(), times_of_rules={LIMITS: RuleTimes(FINISHED, BEFORE, (FINISHED,))})


def as_csv(record: ScanInMemory) -> list[dict[str, str]]:
    """The rows of the CSV."""
    out = io.StringIO()
    FORMATS["csv-rules"].render(document_of(record), out)
    return list(csv.DictReader(io.StringIO(out.getvalue())))


def as_json(record: ScanInMemory) -> dict[str, object]:
    """The JSON document."""
    out = io.BytesIO()
    FORMATS["json-rules"].render(document_of(record), out)
    made: dict[str, object] = json.loads(out.getvalue())
    return made


def test_the_table_has_every_rule_of_the_scan() -> None:
    """Each policy, each of its bindings, and each object that decides together with them, once."""
    record = partial_record()
    rules = list_rules(record)
    bindings = [binding for used in record.policies for binding in used.bindings]

    assert len(record.policies) + len(bindings) + len(record.rules) == len(rules)
    assert len(rules) == len({(rule.type, rule.language, rule.policy, rule.name) for rule in rules})


def test_a_rule_has_its_times_and_its_text() -> None:
    """The content is what decides, without what a server sets."""
    [rule] = [rule for rule in list_rules(timed_record()) if rule.name == "require-limits" and rule.type == "policy"]

    assert (FINISHED, BEFORE, (FINISHED,)) == (rule.since, rule.before, rule.changed)
    assert "spec" in rule.document
    assert "status" not in rule.document


@pytest.mark.parametrize("record", [timed_record(), partial_record(), hostile_record()])
def test_json_follows_its_schema(record: ScanInMemory) -> None:
    """And has the rules of the table in their order."""
    made = as_json(record)

    assert [] == [error.message for error in Draft202012Validator(SCHEMA).iter_errors(made)]
    assert [rule.name for rule in list_rules(record)] == [rule["name"] for rule in made["rules"]]  # type: ignore[attr-defined]


def test_csv_has_the_same_rows() -> None:
    """The content of a rule is JSON in one cell."""
    rows, listed = as_csv(timed_record()), as_json(timed_record())["rules"]
    assert isinstance(listed, list)

    assert [rule["digest"] for rule in listed] == [row["digest"] for row in rows]
    assert [rule["document"] for rule in listed] == [json.loads(row["document"]) for row in rows]
    [row] = [row for row in rows if row["name"] == "require-limits" and row["type"] == "policy"]
    assert ("2026-03-02T14:00:12Z", "2026-03-01T14:00:00Z") == (
        row["inForceSince"][:19] + "Z", row["notBefore"][:19] + "Z",
    )  # fmt: skip


def test_no_cell_is_a_formula() -> None:
    """Hostile names begin with a quote."""
    cells = [cell for row in as_csv(hostile_record()) for cell in row.values()]
    assert [] == [cell for cell in cells if cell.startswith(("=", "+", "@", "-"))]


def test_the_page_states_since_when(tmp_path: Path) -> None:
    """And since which scan it was not: the change was in between. The files beside it have all rules."""
    FORMATS["html"].render(document_of(timed_record()), tmp_path / "report")
    page = main_of(tmp_path / "report" / "rules.html")

    assert "2026-03-02 14:00:12 UTC" in page
    assert 'not yet on <time datetime="2026-03-01T14:00:00Z">2026-03-01 14:00:00 UTC</time>' in page
    assert "validations:" in page
    assert {"rules.csv", "rules.json"} <= {path.name for path in (tmp_path / "report").iterdir()}
