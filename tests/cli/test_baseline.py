"""`--baseline` and `--min-severity`: every output follows them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_waivers import waiver

Write = Callable[[str, str], Path]
RULE = bound("named", expression="object.metadata.name == 'good'")
WEAK = bound("weak", expression="!has(object.data)").replace(
    "  name: weak\nspec:\n  match", "  name: weak\n  annotations: {assay.dev/severity: low}\nspec:\n  match"
)
OLD, NEW = [f"old-{number}" for number in range(6)], ["new-a", "new-b", "new-c"]
PULL_REQUEST = ("scan", "--from", "cluster", "--db", "branch.db", "-q", "--baseline", "main.json")


@pytest.fixture
def branch(assay: Assay, write: Write, home: Path) -> Assay:
    """A pull request with three new problems beside the six of the main branch, whose report is `main.json`."""
    write("cluster/policy.yaml", RULE)
    write("cluster/old.yaml", "---\n".join(map(config_map, OLD)))
    assay("scan", "--from", "cluster", "--db", "main.db", "-q", "--export", "json=main.json")
    write("cluster/new.yaml", "---\n".join(map(config_map, NEW)))
    return assay


def names(text: str) -> set[str]:
    """The objects that a text names."""
    return set(re.findall(r"(?:old|new)-\w", text))


def test_markdown_names_what_is_new_since_the_baseline(branch: Assay) -> None:
    """In a list of its own, and in the numbers of every table."""
    text = branch(*PULL_REQUEST, "-o", "markdown").stdout.decode()
    new = text.split("## New since main.json (3 problems)\n")[1].split("\n## ")[0]

    assert set(NEW) == names(new)
    assert text.startswith("# Complete: 9 problems would be refused · 3 new\n")
    assert "- Changes: 3 problems new since main.json; 0 problems of main.json are not open\n" in text
    assert "| named | medium | Deny | 9 | 9 | 3 |" in text
    assert "| shop | 9 | 9 | 3 |" in text
    assert 6 == text.count("| open, ")


def test_many_worse_problems_displace_no_new_one(assay: Assay, write: Write) -> None:
    """The worst problems are ten, and a new one may be less bad."""
    write("cluster/policy.yaml", f"{RULE}---\n{WEAK}")
    write("cluster/old.yaml", "---\n".join(config_map(f"old-{letter}") for letter in "abcdefghijklmn"))
    assay("scan", "--from", "cluster", "--db", "main.db", "-q", "--export", "json=main.json")
    write("cluster/new.yaml", config_map("good") + "data: {x: y}\n")
    text = assay(*PULL_REQUEST, "-o", "markdown").stdout.decode()

    assert "ConfigMap shop/good | weak" in text.split("## New since main.json (1 problem)\n")[1].split("\n## ")[0]


def test_sarif_follows_the_baseline(branch: Assay) -> None:
    """`baselineState` is new for the new problems alone, and code scanning shows them."""
    [run] = json.loads(branch(*PULL_REQUEST, "-o", "sarif").stdout)["runs"]
    states = {names(each["message"]["text"]).pop(): each["baselineState"] for each in run["results"]}

    assert {**dict.fromkeys(OLD, "unchanged"), **dict.fromkeys(NEW, "new")} == states


def failing(ran: bytes) -> set[str]:
    """The objects whose test cases fail."""
    cases = ET.fromstring(ran).iter("testcase")  # noqa: S314 - written by the test
    return {
        name
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
        for name in names(case.get("name") or "")
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--fail-on", "new"), NEW),
        (("--fail-on", "deny"), [*OLD, *NEW]),
        (("--fail-on", "errored"), []),
        (("--fail-on", "new", "--junit-fail-all"), [*OLD, *NEW]),
        (("--junit-fail-all",), [*OLD, *NEW]),
        ((), []),
    ],
)
def test_junit_fails_for_what_a_gate_names(branch: Assay, flags: tuple[str, ...], expected: list[str]) -> None:
    """As the exit code does; with `--junit-fail-all` for every violation and error."""
    assert set(expected) == failing(branch(*PULL_REQUEST, *flags, "-o", "junit").stdout)


@pytest.mark.long
def test_stderr_names_what_is_new_since_the_baseline(branch: Assay) -> None:
    """The line of the gate has the problems, and the line of the scan their number."""
    ran = branch(*(flag for flag in PULL_REQUEST if flag != "-q"), "--fail-on", "new", "-o", "json")
    [line] = [line for line in ran.stderr.splitlines() if "gate failed" in line]

    assert 1 == ran.code
    assert "gate failed: new (3 new problems since main.json: p-" in line
    assert set(NEW) == names(line)
    assert " is complete: 9 problems, 3 new since main.json" in ran.stderr


def test_json_and_csv_follow_the_baseline(branch: Assay, home: Path) -> None:
    """The report names its baseline, and has every finding."""
    report: Any = branch(*PULL_REQUEST, "-o", "json", "--export", "csv=all.csv").report
    statuses = {each["object"]["name"]: each["status"] for each in report["findings"]}

    assert {**dict.fromkeys(OLD, "open"), **dict.fromkeys(NEW, "new")} == statuses
    assert {"scan": None, "file": "main.json", "gone": 0} == report["changes"]["baseline"]
    assert (3, 6) == (report["changes"]["new"], report["changes"]["open"])
    assert 3 == (home / "all.csv").read_text().count(",new,")


def test_the_problems_of_each_group_follow_the_baseline(branch: Assay) -> None:
    """By policy, namespace and owner the JSON report counts three new ones, as in its verdict."""
    report: Any = branch(*PULL_REQUEST, "-o", "json").report
    by = report["verdict"]["problemsBy"]
    groups = [*by["policies"], *by["namespaces"]["groups"], *by["owners"]["groups"]]

    assert 3 == report["verdict"]["problems"]["new"]
    assert [3, 3, 3] == [group["new"] for group in groups]


def test_metrics_follow_the_baseline(branch: Assay) -> None:
    """Three new problems, as in the verdict."""
    text = branch(*PULL_REQUEST, "-o", "openmetrics").stdout.decode()
    new = [line for line in text.splitlines() if re.match(r"assay_\w*problems_new\{", line)]

    assert ["3.0"] == [line.rpartition(" ")[2] for line in new]


def test_the_terminal_follows_the_baseline(branch: Assay) -> None:
    """The verdict and the ages of the problems."""
    text = branch(*PULL_REQUEST).stdout.decode()

    assert "9 problems would be refused · 3 new" in text
    assert set(NEW) == {name for line in text.splitlines() if " new " in line for name in names(line)}


def test_the_pages_follow_the_baseline(branch: Assay, home: Path) -> None:
    """Each new problem has its mark, and no other one."""
    branch(*PULL_REQUEST, "--html", "pages")
    data = (home / "pages" / "index.html").read_text()

    assert "3 new" in data


def test_problems_of_the_baseline_that_are_not_open_are_counted(branch: Assay, home: Path) -> None:
    """They are not called resolved, because this scan may have another scope."""
    (home / "cluster" / "old.yaml").write_text(config_map("old-0"))
    text = branch(*PULL_REQUEST, "-o", "markdown").stdout.decode()

    assert "; 5 problems of main.json are not open\n" in text


def test_a_stored_scan_is_a_baseline_of_every_output(branch: Assay) -> None:
    """An older scan than the previous one, by its name."""
    scan = ("scan", "--from", "cluster", "--db", "main.db", "-q")
    branch(*scan)
    plain = branch("report", "--db", "main.db", "-o", "markdown", "--fail-on", "new", "--baseline", "last~1")
    again = branch(*scan, "--baseline", "last~1", "-o", "markdown")

    assert set(NEW) == names(plain.stdout.decode().split("## New since scan ")[1].split("\n## ")[0])
    assert "## New since scan " in again.stdout.decode()
    assert "status | new" not in branch(*scan, "-o", "markdown").stdout.decode()


def test_statuses_follow_the_gate_new(assay: Assay, write: Write) -> None:
    """No scan of this scope came before: the gate counts each problem as new, and so does every output."""
    write("cluster/all.yaml", f"{RULE}---\n{config_map('old-a')}")
    assay("scan", "--from", "cluster", "-q")
    ran = assay("scan", "--from", "cluster", "-q", "-n", "shop", "--fail-on", "new", "-o", "junit")

    assert (1, {"old-a"}) == (ran.code, failing(ran.stdout))
    report: Any = assay("report", "-o", "json", "--fail-on", "new").report
    assert ["new"] == [each["status"] for each in report["findings"]]


def test_a_finding_that_was_waived_and_is_waived_is_not_new(assay: Assay, write: Write) -> None:
    """When its waiver ends, it is new: the gate fails for it."""
    write("cluster/all.yaml", f"{RULE}---\n{config_map('old-a')}")
    write("waivers.yaml", waiver("accepted", "namespace: shop", policy="named"))
    assay(
        "scan", "--from", "cluster", "--db", "main.db", "--waivers", "waivers.yaml", "-q", "--export", "json=main.json"
    )
    waived: Any = assay(*PULL_REQUEST, "--waivers", "waivers.yaml", "-o", "json", "--fail-on", "new")
    ended: Any = assay(
        *(flag.replace("branch.db", "ended.db") for flag in PULL_REQUEST), "-o", "json", "--fail-on", "new"
    )

    assert (0, ["open"]) == (waived.code, [each["status"] for each in waived.report["findings"]])
    assert (1, ["new"]) == (ended.code, [each["status"] for each in ended.report["findings"]])


@pytest.fixture
def severities(assay: Assay, write: Write, home: Path) -> Assay:
    """A scan with two problems of a medium policy and one of a low policy, as a report in every format."""
    documents = (RULE, WEAK, config_map("old-a"), config_map("old-b") + "data: {x: y}\n")
    write("cluster/all.yaml", "---\n".join(documents))
    exports = (f"--export={name}={name}.out" for name in ("markdown", "junit", "sarif", "json"))
    assay("scan", "--from", "cluster", "-q", "--min-severity", "medium", "--junit-fail-all", *exports)
    return assay


def test_markdown_leaves_out_lower_severities_and_counts_them(severities: Assay, home: Path) -> None:
    """In every table; the verdict is that of the scan."""
    text = (home / "markdown.out").read_text()

    assert "\n1 problem below medium is left out (--min-severity medium).\n" in text
    assert "## Worst problems (2 problems)" in text
    assert "weak" not in text
    assert "| shop | 2 | 2 | 2 |" in text
    assert "| unowned | 2 | 2 | 2 |" in text
    assert text.startswith("# Complete: 3 problems would be refused")


def test_junit_leaves_out_lower_severities_and_counts_them(severities: Assay, home: Path) -> None:
    """The number is a skipped case."""
    root = ET.fromstring((home / "junit.out").read_text())  # noqa: S314 - written by the test
    suites = {suite.get("name"): suite for suite in root}

    assert {"named", "Left out"} == set(suites)
    assert ["1 finding below medium is left out (--min-severity medium)"] == [
        skipped.get("message") for skipped in suites["Left out"].iter("skipped")
    ]


def test_sarif_leaves_out_lower_severities_and_counts_them(severities: Assay, home: Path) -> None:
    """The number is a notification, and the run is successful."""
    [run] = json.loads((home / "sarif.out").read_text())["runs"]
    [invocation] = run["invocations"]

    assert ["named", "named"] == [each["ruleId"] for each in run["results"]]
    assert ["named"] == [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [
        {
            "level": "note",
            "message": {"text": "1 finding below medium is left out (--min-severity medium)"},
        }
    ] == invocation["toolExecutionNotifications"]
    assert invocation["executionSuccessful"]


def test_json_leaves_out_nothing(severities: Assay, home: Path) -> None:
    """Programs filter by themselves."""
    assert 3 == len(json.loads((home / "json.out").read_bytes())["findings"])


def region(ran: bytes) -> list[int]:
    """The lines of a SARIF report."""
    [run] = json.loads(ran)["runs"]
    return [each["locations"][0]["physicalLocation"]["region"]["startLine"] for each in run["results"]]


def test_sarif_names_the_line_of_the_deciding_field(assay: Assay, write: Write) -> None:
    """Of a value, of an item of a list, and of what is around a missing field; also when a stored scan is reported."""
    rules = (
        bound("a-value", expression="object.data.x != 'z'"),
        bound("b-label", expression="object.metadata.labels['example.com/tier'] != 'gold'"),
        bound("c-missing", expression="has(object.metadata.annotations)"),
    )
    write("policies.yaml", "---\n".join(rules))
    write(
        "cluster/all.yaml",
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n    labels:\n"
        "      example.com/tier: gold\n  data:\n    w: v\n    x: z\n",
    )
    scanned = assay("scan", "--from", "cluster", "-f", "policies.yaml", "-q", "-o", "sarif")

    assert [12, 9, 6] == region(scanned.stdout)
    write("cluster/all.yaml", "")
    assert scanned.stdout == assay("report", "-o", "sarif").stdout


def test_standard_input_is_named(assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as a live cluster: before the scan, and for a stored one."""
    refused = assay("scan", "--from", "-", "-o", "sarif")

    assert 2 == refused.code
    assert "the objects from standard input have none" in refused.stderr
    assert "live cluster" not in refused.stderr
