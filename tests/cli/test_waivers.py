"""Waivers from the command line: what people see when they accept findings."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from scanner.model.json import Json, as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]
TODAY = datetime.now(UTC).date()
IN_TWO_DAYS = TODAY + timedelta(days=2)
LATER = TODAY + timedelta(days=3)
NEXT_YEAR = TODAY + timedelta(days=365)
GATED = ("scan", "--from", "cluster", "--fail-on", "violated", "-q", "-o", "json")


def waiver(name: str, *fields: str, until: object = NEXT_YEAR, policy: str = "p", approver: str = "bob") -> str:
    """A waiver document; `fields` are further lines of its spec."""
    lines = (f"policy: {policy}", "reason: legacy", "requestedBy: ann", f"approvedBy: {approver}", f"until: {until}")
    spec = "".join(f"  {line}\n" for line in (*lines, *fields))
    return f"---\napiVersion: assay.dev/v1alpha1\nkind: Waiver\nmetadata: {{name: {name}}}\nspec:\n{spec}"


def states(report: Json) -> dict[str, str]:
    """The state of each waiver of a report."""
    lines = as_list(dig(report, "waivers", "waivers"))
    return {as_text(dig(line, "name")): as_text(dig(line, "state")) for line in lines}


def waived(report: Json) -> dict[str, str]:
    """The waiver of each finding of a report, by the name of its object; empty for a finding without one."""
    findings = as_list(dig(report, "findings"))
    return {as_text(dig(each, "object", "name")): as_text(dig(each, "waiver", "name")) for each in findings}


@pytest.fixture
def cluster(write: Write) -> None:
    """A policy that two config maps violate."""
    write("cluster/all.yaml", f"{bound('p')}---\n{config_map('a')}---\n{config_map('b')}")


@pytest.mark.usefixtures("cluster")
def test_a_gate_and_a_report_obey_a_waiver_alike(assay: Assay, write: Write) -> None:
    """The findings stay, marked as waived; the gate leaves them out, and a later report has the same waivers."""
    write("w.yaml", waiver("both", "namespace: shop"))
    ran = assay(*GATED, "--waivers", "w.yaml")
    again = assay("report", "--fail-on", "violated", "-o", "json")

    assert (0, {"a": "both", "b": "both"}) == (ran.code, waived(ran.report))
    assert (ran.code, ran.report) == (again.code, again.report)
    assert 1 == assay("scan", "--from", "cluster", "--cluster-name", "other", "--fail-on", "violated").code


@pytest.mark.usefixtures("cluster")
def test_a_waiver_changes_no_outcome_and_no_count(assay: Assay, write: Write) -> None:
    """The report differs in the waivers and their digest, the second score, and the problems of the verdict, which leaves waived ones out."""
    write("w.yaml", waiver("a", "object: ConfigMap/a"))
    assay("scan", "--from", "cluster")
    without, having = (assay("report", "-o", "json", *more).report for more in ((), ("--waivers", "w.yaml")))
    same = [key for key in without if without[key] == having[key]]

    assert [key for key in without if key not in {"score", "verdict", "waivers", "findings", "digests"}] == same
    digests = as_object(without["digests"])
    of_waivers = {key for key, digest in digests.items() if digest != dig(having, "digests", key)}
    assert {"waivers"} == of_waivers
    assert (0, 0.0) == (dig(having, "score", "passed"), dig(having, "score", "withWaivers", "value"))
    assert (2, 1) == (dig(having, "score", "decided"), dig(having, "score", "withWaivers", "decided"))


@pytest.mark.usefixtures("cluster")
def test_a_waiver_that_expired_overnight_turns_the_gate_red_and_says_so(assay: Assay, write: Write) -> None:
    """On its last day it applies; on the next day the line of the gate names it."""
    write("w.yaml", waiver("a", "object: ConfigMap/a", until=IN_TWO_DAYS) + waiver("b", "object: b"))
    first = assay(*GATED, "--waivers", "w.yaml")
    last_day, next_day = (
        assay("report", "--at", str(day), "--fail-on", "violated", "-o", "json") for day in (IN_TWO_DAYS, LATER)
    )

    assert (0, "expiring") == (first.code, states(first.report)["a"])
    assert (0, 1) == (last_day.code, next_day.code)
    line = "gate failed: violated (1 problem with violations). 1 finding is no longer waived: waiver a expired on"
    assert f"{line} {IN_TWO_DAYS}\n" in next_day.stderr
    assert {"a": "expired", "b": "active"} == states(next_day.report)


@pytest.mark.usefixtures("cluster")
def test_a_problem_whose_waiver_ended_is_new_for_the_gate(assay: Assay, write: Write) -> None:
    """It did not fail in the scan before, so it is new when it fails."""
    write("w.yaml", waiver("both", "namespace: shop"))
    assay("scan", "--from", "cluster", "--waivers", "w.yaml")
    write("w.yaml", waiver("one", "object: a"))
    ran = assay("scan", "--from", "cluster", "--waivers", "w.yaml", "--fail-on", "new")

    assert 1 == ran.code
    assert "gate failed: new (1 new problem since scan" in ran.stderr


@pytest.mark.usefixtures("cluster")
def test_an_incomplete_scan_stays_incomplete(assay: Assay, write: Write) -> None:
    """No waiver makes exit code 3 another one."""
    write("cluster/broken.yaml", "kind: Broken\n")
    write("w.yaml", waiver("both", "namespace: shop"))

    assert 3 == assay(*GATED, "--waivers", "w.yaml").code


@pytest.mark.usefixtures("cluster")
def test_an_edited_file_does_not_change_earlier_reports(assay: Assay, write: Write) -> None:
    """Each report has the waivers that scans had stored by then."""
    write("w.yaml", waiver("early", "namespace: shop"))
    first = assay(*GATED, "--waivers", "w.yaml").report
    write("w.yaml", waiver("late", "object: a"))
    second = assay(*GATED, "--waivers", "w.yaml").report
    third = assay(*GATED).report

    assert first == assay("report", "last~2", "-o", "json").report
    assert second == assay("report", "last~1", "-o", "json").report
    assert {"a": "late", "b": ""} == waived(second) == waived(third)


def test_a_selector_that_matches_nothing_any_more_is_unused(assay: Assay, write: Write) -> None:
    """The label of the object changed."""
    labelled = config_map("a").replace("  name:", "  labels: {app: web}\n  name:")
    write("cluster/all.yaml", f"{bound('p')}---\n{labelled}")
    write("w.yaml", waiver("web", "selector: {matchLabels: {app: web}}"))
    first = assay(*GATED, "--waivers", "w.yaml")
    write("cluster/all.yaml", f"{bound('p')}---\n{labelled.replace('web', 'api')}")
    second = assay(*GATED, "--waivers", "w.yaml")

    assert [(0, "active"), (1, "unused")] == [(ran.code, states(ran.report)["web"]) for ran in (first, second)]


@pytest.mark.usefixtures("cluster")
def test_a_waiver_of_a_deleted_workload_is_unused(assay: Assay, write: Write) -> None:
    """The check of waivers fails, and says why."""
    write("w.yaml", waiver("gone", "workload: ConfigMap/old", "namespace: shop"))
    assay("scan", "--from", "cluster", "--waivers", "w.yaml")
    ran = assay("waiver", "check")

    assert 1 == ran.code
    assert b"unused" in ran.stdout
    assert b"no open finding matches" in ran.stdout


@pytest.mark.usefixtures("cluster")
def test_of_two_waivers_for_one_finding_the_longer_one_is_shown_and_both_are_used(assay: Assay, write: Write) -> None:
    """None of them is unused."""
    write("w.yaml", waiver("short", "object: a", until=LATER) + waiver("long", "namespace: shop"))
    ran = assay(*GATED, "--waivers", "w.yaml")

    assert {"short": "expiring", "long": "active"} == states(ran.report)
    assert {"a": "long", "b": "long"} == waived(ran.report)


ROLLED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: web-{suffix}
  namespace: shop
  ownerReferences:
    - {{apiVersion: example.com/v1, kind: Site, name: web, uid: "1", controller: true}}
"""


