"""Papers of one control for tests: of scans in memory, with findings that were open or changed in a quarter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from io import BytesIO

from scanner.model.outcome import Check, CheckKind
from scanner.model.population import EvaluatedObjects, RecordedObject, Workload
from scanner.model.scans.finding_period import FindingEvent, FindingOfPeriod, PeriodChange
from scanner.model.scans.run import Run, RunDetails
from scanner.model.scans.stored_finding import StoredFinding
from scanner.posture.control_checks import Control, Framework, PolicySelector, SelectorKind
from scanner.posture.history.daily import Day
from scanner.posture.history.scan_diff import RuleDifference, RuleKind
from scanner.posture.run_register import run_entry
from scanner.posture.settings import Settings
from scanner.proof.sampling import SampleOf, SampleRequest, SampleSize, draw
from scanner.report.document.document import document_of
from scanner.report.paper.control_paper import ControlPaper, find_control, parse_period
from scanner.store.rows.row_ids import RowIdSet
from tests.report.in_memory import ScanInMemory
from tests.report.records import LIMITS, large_record

PERIOD = parse_period("2026-Q1")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def paper_of(record: ScanInMemory, control: str = "4") -> ControlPaper:
    """The paper of a control that every policy of a scan serves: each day has a run, and each third finding was resolved."""
    everything = PolicySelector(SelectorKind.GLOB, "*")
    frameworks = (Framework("house", "House <rules>", "3", (Control(control, "=Title <b>", (everything,)),)),)
    sets = tuple(
        EvaluatedObjects(
            *(used.policy.language, used.policy.name, "", "", "", Check(CheckKind.VALIDATION, 0, LIMITS)),
            *("v1", "Pod", RowIdSet(range(1, 100)), {}),
        )
        for used in record.policies
    )
    objects = tuple(
        RecordedObject(
            number, "v1", "Pod", "shop", f"=pod-{number}", "u", Workload("v1", "Pod", "shop", f"pod-{number}")
        )
        for number in range(1, 100)
    )
    document = document_of(replace(record, sets=sets, objects=objects), Settings(frameworks=frameworks))
    population = b"apiVersion,kind,namespace,name,uid,outcome\n" + b"".join(
        f"v1,Pod,shop,pod-{number},u,passed\n".encode() for number in range(1, 100)
    )
    return ControlPaper(
        period=PERIOD,
        chosen=find_control(document, control),
        document=document,
        before=document,
        before_id="earlier",
        findings=tuple(_of_period(stored, number) for number, stored in enumerate(record.findings())),
        runs=tuple(run_entry(_run(number)) for number in range(90)),
        days=tuple((Day(date(2026, 1, 1) + timedelta(days=number), "scan", 1, 0, 0), "d" * 64) for number in range(80)),
        changes=tuple(RuleDifference(RuleKind.PARAM, "", f"limits-{number}", {"a": 1}, None) for number in range(60)),
        population=population,
        sample=draw(SampleRequest(SampleOf.OBJECTS, SampleSize(25), "house/4 2026-Q1"), BytesIO(population)),
        made_at=datetime(2026, 4, 1, tzinfo=UTC),
    )


def _of_period(stored: StoredFinding, number: int) -> FindingOfPeriod:
    finding = stored.finding
    resolved = number % 3 == 0
    events = (FindingEvent(NOON, PeriodChange.NEW), FindingEvent(NOON, PeriodChange.RESOLVED, "fixed"))
    return FindingOfPeriod(
        finding.fingerprint[:12], finding, NOON, not resolved, not resolved, events if resolved else (), number % 5 != 0
    )


def _run(number: int) -> RunDetails:
    began = NOON + timedelta(days=number)
    why = "no permission to list secrets: grant `list`" if number % 4 == 0 else ""
    return RunDetails(
        Run(number + 1, "prod", began, began + timedelta(minutes=3), 3 if why else 0, why, f"scan-{number}"),
        complete=not why,
    )


def long_paper() -> ControlPaper:
    """A paper with more policies, changes and letters than a page has room for: every name is as long as the API allows."""
    paper = paper_of(large_record(1_000, policies=120, namespaces=20))
    longest = "n" * 63 + "." + "a" * 189
    events = tuple(FindingEvent(NOON, change) for change in (PeriodChange.NEW, PeriodChange.RESOLVED)) * 40
    findings = tuple(
        replace(
            each, finding=each.finding._replace(name=longest, namespace="s" * 63), open_at_begin=False, events=events
        )
        for each in paper.findings
    )
    changes = tuple(each._replace(name=f"{longest}-{number}") for number, each in enumerate(paper.changes))
    return replace(paper, findings=findings, changes=changes)
