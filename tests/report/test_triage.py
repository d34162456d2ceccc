"""Severities and owners in a report: they change no outcome and no sum."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.population import KeptMetadata, KeptOfObject
from scanner.model.scans.health import HealthKind
from scanner.posture.owners import PLACES, OwnerKey
from scanner.posture.settings import Settings
from scanner.posture.severity import DescriptionOverride, Severity
from scanner.report.document.counts import FindingCounts
from scanner.report.document.document import document_of
from scanner.report.document.sentences import worst_owners, worst_policies
from tests.report.in_memory import ScanInMemory

from .records import small_record, with_findings

kept = st.builds(
    KeptOfObject,
    *(
        st.builds(
            KeptMetadata,
            st.lists(
                st.tuples(st.sampled_from(["team", "owner", "app"]), st.sampled_from(["blue", "red", ""])),
                max_size=3,
                unique_by=lambda pair: pair[0],
            ).map(tuple),
        )
        for _ in PLACES
    ),
)
settings_of_users = st.builds(
    Settings,
    st.lists(
        st.builds(
            DescriptionOverride,
            st.sampled_from(["*", "require-*", "max-replicas", "gone"]),
            severity=st.none() | st.sampled_from(Severity),
            title=st.none() | st.just("Another title"),
        ),
        max_size=3,
    ).map(tuple),
    st.lists(
        st.builds(
            OwnerKey,
            st.sampled_from(PLACES),
            st.sampled_from(["label", "annotation"]),
            st.sampled_from(["team", "app"]),
        ),
        max_size=4,
    ).map(tuple),
)


def with_labels(labels: list[KeptOfObject | None]) -> ScanInMemory:
    """The small record, whose objects have these labels in turn."""
    record = small_record()
    findings = [
        replace(stored, kept=labels[place % len(labels)] if labels else None)
        for place, stored in enumerate(record.findings())
    ]
    return with_findings(record, findings, tuple(record.resolved_findings()))


def total(*counts: FindingCounts) -> FindingCounts:
    """The sum of some numbers of findings."""
    names = FindingCounts.__dataclass_fields__
    return FindingCounts(**{name: sum(getattr(each, name) for each in counts) for name in names})


@pytest.mark.long
@given(st.lists(st.none() | kept, max_size=4), settings_of_users)
def test_settings_change_no_outcome(labels: list[KeptOfObject | None], settings: Settings) -> None:
    """Outcomes, findings, completeness and the score without weights are those of a report without settings."""
    record = with_labels(labels)
    plain, settled = document_of(small_record()), document_of(record, settings)

    assert (plain.totals, plain.findings_total, plain.complete, plain.changes) == (
        settled.totals,
        settled.findings_total,
        settled.complete,
        settled.changes,
    )
    assert replace(plain.score, weighted=None) == replace(settled.score, weighted=None)
    assert [policy.counts for policy in plain.policies] == [policy.counts for policy in settled.policies]


@given(st.lists(st.none() | kept, max_size=4), settings_of_users)
def test_owners_and_severities_add_up(labels: list[KeptOfObject | None], settings: Settings) -> None:
    """Every finding has one owner, or belongs to the unowned, and has one severity."""
    document = document_of(with_labels(labels), settings)
    by_owner = [section.findings for section in document.owners]
    by_severity = [each.findings for each in document.severities]
    parts = [total(*(each.findings for each in section.severities)) for section in document.owners]

    assert document.findings_total == total(*by_owner) == total(*by_severity)
    assert by_owner == parts


def test_unowned_objects_are_a_line_of_their_own() -> None:
    """Labels that are not known name no owner either."""
    blue = KeptOfObject(KeptMetadata((("team", "blue"),)))
    document = document_of(with_labels([blue, None, KeptOfObject()]))

    assert [("blue", 2), ("", 4)] == [(section.owner, section.findings.total) for section in document.owners]


def test_the_worst_policy_comes_first() -> None:
    """By action, then by severity; a policy without findings comes last."""
    low = Settings((DescriptionOverride("require-limits", severity=Severity.LOW),))
    names = [section.name for section in worst_policies(document_of(small_record(), low).policies)]

    assert ["require-limits", "max-replicas", "require-owner", "no-host-network"] == names


def test_equal_actions_are_ordered_by_severity() -> None:
    """The number of findings decides only among policies of one severity."""
    record = small_record()
    denying = tuple(replace(used, actions=("Deny",)) for used in record.policies)
    critical = Settings((DescriptionOverride("require-owner", severity=Severity.CRITICAL),))
    names = [
        section.name for section in worst_policies(document_of(replace(record, policies=denying), critical).policies)
    ]

    assert ["require-owner", "require-limits", "max-replicas", "no-host-network"] == names


def test_the_worst_owner_comes_first() -> None:
    """One critical finding is worse than two others; unowned objects are last."""
    record = small_record()
    teams = {"max-replicas": "red", "require-limits": "blue"}
    findings = [
        replace(stored, kept=KeptOfObject(KeptMetadata((("team", teams.get(stored.finding.policy, "")),))))
        for stored in record.findings()
    ]
    settings = Settings((DescriptionOverride("max-replicas", severity=Severity.CRITICAL),))
    document = document_of(with_findings(record, findings), settings)

    assert ["red", "blue", ""] == [section.owner for section in worst_owners(document.owners)]


def test_an_unknown_severity_is_a_note() -> None:
    """The report names the annotation, and that the policy counts as medium."""
    record = small_record()
    [first, *others] = record.policies
    manifest = {**first.policy.manifest, "metadata": {"annotations": {"assay.dev/severity": "urgent"}}}
    changed = replace(first, policy=replace(first.policy, manifest=manifest))
    document = document_of(replace(record, policies=(changed, *others)))
    [note] = [entry for entry in document.health if entry.kind is HealthKind.NOTE]

    assert (first.policy.name, True) == (note.policy, "'urgent'" in note.detail)
    assert note in next(section for section in document.policies if section.name == note.policy).health