def test_a_waiver_survives_a_rollout_and_a_reformatted_expression(assay: Assay, write: Write) -> None:
    """By the id of the check: a waiver by the old expression ends, because its text is no expression of the policy."""
    write("cluster/all.yaml", f"{bound('p', expression='1 > 2')}---\n{ROLLED.format(suffix='aa')}")
    first = assay("scan", "--from", "cluster", "-q", "-o", "json").report
    [finding] = as_list(first["findings"])
    check = as_text(dig(finding, "check", "id"))
    fields = "namespace: shop", "workload: Site/web"
    write("w.yaml", waiver("id", *fields, f"check: {check}") + waiver("text", *fields, "check: 1 > 2"))
    assert 0 == assay(*GATED, "--waivers", "w.yaml").code
    write("cluster/all.yaml", f"{bound('p', expression='1>2')}---\n{ROLLED.format(suffix='bb')}")
    ran = assay(*GATED, "--waivers", "w.yaml")

    assert (0, {"web-bb": "id"}) == (ran.code, waived(ran.report))
    assert {"id": "active", "text": "unknownCheck"} == states(ran.report)
    assert f"its checks are {check}" in assay("waiver", "check").stdout.decode()


@pytest.mark.usefixtures("cluster")
def test_a_policy_with_another_name_is_unknown_and_the_nearest_name_is_shown(assay: Assay, write: Write) -> None:
    """A policy was renamed, or the waiver has a typing mistake."""
    write("cluster/all.yaml", f"{bound('replica-limits')}---\n{config_map('a')}")
    write("w.yaml", waiver("old", "namespace: shop", policy="replica-limit"))
    assay("scan", "--from", "cluster")
    ran = assay("waiver", "check", "w.yaml")

    assert 1 == ran.code
    assert b"the scan has no policy replica-limit. Did you mean replica-limits?" in ran.stdout


