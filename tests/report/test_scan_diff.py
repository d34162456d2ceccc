"""The difference of two scans as a table, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from scanner.model.json import JsonObject
from scanner.model.outcome import Gap, GapKind
from scanner.model.population import Workload
from scanner.model.resource import UserInfo
from scanner.model.scans.cause import Cause, CauseKind
from scanner.model.scans.method import Method
from scanner.model.scans.scan import ClusterIdentity, Scan, ScanState, Scope
from scanner.posture.history.scan_diff import (
    DifferingProblem,
    FindingChange,
    ProblemChange,
    ProblemPart,
    ProblemState,
    RuleDifference,
    RuleKind,
    ScanDiff,
)
from scanner.report.diff import json as diff_json
from scanner.report.diff import markdown, table
from scanner.report.diff.words import message_lines, rule_lines

from .records import BEFORE, FINISHED, HOSTILE, STARTED, check
from .test_json import strict

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "diff.schema.json").read_text("utf-8"))
VAP = "ValidatingAdmissionPolicy"
WEB = Workload("apps/v1", "Deployment", "shop", "web")
NOW = Scan(
    "20260302T140000Z-aaaaaa",
    ClusterIdentity("prod", "6d1c", "v1.36.0"),
    STARTED,
    FINISHED,
    ScanState.COMPLETE,
    Scope(),
    "0.2.0",
    policy_set_digest="ab" * 32,
)
EARLIER = replace(
    NOW,
    id="20260301T140000Z-bbbbbb",
    started_at=BEFORE,
    finished_at=BEFORE + timedelta(seconds=9),
    tool_version="0.1.0",
)
VIOLATED = ProblemState(2, ("violated",), "Deny", denies=True, excepted=False, message="set resource limits")
NEW = DifferingProblem(
    id="p-0123456789ab",
    change=ProblemChange.NEW,
    cause=Cause(CauseKind.POLICY, (CauseKind.OBJECT_CREATED,)),
    language=VAP,
    policy="require-limits",
    check=check("has(object.spec.limits)"),
    workload=WEB,
    first_seen=FINISHED,
    resolved_at=None,
    resolution="",
    parts=(),
    before=None,
    now=VIOLATED,
)
CHANGED = replace(
    NEW,
    id="p-0123456789ac",
    change=ProblemChange.CHANGED,
    parts=(ProblemPart.MESSAGE, ProblemPart.EXCEPTION),
    before=VIOLATED,
    now=replace(VIOLATED, denies=False, excepted=True, message="set cpu and memory limits in every container"),
)
RESOLVED = replace(
    NEW,
    id="p-0123456789ad",
    change=ProblemChange.RESOLVED,
    cause=Cause(CauseKind.OBJECT_CHANGED),
    resolution="fixed",
    resolved_at=FINISHED,
    before=VIOLATED,
    now=None,
)
NOT_CHECKED = replace(
    NEW,
    id="p-0123456789ae",
    change=ProblemChange.NOT_CHECKED,
    cause=Cause(CauseKind.COVERAGE),
    before=VIOLATED,
    now=replace(VIOLATED, findings=0, unchecked=2),
)
SEEN_FIRST = replace(NEW, id="p-0123456789af", cause=Cause(CauseKind.COVERAGE))
SECRETS = Gap(GapKind.LIST, "v1/Secret", "secrets is forbidden: User *x* cannot list resource secrets")


def spec(expression: str) -> JsonObject:
    """The spec of a policy."""
    return {"failurePolicy": "Fail", "validations": [{"expression": expression, "message": "set resource limits"}]}


RULES = (
    RuleDifference(
        RuleKind.POLICY, VAP, "require-limits", spec("a.all(c,\n  has(c))"), spec("a.all(c,\n  has(c.cpu))")
    ),
    RuleDifference(RuleKind.BINDING, VAP, "require-limits/all", None, {"policyName": "require-limits"}),
    RuleDifference(RuleKind.PARAM, "", "ConfigMap shop/limits", {"data": {"most": "5"}}, None),
)


def difference(*problems: DifferingProblem, **more: Any) -> ScanDiff:
    """A difference with these problems."""

    def listed(kind: CauseKind, limit: int | None) -> Iterator[DifferingProblem]:
        return iter([each for each in problems if each.cause.kind is kind][:limit])

    keys = [(each.cause.kind, each.change) for each in problems]
    made = ScanDiff(
        before=EARLIER,
        now=NOW,
        methods=(Method(), Method()),
        incomparable=(),
        rules_changed=(CauseKind.POLICY, CauseKind.BINDING, CauseKind.PARAM, CauseKind.ASSAY),
        rules=RULES,
        problems={key: keys.count(key) for key in keys},
        findings={(kind, FindingChange(change.value)): 2 for kind, change in keys if change.value != "reopened"},
        unchecked=3,
        list_problems=listed,
    )
    return replace(made, **more)


ORDINARY = difference(NEW, CHANGED, RESOLVED)
INCOMPARABLE = difference(
    RESOLVED,
    before=replace(
        EARLIER, scope=Scope(namespaces=("shop",), operation="update"), requester=UserInfo("jane", groups=("ops",))
    ),
    now=replace(NOW, requester=UserInfo("scanner")),
    methods=(Method(kyverno_compat="reports"), Method(network=True, policy_files=("new.yaml",))),
    incomparable=("scope", "operation", "requester", "mode"),
    rules_changed=(CauseKind.OPTIONS,),
    rules=(),
    unchecked=0,
)


def hostile() -> ScanDiff:
    """Names, messages and texts that would be markup or steer a terminal."""
    text = "".join(HOSTILE)
    problem = replace(
        NEW,
        policy=text,
        workload=Workload("v1", text, text, text),
        now=replace(VIOLATED, message=f"| `x` ``` <script>alert(1)</script> @all [a](b) {text}"),
    )
    rule = RuleDifference(RuleKind.PARAM, "", text, None, {"data": {text: "````\n```\n<b>"}})
    return difference(problem, rules=(rule,), now=replace(NOW, cluster=ClusterIdentity(text)))


@pytest.mark.parametrize("diff", [ORDINARY, INCOMPARABLE], ids=["ordinary", "incomparable"])
def test_forms_of_a_difference(diff: ScanDiff, snapshot: SnapshotAssertion) -> None:
    """The incomparable parts come first in each."""
    for lines in (table.lines(diff, None), markdown.lines(diff, None), diff_json.lines(diff)):
        assert "\n".join(lines) == snapshot


@pytest.mark.parametrize("diff", [ORDINARY, INCOMPARABLE, hostile(), difference(rules_changed=(), rules=())])
def test_json_follows_its_schema(diff: ScanDiff) -> None:
    """And has no property besides."""
    document = json.loads("\n".join(diff_json.lines(diff)))
    Draft202012Validator(strict(SCHEMA), format_checker=Draft202012Validator.FORMAT_CHECKER).validate(document)


def test_schema_is_a_schema() -> None:
    """It has the version of the documents."""
    Draft202012Validator.check_schema(SCHEMA)
    assert diff_json.VERSION == SCHEMA["properties"]["schemaVersion"]["const"]


def test_the_table_fits_a_terminal() -> None:
    """A long line of a rule is folded."""
    expression = " && ".join(f"has(object.spec.field{number})" for number in range(20))
    rule = RuleDifference(RuleKind.POLICY, VAP, "long", spec("true"), spec(expression))
    for diff in (ORDINARY, INCOMPARABLE, difference(CHANGED, rules=(rule,))):
        assert 80 >= max(map(len, table.lines(diff, None)))


def test_a_long_line_of_a_rule_ends_after_a_mark() -> None:
    """No name is broken."""
    expression = "object.spec.template.spec.containers.all(c, quantity(c.resources.limits.memory).compareTo(quantity('4Gi')) <= 0)"
    rule = RuleDifference(RuleKind.POLICY, VAP, "long", spec("true"), spec(expression))
    lines = list(table.lines(difference(rules=(rule,)), None))
    begin = next(number for number, line in enumerate(lines) if "containers.all" in line)
    assert ["quantity(c.", "resources.limits.memory).compareTo(quantity('4Gi')) <= 0)"] == [
        lines[begin].split()[-1],
        lines[begin + 1].strip(),
    ]


def test_a_message_has_no_expression() -> None:
    """Unless two messages differ in the expression alone."""
    one, other = (f"expression '{text}' resulted in error: no such key: limits" for text in ("a < 1", "a < 2"))
    new = replace(NEW, now=replace(VIOLATED, message=one))
    assert [("", "evaluation fails: no such key: limits")] == list(message_lines(new))
    fails = replace(CHANGED, before=VIOLATED, now=replace(VIOLATED, message=other))
    assert [("-", VIOLATED.message), ("+", "evaluation fails: no such key: limits")] == list(message_lines(fails))
    edited = replace(CHANGED, before=new.now, now=fails.now)
    assert [("-", one), ("+", other)] == list(message_lines(edited))


def test_the_limit_counts_the_rest() -> None:
    """Of problems, and of rules."""
    diff = difference(NEW, replace(NEW, id="p-0123456789ff"), RESOLVED)
    for form in (table, markdown):
        text = "\n".join(form.lines(diff, 1))
        assert ["1 more problem", "2 more rules"] == [
            each for each in ("1 more problem", "2 more rules") if each in text
        ]
        assert "p-0123456789ff" not in text
        assert "p-0123456789ad" in text


def test_hostile_text_is_printable_in_a_table() -> None:
    """It moves no cursor."""
    assert all(line.isprintable() for line in table.lines(hostile(), None))


class Tags(HTMLParser):
    """Collects the tags of a document."""

    def __init__(self) -> None:
        """Begin without a tag."""
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Keep a tag."""
        self.tags.append(tag)


