"""The digests of a scan by section: an outsider can compute them, and each section has its own."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.json import JsonObject
from scanner.model.outcome import (
    Change,
    Check,
    CheckKind,
    Errored,
    Evidence,
    Gap,
    GapKind,
    Reason,
    Violated,
    WouldChange,
)
from scanner.model.population import EvaluatedObjects, RecordedObject, Workload
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import UncoveredKind
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.waiver import WaiverSet
from scanner.report import FORMATS
from scanner.report.document import section_digests
from scanner.report.document.document import document_of
from scanner.report.document.section_digests import digest_scan, digest_waivers, encode_row
from scanner.store.rows.row_ids import RowIdSet
from tests.posture.waivers import waiver
from tests.report.in_memory import ScanInMemory
from tests.report.records import HOSTILE, finding, hostile_record, large_record, partial_record, small_record


def digests(record: ScanInMemory) -> dict[str, str]:
    """The digests of a scan by section."""
    return {each.section: each.digest for each in digest_scan(record).sections}


def report(record: ScanInMemory) -> Any:
    """The JSON report of a scan."""
    out = BytesIO()
    FORMATS["json"].render(document_of(record), out)
    return json.loads(out.getvalue())


# What follows here needs no code of Assay: an outsider writes it from docs/evidence.md and has the JSON report alone.

CONTENT = {"manifest", "document", "labels", "annotations", "patch", "together"}
NOT_RECORDED = {
    *("id", "problem", "status", "firstSeen", "openedAt", "lastSeen", "resolvedAt", "resolution", "cause", "continues"),
    *("severity", "owner", "controls", "workload", "waiver", "dependsOnRequester"),
}


def without_empty(value: Any, name: str = "") -> Any:
    """A value without empty members, but for those of content."""
    if isinstance(value, dict) and name not in CONTENT:
        members = {key: without_empty(item, key) for key, item in value.items()}
        return {key: item for key, item in members.items() if item}
    return [without_empty(item) for item in value] if isinstance(value, list) and name not in CONTENT else value


def line(row: Any) -> str:
    """The line of a row."""
    return json.dumps(without_empty(row), sort_keys=True, separators=(",", ":")) + "\n"


def recorded(finding: Any) -> Any:
    """The fields of a finding that the scan recorded."""
    row = {name: value for name, value in finding.items() if name not in NOT_RECORDED}
    row["check"] = {name: value for name, value in row["check"].items() if name != "id"}
    row["object"] = {name: value for name, value in row["object"].items() if name != "resourceVersion"}
    if row["evidence"]:
        row["evidence"] = {name: value for name, value in row["evidence"].items() if name != "excerpt"}
    return {name: value for name, value in row.items() if "drift" not in row or name != "message"}


def sections_of(report: Any) -> dict[str, str]:
    """The digests that follow from a report."""
    rows = sorted((recorded(each) for each in report["findings"]), key=lambda row: row["fingerprint"])
    lines = {
        "findings": [line(row) for row in rows],
        "gaps": sorted(line(row) for row in report["gaps"]),
        "health": sorted(line(row) for row in report["health"]),
    }
    return {name: hashlib.sha256("".join(each).encode()).hexdigest() for name, each in lines.items()}


def every_outcome() -> ScanInMemory:
    """A scan with a finding of each outcome, evidence, a param and text in several scripts."""
    evidence = Evidence((Reason("object.spec", "5", "spec"), Reason("x", "no such key", erred=True)), 2, "excerpt")
    changes = (Change("add", "/spec/a", 0.0), Change("remove", "/spec/b", was=[]), Change("replace", "/c", "ü", was=""))
    found = (
        *(
            finding(name, outcome=Violated(text))
            for name, text in (("web", "дом"), ("api", "\x00\x7f\u2028 \U0001f600"))
        ),
        finding("limits", param=("shop", "limits"), evidence=evidence),
        finding("global", param=("", "limits"), outcome=Errored("no such key", would_deny=True, always=True)),
        finding("drift", outcome=WouldChange(changes, together=changes, refused="no")),
    )
    return replace(partial_record(), found=lambda: found)


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record(), every_outcome()])
def test_an_outsider_computes_the_digests_from_the_json_report(record: ScanInMemory) -> None:
    """With the standard library alone: findings, gaps and health, and the digest over all sections."""
    found = report(record)["digests"]
    named = {each["section"]: each["digest"] for each in found["sections"]}
    text = "".join(f"{each['digest']}  {each['section']}\n" for each in found["sections"])

    assert sections_of(report(record)) == {name: named[name] for name in ("findings", "gaps", "health")}
    assert hashlib.sha256(text.encode()).hexdigest() == found["scan"]


def with_first(record: ScanInMemory, change: Callable[[StoredFinding], StoredFinding]) -> ScanInMemory:
    """The scan with a change of its first finding."""
    first, *others = record.findings()
    return replace(record, found=lambda: (change(first), *others))


def edited(**fields: Any) -> Callable[[ScanInMemory], ScanInMemory]:
    """A change of fields of the first finding."""
    return lambda record: with_first(record, lambda stored: replace(stored, finding=stored.finding._replace(**fields)))


def with_population(record: ScanInMemory) -> ScanInMemory:
    """The scan with two objects, of which a check evaluated the first and skipped the second."""
    sets = EvaluatedObjects(
        *("ValidatingAdmissionPolicy", "p", "b", "", "", Check(CheckKind.VALIDATION, 0, "true"), "v1", "Pod"),
        RowIdSet([1]),
        {"exception": RowIdSet([2])},
    )
    objects = tuple(
        RecordedObject(number, "v1", "Pod", "shop", name, f"u-{name}", Workload("v1", "Pod", "shop", name))
        for number, name in ((1, "a"), (2, "b"))
    )
    return replace(record, objects=objects, sets=(sets,))


def label(record: ScanInMemory) -> ScanInMemory:
    """A label of the first object."""
    first, *others = record.objects
    return replace(record, objects=(first._replace(labels=(("app", "x"),)), *others))


def evaluate_all(record: ScanInMemory) -> ScanInMemory:
    """Both objects evaluated."""
    [sets] = record.sets
    return replace(record, sets=(replace(sets, evaluated=RowIdSet([1, 2]), not_evaluated={}),))


CHANGES: dict[str, tuple[str, Callable[[ScanInMemory], ScanInMemory]]] = {
    "state of the scan": ("method", lambda record: replace(record, scan=replace(record.scan, notes=("one more",)))),
    "host": ("method", lambda record: replace(record, method=replace(cast("Any", record.method), host="other"))),
    "policy": ("rules", lambda record: replace(record, policies=record.policies[1:], tallies=record.tallies)),
    "param": (
        "rules",
        lambda record: replace(record, rules=(replace(record.rules[0], document={"limit": 0}), *record.rules[1:])),
    ),
    "label": ("population", label),
    "evaluated objects": ("population", evaluate_all),
    "count": ("tallies", lambda record: replace(record, tallies={key: 1 + n for key, n in record.tallies.items()})),
    "message": ("findings", edited(outcome=Violated("another message"))),
    "effect": ("findings", edited(operation="UPDATE")),
    "name": ("findings", edited(name="another")),
    "evidence": ("findings", edited(evidence=Evidence((Reason("a", "b"),)))),
    "listed objects": (
        "coverage",
        lambda record: replace(record, coverage=(replace(record.coverage[0], objects=0), *record.coverage[1:])),
    ),
    "kind without a policy": ("coverage", lambda record: replace(record, uncovered=(UncoveredKind("v1", "Event"),))),
    "webhook": ("coverage", lambda record: replace(record, outside=(OutOfScope("webhook", "hook", "why"),))),
    "gap": ("gaps", lambda record: replace(record, gaps=(Gap(GapKind.LIST, "v1/Secret", "why"),))),
    "health": ("health", lambda record: replace(record, health=(Health(HealthKind.UNBOUND, "p", "", ""),))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_changes_the_digest_of_its_section_alone(name: str) -> None:
    """And the digest of the scan. A policy that is gone changes its number of matched objects, too."""
    section, change = CHANGES[name]
    before = with_population(partial_record())
    after = change(before)
    differing = {each for each, digest in digests(after).items() if digest != digests(before)[each]}

    assert {section, *(["tallies"] if name == "policy" else [])} == differing
    assert digest_scan(before).digest != digest_scan(after).digest


NO_CHANGES: dict[str, Callable[[ScanInMemory], ScanInMemory]] = {
    "name of the cluster": lambda record: replace(
        record, scan=replace(record.scan, cluster=replace(record.scan.cluster, name="renamed", earlier_name="old"))
    ),
    "status": lambda record: with_first(record, lambda stored: replace(stored, status="reopened", problem="p-1")),
    "resource version": edited(resource_version="99"),
    "excerpt": edited(evidence=Evidence(excerpt="spec: x")),
    "order of gaps": lambda record: replace(record, gaps=record.gaps[::-1]),
    "order of tallies": lambda record: replace(record, tallies=dict([*record.tallies.items()][::-1])),
    "seconds": lambda record: replace(
        record, coverage=tuple(replace(each, seconds=each.seconds + 1) for each in record.coverage)
    ),
    "scan before": lambda record: replace(record, previous=None, comparable=None, unchecked=9),
    "ids of objects": lambda record: replace(
        record,
        objects=tuple(each._replace(id=each.id + 7) for each in record.objects),
        sets=tuple(
            replace(each, evaluated=RowIdSet([8]), not_evaluated={"exception": RowIdSet([9])}) for each in record.sets
        ),
    ),
}


@pytest.mark.parametrize("name", NO_CHANGES)
def test_what_follows_from_other_scans_and_databases_changes_no_digest(name: str) -> None:
    """History, names of clusters, orders, ids and times of lists."""
    before = with_population(partial_record())
    assert digests(before) == digests(NO_CHANGES[name](before))


def test_a_note_of_the_report_is_no_recorded_health() -> None:
    """An unknown severity is a note that the settings of a report decide."""
    record = small_record()
    used = record.policies[0]
    annotated: JsonObject = {
        "metadata": {"name": used.policy.name, "annotations": {"policies.kyverno.io/severity": "awful"}}
    }
    policy = replace(used.policy, manifest={**used.policy.manifest, **annotated})
    record = replace(record, policies=(replace(used, policy=policy), *record.policies[1:]))
    document = document_of(record)

    assert len(record.health) < len(document.health)
    assert digest_scan(record) == document.digests


def test_waivers_have_a_digest_of_their_own() -> None:
    """It depends on every field of a waiver, and on documents that could not be read; not on the order."""
    first, second = waiver("first"), waiver("second")
    both = digest_waivers(WaiverSet((first, second)))
    others = [
        WaiverSet((first,)),
        WaiverSet((first, replace(second, reason="other"))),
        WaiverSet((first, second), faults=("x",)),
    ]

    assert both == digest_waivers(WaiverSet((second, first)))
    assert 4 == len({both.digest, *(digest_waivers(each).digest for each in others)})


TEXT = st.text() | st.sampled_from(HOSTILE)


@given(st.dictionaries(TEXT, TEXT | st.integers(0, 2**40) | st.booleans() | st.lists(TEXT), max_size=5))
def test_both_encoders_write_one_line(row: dict[str, Any]) -> None:
    """The fast one is for rows of which there can be many."""
    assert encode_row(row) == section_digests._encode_plain(row)


@given(st.recursive(TEXT | st.integers() | st.none() | st.booleans() | st.floats(allow_nan=False), st.lists))
def test_content_of_a_cluster_is_whole(value: Any) -> None:
    """No zero, false or empty value of a manifest is left out."""
    row = {"manifest": {"a": value, "": ""}}
    assert row == json.loads(encode_row(row))


def test_the_memory_does_not_grow_with_the_findings() -> None:
    """Rows are hashed while they are read: ten times as many need no more memory."""
    peaks = []
    for number in (2_000, 20_000):
        record = large_record(number, policies=10, namespaces=20)
        streamed = (stored.finding for stored in record.findings())
        tracemalloc.start()
        section_digests._digest_lines("findings", map(section_digests._encode_finding, streamed))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1_000_000