@pytest.mark.usefixtures("cluster")
def test_a_config_map_of_a_team_waives_nothing_and_is_named(assay: Assay, write: Write) -> None:
    """Only those of the namespace that the user names have waivers."""
    for namespace, name in (("shop", "own"), ("audit", "good")):
        text = waiver(name, f"object: {'a' if name == 'good' else 'b'}").replace("\n", "\n    ")
        labels = f"  namespace: {namespace}\n  labels: {{assay.dev/waivers: ''}}\n"
        head = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{labels}data:\n  w.yaml: |\n    "
        write(f"cluster/{name}.yaml", head + text)
    ran = assay(*GATED, "--waivers-namespace", "audit")

    assert {"a": "good", "b": "", "own": "", "good": ""} == waived(ran.report)
    note = (
        "ConfigMap shop/own has the label assay.dev/waivers and waives nothing: only namespace audit may have waivers"
    )
    assert f"assay: {note}\n" in ran.stderr
    assert [note] == dig(ran.report, "waivers", "notes")


@pytest.mark.usefixtures("cluster")
def test_a_selector_of_a_label_that_is_not_kept_is_an_error(assay: Assay, write: Write) -> None:
    """The message names the flag that keeps it."""
    write("w.yaml", waiver("tier", "selector: {matchLabels: {tier: x}}"))
    refused = assay(*GATED, "--waivers", "w.yaml")
    accepted = assay(*GATED, "--waivers", "w.yaml", "--keep-label", "tier")

    assert (2, 1) == (refused.code, accepted.code)
    assert (
        "w.yaml, line 11, column 34: spec.selector.matchLabels.tier: the scan does not keep the label tier: scan with"
        in refused.stderr
    )
    assert 0 == assay("report", "--waivers", "w.yaml").code