def test_hostile_text_is_no_markup_in_markdown() -> None:
    """A table keeps its columns, a block its end, and nothing is a tag."""
    lines = list(markdown.lines(hostile(), None))
    assert all(line.isprintable() for line in lines)
    rows = [line for line in lines if line.startswith("|")]
    assert {9} == {line.replace("\\\\", "").replace("\\|", "").count("|") for line in rows}
    fence = next(line for line in lines if line.endswith("`diff")).removesuffix("diff")
    assert len(fence) == 5
    opened = lines.index(f"{fence}diff")
    parser = Tags()
    parser.feed("\n".join([*lines[:opened], *lines[lines.index(fence) :]]))
    assert [] == parser.tags
    [row] = rows[2:]
    assert "\\`x\\` \\`\\`\\` &lt;script&gt;" in row


def test_a_rule_of_many_lines_is_not_compared_line_by_line() -> None:
    """The time would grow with their square."""
    before, now = ({"data": [f"{name} {number}" for number in range(3000)]} for name in "ab")
    assert ["@@ too long to compare: 3,001 lines before, 3,001 lines now, equal up to line 1 @@"] == rule_lines(
        RuleDifference(RuleKind.PARAM, "", "big", before, now)
    )


def incomplete() -> ScanDiff:
    """Two incomplete scans: a problem of which the later one checked nothing, and one that the earlier one may have missed."""
    scans = {
        "before": replace(EARLIER, state=ScanState.INCOMPLETE),
        "now": replace(NOW, state=ScanState.INCOMPLETE, preview=True),
    }
    return difference(NOT_CHECKED, SEEN_FIRST, gaps=((SECRETS,), (SECRETS,) * 12), **scans)


