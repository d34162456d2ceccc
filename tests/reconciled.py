"""The outcomes of a scan, counted in two ways: as the scan counted them, and from the sets of objects that it keeps.

An object passes a check if the check was evaluated on it and the object is in none of its findings. So the number of passed
objects is that of the matched ones without those not evaluated and those of the findings, for every check and namespace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scanner.audit.findings import name_outcome
from scanner.model.outcome import Check, Errored, Finding, Violated
from scanner.model.population import EvaluatedObjects, RecordedObject
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.scans.tally import OutcomeName, TallyKey


class CheckedKind(NamedTuple):
    """A check of an invocation, and the kind of the objects."""

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    check: Check
    api_version: str
    kind: str


Outcomes = Counter[tuple[CheckedKind, str, OutcomeName]]
"""The number of objects by check, namespace and outcome."""


def counted(record: StoredScan) -> Outcomes:
    """The outcomes as the scan counted them."""
    outcomes: Outcomes = Counter()
    for key, count in record.tallies.items():
        outcomes[_checked(key), key.namespace, key.outcome] += count
    return outcomes


def recomputed(record: StoredScan) -> Outcomes:
    """The outcomes from the population, the evaluated sets and the findings.

    Raises AssertionError for a set with other objects than those of its kind, and for a finding outside of the evaluated sets.
    """
    objects: dict[tuple[str, str], list[RecordedObject]] = {}
    for each in record.population():
        objects.setdefault((each.api_version, each.kind), []).append(each)
    findings = _findings(record)
    outcomes: Outcomes = Counter()
    for evaluated in record.evaluated_objects():
        own = findings.pop(_checked(evaluated), {})
        here = objects[evaluated.api_version, evaluated.kind]
        outcomes.update(
            (_checked(evaluated), each.namespace, outcome) for each, outcome in _outcomes(evaluated, here, own)
        )
    assert {} == findings
    return outcomes


def _outcomes(
    evaluated: EvaluatedObjects, here: list[RecordedObject], findings: Mapping[tuple[str, str, str], OutcomeName]
) -> Iterator[tuple[RecordedObject, OutcomeName]]:
    """The outcome of every matched object of a check."""
    sets = {"": evaluated.evaluated, **evaluated.not_evaluated}
    members = {reason: [each for each in here if each.id in ids] for reason, ids in sets.items()}
    assert {reason: ids.count for reason, ids in sets.items()} == {reason: len(own) for reason, own in members.items()}
    passed = {(each.namespace, each.name, each.uid): each for each in members.pop("")}
    for identity, outcome in findings.items():
        yield passed.pop(identity), outcome
    yield from ((each, OutcomeName.PASSED) for each in passed.values())
    for reason, skipped in members.items():
        name = OutcomeName.NOT_AUDITABLE if reason == "notAuditable" else OutcomeName.SKIPPED
        yield from ((each, name) for each in skipped)


def _findings(record: StoredScan) -> dict[CheckedKind, dict[tuple[str, str, str], OutcomeName]]:
    """The outcome of each finding, by its check and its object."""
    findings: dict[CheckedKind, dict[tuple[str, str, str], OutcomeName]] = {}
    for stored in record.findings():
        finding = stored.finding
        identity = finding.namespace, finding.name, finding.uid
        own = findings.setdefault(_checked(finding), {})
        assert identity not in own
        exempt = finding.excepted_by and isinstance(finding.outcome, Violated | Errored)
        own[identity] = OutcomeName.EXCEPTED if exempt else name_outcome(finding.outcome)
    return findings


def _checked(key: TallyKey | EvaluatedObjects | Finding) -> CheckedKind:
    return CheckedKind(
        key.language,
        key.policy,
        key.binding,
        key.param_namespace,
        key.param_name,
        key.check,
        key.api_version,
        key.kind,
    )
