"""The alerts and the dashboard: promtool reads every expression, and Assay exposes every metric in them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.report.formats.metric_families import LIVE
from scripts.generate_alerts import ALERTS, OF_CHART, RULE, alerts
from tests.prometheus.programs import program

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "alerts.md"
SERIES = Path(__file__).with_name("alerts.yaml")
DASHBOARD: JsonObject = json.loads((ROOT / "deploy" / "grafana" / "assay.json").read_text())
LABELS = {metric.name: {*metric.labels, *([] if metric.of_all else ["cluster"])} for metric in LIVE}
ADDED_BY_PROMETHEUS = {"job", "instance"}


def rules() -> list[JsonObject]:
    """The alerts of the PrometheusRule."""
    spec = yaml.safe_load(RULE.read_text())["spec"]
    return [as_object(rule) for group in spec["groups"] for rule in group["rules"]]


@cache
def series_of_tests() -> Any:
    """The series of metrics with their alerts, each of which has the address of its section."""
    series = yaml.safe_load(SERIES.read_text())
    for case in (case for test in series["tests"] for case in test["alert_rule_test"]):
        for fired in case["exp_alerts"]:
            fired["exp_annotations"]["runbook_url"] = f"docs/alerts.md#{case['alertname'].lower()}"
    return series


def panels() -> Iterator[JsonObject]:
    """The panels of the dashboard that show something."""
    yield from (as_object(panel) for panel in as_list(DASHBOARD["panels"]) if dig(panel, "type") != "row")


def expressions_of_panels() -> list[str]:
    """The expressions of the dashboard, with a value for each variable."""
    return [
        as_text(dig(target, "expr")).replace("$cluster", ".*")
        for panel in panels()
        for target in as_list(panel["targets"])
    ]


def all_expressions() -> list[str]:
    """The expressions of alerts and dashboard."""
    variables = as_list(dig(DASHBOARD, "templating", "list"))
    queries = [as_text(dig(variable, "definition")) for variable in variables if dig(variable, "definition")]
    return [*(as_text(rule["expr"]) for rule in rules()), *expressions_of_panels(), *queries]


def promtool(folder: Path, *command: str) -> str:
    """The output of promtool if it fails, else nothing."""
    ran = subprocess.run(
        [program("promtool"), *command], check=False, capture_output=True, text=True, cwd=folder, timeout=60
    )
    return ran.stdout + ran.stderr if ran.returncode else ""


def check_rules(folder: Path, expressions: list[str]) -> str:
    """The problems of expressions, as those of recording rules."""
    group = {
        "name": "all",
        "rules": [{"record": f"r{number}", "expr": each} for number, each in enumerate(expressions)],
    }
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [group]}))
    return promtool(folder, "check", "rules", "--lint-fatal", str(path))


@pytest.mark.parametrize("path", [ALERTS, OF_CHART], ids=["prometheus", "chart"])
def test_the_rules_file_has_the_alerts_of_the_prometheus_rule(path: Path) -> None:
    """It is written from the PrometheusRule, and the chart has the same file."""
    assert alerts() == path.read_text(), f"{path.relative_to(ROOT)} is out of date: run make docs"
    assert yaml.safe_load(RULE.read_text())["spec"] == yaml.safe_load(path.read_text())


def test_promtool_accepts_the_alerts(tmp_path: Path) -> None:
    """And its linter has nothing to add."""
    assert "" == promtool(tmp_path, "check", "rules", "--lint-fatal", str(ALERTS))


def test_series_give_the_expected_alerts(tmp_path: Path) -> None:
    """With their labels and texts."""
    path = tmp_path / "alerts.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], **series_of_tests()}))

    assert "" == promtool(tmp_path, "test", "rules", str(path))


def test_every_alert_fires_for_a_series_and_stays_silent_for_another() -> None:
    """So a rule that never or always fires is noticed."""
    cases = [case for test in series_of_tests()["tests"] for case in test["alert_rule_test"]]
    fires = {case["alertname"] for case in cases if case["exp_alerts"]}

    assert {as_text(rule["alert"]) for rule in rules()} == fires
    assert all(len(test["input_series"]) > 1 or len(test["alert_rule_test"]) > 1 for test in series_of_tests()["tests"])


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_has_texts_and_a_paragraph(rule: JsonObject) -> None:
    """A summary, a description, and the address of a section in the documentation with what to do."""
    assert {"summary", "description", "runbook_url"} == set(as_object(rule["annotations"]))
    assert f"docs/alerts.md#{as_text(rule['alert']).lower()}" == dig(rule, "annotations", "runbook_url")
    assert dig(rule, "labels", "severity") in {"critical", "warning", "info"}
    section = PAGE.read_text().partition(f"\n## {rule['alert']}\n")[2].partition("\n## ")[0]
    assert len(section.split()) > 20


def test_the_documentation_has_no_alert_that_is_gone() -> None:
    """Every section about an alert is about one of them."""
    assert {as_text(rule["alert"]) for rule in rules()} == set(
        re.findall(r"^## (Assay\w+)$", PAGE.read_text(), re.MULTILINE)
    )


@pytest.mark.parametrize("expression", all_expressions())
def test_every_metric_and_label_is_exposed(expression: str) -> None:
    """By the server and by a push."""
    names = set(re.findall(r"\bassay_\w+", expression))
    labels = {
        label for group in re.findall(r"(?:by|on) \(([^)]*)\)", expression) for label in group.replace(",", " ").split()
    } | set(re.findall(r"(\w+)=~?\"", expression))

    assert names
    assert set() == names - set(LABELS)
    known = set().union(*(LABELS[name] for name in names)) | ADDED_BY_PROMETHEUS | {"__name__"}
    assert set() == labels - known


def test_the_series_of_the_tests_are_exposed() -> None:
    """With labels that these metrics have."""
    series = [each["series"] for test in series_of_tests()["tests"] for each in test["input_series"]]
    named = [(each.partition("{")[0], set(re.findall(r"(\w+)=", each))) for each in series]

    own = [(name, labels - ADDED_BY_PROMETHEUS) for name, labels in named]
    assert [] == [(name, labels) for name, labels in own if not labels <= LABELS.get(name, set())]


def test_promtool_reads_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    """With the variable `cluster` as a regular expression."""
    assert "" == check_rules(tmp_path, expressions_of_panels())


def test_promtool_finds_a_wrong_expression(tmp_path: Path) -> None:
    """So its silence has a meaning."""
    assert check_rules(tmp_path, ["sum by (cluster) (assay_gaps"])


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    """Every panel asks the data source that its user chooses, and has a place of its own."""
    variables = {
        as_text(dig(each, "name")): as_text(dig(each, "type")) for each in as_list(dig(DASHBOARD, "templating", "list"))
    }
    numbers = [dig(panel, "id") for panel in as_list(DASHBOARD["panels"])]
    sources: list[Json] = [
        dig(each, "datasource") for panel in panels() for each in (panel, *as_list(panel["targets"]))
    ]

    assert {"datasource": "datasource", "cluster": "query"} == variables
    assert len(numbers) == len(set(map(str, numbers)))
    assert [] == [source for source in sources if source != {"type": "prometheus", "uid": "${datasource}"}]
    assert [] == [
        panel["title"]
        for panel in panels()
        if 'cluster=~"$cluster"' not in json.dumps(panel["targets"]).replace("\\", "")
    ]


def test_no_panel_covers_another() -> None:
    """In the grid of 24 columns."""
    cells: list[tuple[int, int]] = []
    for panel in as_list(DASHBOARD["panels"]):
        x, y, width, height = (int(str(dig(panel, "gridPos", name))) for name in "xywh")
        cells += [(column, line) for column in range(x, x + width) for line in range(y, y + height)]

    assert len(cells) == len(set(cells))
    assert 24 > max(column for column, _ in cells)
