"""Reports by control: states, numbers and every format."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from scanner.model.outcome import Check
from scanner.model.policy import Action
from scanner.model.population import EvaluatedObjects
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.model.waiver import Waiver, WaiverSet
from scanner.posture.control_checks import (
    CheckSelector,
    CheckSelectorKind,
    Control,
    Framework,
    PolicySelector,
    SelectorKind,
)
from scanner.posture.control_namespaces import ControlInNamespace, NamespaceState
from scanner.posture.controls import ControlState
from scanner.posture.settings import Settings
from scanner.report import FORMATS
from scanner.report.document.by_control import FrameworkSection
from scanner.report.document.document import Document, document_of
from scanner.report.document.sentences import controls_line
from scanner.report.formats.table import render as render_table
from scanner.report.text.screen import Screen
from scanner.store.rows.row_ids import RowIdSet
from tests.report.in_memory import ScanInMemory

from .records import HOSTILE, LIMITS, OWNER, binding, check, hostile_record, policy, small_record
from .test_json import SCHEMA, strict


def control(number: str, *names: str) -> Control:
    """A control that names policies."""
    return Control(number, f"Title {number}", tuple(PolicySelector(SelectorKind.NAME, name) for name in names))


FRAMEWORK = Framework(
    "house",
    "House rules",
    "3",
    (
        control("1", "require-limits"),
        control("2", "max-replicas", "require-owner"),
        control("3", "no-host-network"),
        control("4", "require-limits", "gone"),
        control("5"),
    ),
)


def html(page: Path) -> str:
    """The text of a page."""
    return page.read_text("utf-8")


def document(record: ScanInMemory, *frameworks: Framework) -> Document:
    """The report of a scan by some frameworks."""
    return document_of(record, Settings(frameworks=frameworks or (FRAMEWORK,)))


def as_json(record: ScanInMemory, *frameworks: Framework) -> dict[str, Any]:
    """The JSON report."""
    out = BytesIO()
    FORMATS["json"].render(document(record, *frameworks), out)
    read_back: dict[str, Any] = json.loads(out.getvalue())
    # The form of a score has tests of its own.
    own = {**SCHEMA["properties"]["controls"], "$defs": {**SCHEMA["$defs"], "score": {}}}
    Draft202012Validator(strict(own)).validate(read_back["controls"])
    return read_back


def as_table(record: ScanInMemory, *frameworks: Framework) -> str:
    """The report for a terminal."""
    out = StringIO()
    render_table(document(record, *frameworks), out, screen=Screen(wide=True))
    return out.getvalue()


def test_json_has_the_state_of_each_control() -> None:
    """States, their numbers, and the reasons beside them; a missing policy does not hide a violation."""
    [framework] = as_json(small_record())["controls"]
    states = {each["id"]: each["state"] for each in framework["controls"]}
    assert {"1": "violated", "2": "violated", "3": "notShown", "4": "violated", "5": "notCovered"} == states
    assert {"met": 0, "violated": 3, "errored": 0, "notShown": 1, "notCovered": 1} == framework["states"]
    assert ["no object was evaluated"] == framework["controls"][2]["why"]
    assert ["name gone"] == framework["controls"][3]["unmatched"]


def test_json_has_findings_coverage_and_score_of_each_control() -> None:
    """Only the policies of the control count, and only the kinds that they need: Deployments, not Secrets."""
    first = as_json(small_record())["controls"][0]["controls"][0]
    assert (3, 1, 1, 1) == tuple(first["findings"][name] for name in ("total", "new", "open", "reopened"))
    assert {"kinds": 1, "listed": 1, "objects": 14} == first["coverage"]
    assert (8, 11) == (first["score"]["passed"], first["score"]["decided"])


def test_findings_name_their_controls() -> None:
    """By framework and id; a policy that serves none has an empty list."""
    findings = as_json(small_record())["findings"]
    named = {finding["policy"]: finding["controls"] for finding in findings}
    assert {
        "require-limits": ["house/1", "house/4"],
        "max-replicas": ["house/2"],
        "require-owner": ["house/2"],
    } == named


def test_a_report_without_mappings_has_no_controls() -> None:
    """Neither in JSON nor on the terminal."""
    assert () == document_of(small_record()).controls
    assert "Control" not in as_table(small_record(), Framework("a", "A", "", ())).replace("Controls", "")


def evaluated(name: str, by: str, own: Check, *ids: int) -> EvaluatedObjects:
    """The objects that a check evaluated."""
    return EvaluatedObjects(
        "ValidatingAdmissionPolicy", name, by, "", "", own, "apps/v1", "Deployment", RowIdSet(ids), {}
    )


def test_objects_are_counted_once() -> None:
    """Two policies that evaluated the same object count one object; an older scan does not know."""
    sets = (
        evaluated("max-replicas", "max-replicas-shop", check(LIMITS), 1, 2),
        evaluated("require-owner", "require-owner", check(OWNER), 2, 9),
        evaluated("require-limits", "require-limits-everywhere", check(LIMITS), 7),
    )
    recorded = replace(small_record(), sets=sets)
    numbers = {each.id: each.objects for each in document(recorded).controls[0].controls}
    assert {"1": 1, "2": 3, "3": 0, "4": 1, "5": 0} == numbers
    assert None is document(small_record()).controls[0].controls[0].objects


def test_waivers_make_a_second_state() -> None:
    """The state and the score without waivers stay, and the sums name both."""
    until = date(2026, 12, 31)
    waivers = tuple(
        Waiver(name, "require-limits", until, "planned", "ana", "ben", namespace=name) for name in ("shop", "pay")
    )
    settings = Settings(frameworks=(FRAMEWORK,), waivers=WaiverSet(waivers))
    [framework] = document_of(small_record(), settings).controls
    first = framework.controls[0]
    assert (ControlState.VIOLATED, ControlState.MET) == (first.state, first.state_with_waivers)
    assert (8 / 11, 1.0) == (first.score.value, first.score_with_waivers.value)
    line = "3 violated · 1 not shown · 1 not covered"
    assert f"{line}; with waivers and exceptions 1 met · 1 violated · 2 not shown · 1 not covered" == controls_line(
        framework
    )


def test_previewed_findings_never_count() -> None:
    """A control of a policy that is only assumed to be bound is not covered, and has no findings."""
    record = small_record()
    used = [each for each in record.policies if each.policy.name == "require-limits"]
    assumed = replace(used[0], bindings=(binding("require-limits-everywhere", "require-limits", assumed=True),))
    previewed = replace(
        record,
        policies=(assumed,),
        found=lambda: (
            [replace(each, status="preview") for each in record.findings() if each.finding.policy == "require-limits"]
        ),
    )
    [framework] = document(previewed, Framework("a", "A", "", (control("1", "require-limits"),))).controls
    only = framework.controls[0]
    assert (ControlState.NOT_COVERED, 0, "no check was decided") == (
        only.state,
        only.findings.total,
        only.score.why_not,
    )


def test_the_terminal_has_a_line_for_each_framework_and_the_violated_controls() -> None:
    """Controls that are met, not shown or not covered are in the sum alone; a missing policy is named."""
    text = as_table(small_record())
    assert (
        "House rules (3): 3 violated · 1 not shown · 1 not covered\n  - control 4: no policy has the name gone\n"
        in text
    )
    assert "Title 1" in text
    assert "Title 3" not in text


def test_the_page_of_controls_links_policies(tmp_path: Path) -> None:
    """State, reasons and links, the controls without a judged policy folded below; the pages of policies link back."""
    FORMATS["html"].render(document(small_record()), tmp_path / "report")
    page = html(tmp_path / "report" / "controls.html")
    assert '<a href="policies/require-limits.html">' in page
    assert "no policy has the name gone" in page
    assert "no object was evaluated" in page
    assert page.index("no object was evaluated") < page.index("<summary>1 control without a judged policy</summary>")
    assert 'href="controls.html"' in html(tmp_path / "report" / "index.html")
    policy_page = html(tmp_path / "report" / "policies" / "require-limits.html")
    assert re.search(r'<a href="\.\./controls/house-4-\w+\.html"><bdi>house/4</bdi>', policy_page)


def test_controls_by_namespace_have_a_page(tmp_path: Path) -> None:
    """The states of covered controls; the others are folded with their number. The page of all controls leads there."""
    FORMATS["html"].render(document(small_record()), tmp_path / "report")
    page = html(tmp_path / "report" / "controls_by_namespace.html")
    assert "<summary>1 control without a judged policy</summary>" in page
    assert "the mapping selects no policy" in page
    assert re.search(r'href="controls/house-1-\w+\.html"', page)
    assert '<i aria-hidden="true">✓</i>enforced</span>' in page
    assert 'href="controls_by_namespace.html"' in html(tmp_path / "report" / "controls.html")
    assert "What admission answers to a violation" in html(next((tmp_path / "report" / "controls").glob("house-1-*")))


def test_a_control_by_check_shows_the_problems_of_its_check_alone(tmp_path: Path) -> None:
    """Its page has the problems of its check, and none of the same policies or of others."""
    checks = {"own": LIMITS, "other": "no such expression"}
    controls = tuple(
        Control(name, name, checks=(CheckSelector(CheckSelectorKind.EXPRESSION, text),))
        for name, text in checks.items()
    )
    FORMATS["html"].render(document(small_record(), Framework("a", "A", "", controls)), tmp_path / "report")
    pages = {page.stem.split("-")[1]: html(page) for page in (tmp_path / "report" / "controls").iterdir()}
    assert 'href="../f/' in pages["own"]
    assert "No findings." in pages["other"]


def test_every_control_has_a_page(tmp_path: Path) -> None:
    """Its state, its policies and the worst problems of those in force."""
    FORMATS["html"].render(document(small_record()), tmp_path / "report")
    pages = {re.sub(r"-\w+$", "", page.stem): html(page) for page in (tmp_path / "report" / "controls").iterdir()}
    assert {f"house-{number}" for number in "12345"} == pages.keys()
    assert "no policy has the name gone" in pages["house-4"]
    assert "../policies/require-limits.html" in pages["house-4"]
    assert 'href="../f/' in pages["house-1"]
    assert "The control selects no policy of this scan." in pages["house-5"]
    assert "No findings." in pages["house-5"]


def test_no_page_of_controls_without_mappings(tmp_path: Path) -> None:
    """The navigation has no empty entry."""
    FORMATS["html"].render(document_of(small_record()), tmp_path / "report")
    assert not (tmp_path / "report" / "controls.html").exists()
    assert "controls.html" not in html(tmp_path / "report" / "index.html")


def test_hostile_names_of_policies_and_mappings_stay_text(tmp_path: Path) -> None:
    """Every hostile text as a policy, a title and a reason."""
    everything = tuple(
        Control(text, text, (PolicySelector(SelectorKind.NAME, text), PolicySelector(SelectorKind.LABEL, text, text)))
        for text in HOSTILE
    )
    framework = Framework("h", HOSTILE[0], HOSTILE[1], everything)
    FORMATS["html"].render(document(hostile_record(), framework), tmp_path / "report")
    page = html(tmp_path / "report" / "controls.html")
    page += "".join(map(html, (tmp_path / "report" / "controls").iterdir()))
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x1b" not in page
    assert "\x1b" not in as_table(hostile_record(), framework)
    assert HOSTILE[0] == as_json(hostile_record(), framework)["controls"][0]["title"]


def test_a_clean_policy_that_refuses_shows_its_control_as_met() -> None:
    """Every kind that the policy needs is listed, and an object passed."""
    assert "1 met" == controls_line(clean_framework("Deny"))


def test_a_policy_that_refuses_nothing_shows_no_control_as_met() -> None:
    """A new violation would be admitted, and the namespace is named."""
    framework = clean_framework("Warn", "Audit")
    why = ("violations are only warned of or audited in shop",)
    assert ("1 not shown", why) == (controls_line(framework), framework.controls[0].why)
    assert (ControlInNamespace("shop", NamespaceState.WARNED, 2),) == framework.controls[0].namespaces


def clean_framework(*actions: Action) -> FrameworkSection:
    """A control whose only policy has passed two objects, under a binding with some actions."""
    record = small_record()
    clean = replace(
        record,
        policies=(
            replace(
                record.policies[0], policy=policy("clean", LIMITS), bindings=(binding("clean", "clean", *actions),)
            ),
        ),
        tallies={
            TallyKey("clean", "clean", "", "", check(LIMITS), "apps/v1", "Deployment", "shop", OutcomeName.PASSED): 2
        },
        found=lambda: (()),
    )
    [framework] = document(clean, Framework("a", "A", "", (control("1", "clean"),))).controls
    return framework
