"""Reports state how far they stand for admission: dependence on the user, previews, objects out of scope."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest

from scanner.model.policy import Policy
from scanner.model.reading import Auditability, CheckReading, Reading
from scanner.model.resource import UserInfo
from scanner.model.scans.health import HealthKind
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import PolicyRecord, Scope
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.posture.score import Scores, default_severity
from scanner.report import FORMATS
from scanner.report.document.counts import CheckCounts
from scanner.report.document.document import document_of
from scanner.report.formats.table import render as render_table
from scanner.report.text.screen import Screen
from scanner.report.text.titles import AUDITABILITY, AUDITABILITY_MEANINGS, HEALTH_MEANINGS, HEALTH_TITLES
from tests.report.in_memory import ScanInMemory

from .pages import places_of
from .records import binding, check, finding, policy, small_record, with_findings

ASKS = check("request.userInfo.username == 'bob'")
PLAIN = check("object.spec.x == 1")


def record_of(*, requester: bool = True, assumed: bool = False, of: Policy | None = None) -> ScanInMemory:
    """A record with ten outcomes of a check that reads the user, ten of another check, and one finding of each."""
    shown = of or policy("a", ASKS.expression, PLAIN.expression)
    reading = Reading(
        (Auditability.REQUESTER,), (CheckReading(ASKS, (Auditability.REQUESTER,)), CheckReading(PLAIN, ()))
    )
    findings = [
        finding("web", of="a", by="b", checked=check, status="preview" if assumed else "new") for check in (ASKS, PLAIN)
    ]
    tallies = {
        TallyKey("a", "b", "", "", checked, "apps/v1", "Deployment", "shop", outcome, depends): number
        for checked, depends in ((ASKS, requester), (PLAIN, False))
        for outcome, number in ((OutcomeName.PASSED, 9), (OutcomeName.VIOLATED, 1))
    }
    record = replace(
        small_record(),
        policies=(PolicyRecord(shown, (binding("b", "a", "Deny", assumed=assumed),), 10, reading=reading),),
        tallies=tallies,
        health=(),
    )
    return with_findings(record, findings)


def in_json(record: ScanInMemory) -> Any:
    """The JSON report."""
    out = BytesIO()
    FORMATS["json"].render(document_of(record), out)
    return json.loads(out.getvalue())


def in_table(record: ScanInMemory) -> str:
    """The wide table."""
    out = StringIO()
    render_table(document_of(record), out, environ={"COLUMNS": "160"}, screen=Screen(wide=True))
    return out.getvalue()


def test_outcomes_that_depend_on_the_user_are_counted_apart() -> None:
    """Passes are included, for the scan and for the policy."""
    document = document_of(record_of())
    assert CheckCounts(passed=9, violated=1) == document.requester == document.policies[0].requester
    assert 20 == document.totals.total


def test_json_counts_dependent_outcomes_apart() -> None:
    """JSON marks the findings too."""
    report = in_json(record_of())
    assert (9, 18) == (report["requester"]["passed"], report["totals"]["passed"])
    assert [True, False] == [finding["dependsOnRequester"] for finding in report["findings"]]
    assert ["dependsOnRequester"] == report["policies"][0]["auditability"]
    assert [["dependsOnRequester"], []] == sorted(
        (check["auditability"] for check in report["policies"][0]["checks"]), reverse=True
    )


def test_the_table_states_dependent_outcomes() -> None:
    """They have a line of their own, and a note beside the policy."""
    table = in_table(record_of())
    assert (
        "10 of 20 outcomes (9 passed, 1 violated) depend on the user: they hold for system:serviceaccount:audit:assay "
        "and may differ for other users"
    ) in " ".join(table.split())
    assert "depends on requester" in table
    assert "Requester" not in in_table(record_of(requester=False))


def test_html_states_dependent_outcomes(tmp_path: Path) -> None:
    """They are on the summary, on the page of the policy, and in the place of each finding."""
    FORMATS["html"].render(document_of(record_of()), tmp_path / "report")
    assert "10 of 20 outcomes" in (tmp_path / "report" / "index.html").read_text("utf-8")
    page = (tmp_path / "report" / "policies" / "a.html").read_text("utf-8")
    assert "9 passed, 1 violated, 0 errored checks depend on the user, and may differ for other users." in page
    assert 1 == places_of(tmp_path / "report").count(
        'it may differ for other users <span class="tag">depends on requester</span>'
    )


def test_outcomes_that_depend_on_the_user_are_undecided() -> None:
    """A policy that exempts the scanner does not look clean: the bounds of the score include these outcomes."""
    score = Scores(record_of(), default_severity).score_scan()
    assert (9, 10, 10) == (score.passed, score.decided, score.undecided)
    assert (0.9, 0.45, 0.95) == (score.value, score.low, score.high)


def test_checks_that_are_not_auditable_are_counted_and_undecided() -> None:
    """Such a check is not skipped: only a server could have decided it."""
    key = TallyKey("a", "b", "", "", PLAIN, "apps/v1", "Deployment", "shop", OutcomeName.NOT_AUDITABLE)
    record = record_of(requester=False)
    record = replace(record, tallies={**record.tallies, key: 5})
    document = document_of(record)
    assert (0, 5, 25) == (document.totals.skipped, document.totals.not_auditable, document.totals.total)
    assert (20, 5) == (document.score.decided, document.score.undecided)


def test_previews_do_not_count_for_the_score() -> None:
    """A policy without a binding has no effect on the score; its findings are shown."""
    document = document_of(record_of(assumed=True))
    assert "no check was decided" == document.score.why_not
    assert (2, 0, 0, 2) == (
        document.findings_total.total,
        document.changes.new,
        document.changes.open,
        document.changes.preview,
    )
    assert ["preview", "preview"] == [finding["status"] for finding in in_json(record_of(assumed=True))["findings"]]
    assert "2 findings (0 new, 0 open before, 0 reopened, 2 previewed)" in in_table(record_of(assumed=True))


def test_previews_are_not_new(tmp_path: Path) -> None:
    """The page of new findings lacks them; their places mark them, and the page of the policy the assumed binding."""
    FORMATS["html"].render(document_of(record_of(assumed=True)), tmp_path / "report")
    assert "Preview</span>" not in (tmp_path / "report" / "changes.html").read_text("utf-8")
    assert 2 == places_of(tmp_path / "report").count("Preview</span>")
    assert "assumed for this scan" in (tmp_path / "report" / "policies" / "a.html").read_text("utf-8")


def test_the_policies_of_an_older_scan_are_classed_by_their_words() -> None:
    """Its policies have no classes, but their expressions show which read the user."""
    record = record_of()
    record = replace(record, policies=tuple(replace(policy, reading=Reading()) for policy in record.policies))
    (section,) = document_of(record).policies
    assert ((), True) == (section.auditability, section.reads_requester)
    assert "not known" in in_table(record)


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ("auto", "CREATE requests by bob (as no-op UPDATEs where no rule matches CREATE)."),
        ("create", "CREATE requests by bob."),
        ("update", "no-op UPDATE requests by bob."),
    ],
)
def test_reports_state_the_simulated_request(operation: str, words: str) -> None:
    """They have its operation and its user."""
    record = small_record()
    record = replace(record, scan=replace(record.scan, scope=Scope(operation=operation), requester=UserInfo("bob")))
    document = document_of(record)
    assert words in document.provenance.notes[-1]
    provenance = in_json(record)["provenance"]
    assert (operation, {"username": "bob", "groups": []}) == (provenance["operation"], provenance["requester"])


def test_reports_name_objects_out_of_scope(tmp_path: Path) -> None:
    """Webhooks decide about requests too, so a report without them would look complete."""
    hook = OutOfScope("ValidatingWebhookConfiguration", "guard", "its 2 webhooks are programs")
    record = replace(small_record(), outside=(hook,))
    assert [{"kind": hook.kind, "name": hook.name, "why": hook.why}] == in_json(record)["outside"]
    assert "not judged: 1 webhook configuration" in in_table(record)
    FORMATS["html"].render(document_of(record), tmp_path / "report")
    assert "its 2 webhooks are programs" in (tmp_path / "report" / "coverage.html").read_text("utf-8")
    assert "not judged: 1 webhook configuration" in (tmp_path / "report" / "index.html").read_text("utf-8")


def test_every_class_and_every_kind_of_health_has_words() -> None:
    """A new one without words would break a report."""
    assert set(Auditability) == AUDITABILITY.keys() == AUDITABILITY_MEANINGS.keys()
    assert set(HealthKind) == HEALTH_TITLES.keys() == HEALTH_MEANINGS.keys()