def test_a_table_begins_with_what_the_later_scan_did_not_check() -> None:
    """With the gaps, before anything else; then the earlier scan, and that a scan is a preview. It fits 80 columns."""
    lines = list(table.lines(incomplete(), 50))
    text = "\n".join(lines)

    assert "INCOMPLETE: The later scan did not scan 12 items. 1 open problem was not checked." == " ".join(
        " ".join(lines[:2]).split()
    )
    assert 10 == text.count("  v1/Secret: secrets is forbidden: User *x* cannot list resource secrets") - 1
    assert "  2 more items: print all with --limit 0" in lines
    assert "Incomplete: The earlier scan did not scan 1 item." in text
    assert "1 problem of the cause coverage may have existed then" in " ".join(text.split())
    assert "Preview: The later scan assumed bindings that are not in force" in text
    assert 80 >= max(map(len, lines))


def test_a_table_marks_problems_that_a_scan_did_not_check() -> None:
    """In their row, and in the numbers."""
    text = "\n".join(table.lines(incomplete(), 50))

    assert "  not checked  p-0123456789ae  medium  require-limits" in text
    assert "2 findings not checked, Deny" in text
    assert "  new, not checked before  p-0123456789af" in text
    assert "Cause: the earlier or the later scan did not check it\n  problems: 1 new, 1 not checked\n" in text


def test_markdown_marks_what_was_not_checked() -> None:
    """The reason of a gap is text, never markup."""
    text = "\n".join(markdown.lines(incomplete(), 50))

    assert "**INCOMPLETE**: The later scan did not scan 12 items. 1 open problem was not checked." in text
    assert r"- v1/Secret: secrets is forbidden: User \*x\* cannot list resource secrets" in text
    assert "**Preview**: The later scan" in text
    assert "| not checked | p-0123456789ae |" in text
    assert "| new, not checked before | p-0123456789af |" in text


def test_json_marks_what_was_not_checked() -> None:
    """The scans have their gaps, the problems their marks, the totals their numbers."""
    document = json.loads("\n".join(diff_json.lines(incomplete())))
    Draft202012Validator(strict(SCHEMA)).validate(document)
    unchecked, first = (
        document["problems"] if document["problems"][0]["change"] != "new" else document["problems"][::-1]
    )

    assert ("incomplete", True, 12) == (
        document["now"]["state"],
        document["now"]["preview"],
        len(document["now"]["gaps"]),
    )
    assert {"kind": "list", "where": SECRETS.where, "why": SECRETS.why} == document["before"]["gaps"][0]
    assert (1, 1) == (document["totals"]["problems"]["notChecked"], document["totals"]["problems"]["new"])
    assert ("notChecked", False, 2) == (
        unchecked["change"],
        unchecked["notCheckedBefore"],
        unchecked["now"]["notChecked"],
    )
    assert ("new", True) == (first["change"], first["notCheckedBefore"])