@pytest.mark.parametrize(
    ("document", "state"),
    [
        (waiver("w", "namespace: shop", approver="Ann"), "selfApproved"),
        (waiver("w"), "tooBroad"),
        (waiver("w", "namespace: shop", until=TODAY - timedelta(days=1)), "expired"),
        (waiver("w", "namespace: shop", f"from: {LATER}"), "notYetActive"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_a_waiver_that_does_not_hold_waives_nothing(assay: Assay, write: Write, document: str, state: str) -> None:
    """The check fails, unless the waiver begins later."""
    write("w.yaml", document)
    ran = assay(*GATED, "--waivers", "w.yaml")
    checked = assay("waiver", "check", "w.yaml", "-o", "json")

    assert (1, {"w": state}, {"a": "", "b": ""}) == (ran.code, states(ran.report), waived(ran.report))
    assert int(state != "notYetActive") == checked.code


@pytest.mark.parametrize(
    ("document", "state", "code"),
    [
        (waiver("w", "namespace: shop"), "active", 0),
        (waiver("w", "namespace: shop", until=IN_TWO_DAYS), "expiring", 0),
        (waiver("w", "namespace: shop", f"from: {LATER}"), "notYetActive", 0),
        (waiver("w", "namespace: shop", until=TODAY - timedelta(days=1)), "expired", 1),
        (waiver("w", "namespace: shop", approver="Ann"), "selfApproved", 1),
        (waiver("w"), "tooBroad", 1),
        (waiver("w", "namespace: shop", f"from: {TODAY}"), "tooLong", 1),
        (waiver("w", "namespace: shop", "cluster: other", policy="no-such-policy", until=IN_TWO_DAYS), "expiring", 0),
    ],
)
def test_files_are_checked_without_a_database(assay: Assay, write: Write, document: str, state: str, code: int) -> None:
    """Dates, four eyes, width and duration; the numbers of findings and the policies are not known."""
    write("w.yaml", document)
    write("assay.yaml", "longestWaiverDays: 365\n" if "from:" in document else "")

    ran = assay("waiver", "check", "w.yaml", "-o", "json")

    [line] = as_list(ran.report["waivers"])
    assert (code, state) == (ran.code, dig(line, "state"))
    assert [None] * 4 == [ran.report["scan"], ran.report["findings"], dig(line, "findings"), dig(line, "problems")]


def test_a_day_is_checked_without_a_database(assay: Assay, write: Write) -> None:
    """The state is that of the day of --at."""
    write("w.yaml", waiver("w", "namespace: shop", until=IN_TWO_DAYS))

    assert [0, 1] == [assay("waiver", "check", "w.yaml", "--at", str(day)).code for day in (IN_TWO_DAYS, LATER)]


@pytest.mark.usefixtures("cluster")
def test_a_check_of_waivers_states_what_was_checked(assay: Assay, write: Write) -> None:
    """The files alone and the reason, or the scan; only with a scan is a policy unknown."""
    write("w.yaml", waiver("w", "namespace: shop", policy="q"))
    alone = assay("waiver", "check", "w.yaml")
    assay("scan", "--from", "cluster", "-q")
    compared = assay("waiver", "check", "w.yaml")
    scan = as_text(dig(assay("report", "-o", "json").report, "provenance", "scanId"))

    of_files, of_scan = (ran.stdout.decode().splitlines() for ran in (alone, compared))
    assert [0, 1] == [alone.code, compared.code]
    assert "FINDINGS" not in of_files[0]
    assert re.fullmatch(
        r"Checked the files alone: last days, approvers, width and duration\. Not compared with findings, policies and checks: "
        r"The database \S+/assay\.db does not exist\. .*",
        of_files[-1],
    )
    assert of_scan[1].startswith("unknown policy")
    checked = "last days, approvers, width and duration, findings, policies and checks."
    assert f"Checked with scan {scan}: {checked}" == of_scan[-1]


@pytest.mark.parametrize("flags", [("--db", "other.db"), ("--scan", "last"), ("--cluster-name", "shop")], ids=" ".join)
def test_a_database_that_the_user_names_must_exist(assay: Assay, write: Write, flags: tuple[str, ...]) -> None:
    """The user asked for the findings of a scan."""
    write("w.yaml", waiver("w", "namespace: shop"))

    ran = assay("waiver", "check", "w.yaml", *flags)

    assert (2, b"", True) == (ran.code, ran.stdout, "does not exist" in ran.stderr)


def test_a_database_without_scans_is_no_database(assay: Assay, write: Write) -> None:
    """An empty one, such as that of a new installation; stored waivers need a scan."""
    write("w.yaml", waiver("w", "namespace: shop"))
    assay("db", "upgrade")

    files, stored = assay("waiver", "check", "w.yaml"), assay("waiver", "check")

    assert (0, True) == (files.code, b"Checked the files alone" in files.stdout)
    assert (2, True) == (stored.code, "Or name a file or folder of waivers" in stored.stderr)


@pytest.mark.usefixtures("cluster")
def test_proposed_waivers_are_refused_until_a_person_fills_them_in(assay: Assay, write: Write) -> None:
    """Then they waive every problem, and nothing is left to propose."""
    assay("scan", "--from", "cluster")
    text = assay("waiver", "propose", "--until", str(NEXT_YEAR)).stdout.decode()
    refused = assay("waiver", "check", write("w.yaml", text))
    lines = [line if ": <" not in line else f"{line.partition(': <')[0]}: {len(line)}x" for line in text.splitlines()]
    write("w.yaml", "\n".join(lines))
    ran = assay(*GATED, "--waivers", "w.yaml")

    assert 2 == refused.code
    assert "is a placeholder: write the value" in refused.stderr
    assert (0, 2) == (ran.code, len(states(ran.report)))
    assert "assay: 0 waivers to edit\n" == assay("waiver", "propose").stderr


@pytest.mark.usefixtures("cluster")
def test_a_finding_is_explained_with_the_waiver_that_nearly_applies(assay: Assay, write: Write) -> None:
    """And with the field on which it fails."""
    write("w.yaml", waiver("other", "object: ConfigMap/b") + waiver("far", "object: x", "namespace: other"))
    ran = assay(*GATED, "--waivers", "w.yaml")
    ids = {as_text(dig(each, "object", "name")): as_text(dig(each, "id")) for each in as_list(ran.report["findings"])}
    nearly, applies = (assay("waiver", "explain", ids[name]).stdout.decode() for name in ("a", "b"))

    assert "Waiver other nearly applies, but fails on object: the waiver needs ConfigMap/b, not ConfigMap/a." in nearly
    assert "far" not in nearly
    assert f"by other, which is active until {NEXT_YEAR}." in applies


@pytest.mark.usefixtures("cluster")
def test_lists_and_policy_reports_mark_waived_findings(assay: Assay, write: Write) -> None:
    """A policy report has them as skipped, so that dashboards do not alert."""
    write("w.yaml", waiver("a", "object: a"))
    assay("scan", "--from", "cluster", "--waivers", "w.yaml")
    findings, problems = (assay("findings", *more).stdout.decode() for more in ((), ("--problems",)))
    rows = list(csv.DictReader(io.StringIO(assay("findings", "-o", "csv").stdout.decode())))
    [report] = as_list(as_object(orjson.loads(assay("report", "-o", "policyreport").stdout))["items"])
    results = as_list(dig(report, "results"))

    assert ["new, waived" in text for text in (findings, problems)] == [True, True]
    assert ["a", ""] == [row["waiver"] for row in rows]
    assert {"fail": 1, "skip": 1} == {key: dig(report, "summary", key) for key in ("fail", "skip")}
    assert [f"a until {NEXT_YEAR}", None] == [dig(each, "properties", "waiver") for each in results]


@pytest.mark.usefixtures("cluster")
def test_a_page_of_the_html_report_lists_the_waivers(assay: Assay, write: Write, home: Path) -> None:
    """With hostile texts escaped."""
    write("w.yaml", waiver("a", "object: a", 'control: "by hand <script>alert(1)</script>"'))
    assay("scan", "--from", "cluster", "--waivers", "w.yaml", "--html", "out")
    page = (home / "out" / "waivers.html").read_text()

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>" not in page
    assert "Waived</span>" in (home / "out" / "findings.html").read_text()


@pytest.mark.usefixtures("cluster")
def test_a_difference_names_what_is_waived_in_one_scan_only(assay: Assay, write: Write) -> None:
    """Its cause is the waiver; the problems themselves do not differ."""
    write("w.yaml", waiver("first", "object: a"))
    assay("scan", "--from", "cluster", "--waivers", "w.yaml")
    write("w.yaml", waiver("second", "object: b"))
    assay("scan", "--from", "cluster", "--waivers", "w.yaml")
    table, markdown = (assay("diff", "-o", form).stdout.decode() for form in ("table", "markdown"))
    changes = assay("diff", "-o", "json").report["waivers"]

    assert "Cause: a waiver changed\n  problems: 1 no longer waived, 1 waived\n" in table
    assert f"ConfigMap shop/b: waiver second until {NEXT_YEAR}" in table
    assert "## Cause: a waiver changed" in markdown
    names = {name: [dig(each, "waiver", "name") for each in as_list(dig(changes, name))] for name in as_object(changes)}
    assert {"waived": ["second"], "noLongerWaived": ["first"]} == names
