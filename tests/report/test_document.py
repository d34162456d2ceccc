"""The content of a report before a format renders it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Validation
from scanner.model.scans.scan import Coverage, CoverageState, PolicyRecord, ScanState, Scope
from scanner.report.document.counts import NOTHING, CheckCounts, FindingCounts
from scanner.report.document.document import document_of

from .records import finding, hostile_record, partial_record, policy, previewed, scan, small_record


def test_outcomes_add_up() -> None:
    """The outcomes of all policies, and of all namespaces, are those of the scan."""
    document = document_of(small_record())
    assert CheckCounts(11, 5, 1, 0, 2) == document.totals
    assert document.totals.total == sum(policy.counts.total for policy in document.policies)
    assert document.totals.total == sum(namespace.counts.total for namespace in document.namespaces)


def test_findings_are_counted_by_status() -> None:
    """Findings are counted once, by status and by whether admission would deny."""
    document = document_of(small_record())
    assert FindingCounts(total=6, new=2, open=3, reopened=1, would_deny=3) == document.findings_total
    assert document.findings_total.total == sum(policy.findings.total for policy in document.policies)
    assert document.findings_total.total == sum(namespace.findings.total for namespace in document.namespaces)


def test_resolved_findings_are_counted() -> None:
    """Their number is that of the stream of resolved findings."""
    assert document_of(small_record()).changes.resolved == 2


def test_params_are_counted_apart() -> None:
    """A binding has the counts of each of its params."""
    (param_binding,) = next(
        policy for policy in document_of(small_record()).policies if policy.name == "max-replicas"
    ).bindings
    assert [("shop", "limits", CheckCounts(violated=1, errored_would_deny=1))] == [
        (param.namespace, param.name, param.counts) for param in param_binding.params
    ]
    assert param_binding.param_ref == "limits in namespace shop; if missing: Deny"


def test_cluster_scoped_objects_stand_apart() -> None:
    """Objects without a namespace are counted under the empty name."""
    first = document_of(small_record()).namespaces[0]
    assert ("", CheckCounts(passed=3, violated=1, skipped=2)) == (first.namespace, first.counts)


def test_a_scan_without_gaps_is_complete() -> None:
    """The scan is recorded as complete and has no gap."""
    assert document_of(small_record()).complete


@pytest.mark.parametrize(
    "change",
    [
        {"scan": scan(ScanState.INCOMPLETE)},
        {"scan": scan(ScanState.FAILED)},
        {"scan": scan(ScanState.RUNNING)},
        {"gaps": (Gap(GapKind.OBJECT, "apps/v1/Deployment shop/web", "no metadata"),)},
        {"coverage": (Coverage("v1", "Pod", CoverageState.FORBIDDEN),)},
    ],
)
def test_a_scan_with_a_gap_is_incomplete(change: dict[str, object]) -> None:
    """A scan with a gap is incomplete in any recorded state."""
    record = replace(small_record(), **change)  # type: ignore[arg-type]
    assert not document_of(record).complete


def test_a_kind_that_the_user_skipped_is_no_gap() -> None:
    """The skipped kind is named, and the scan is complete."""
    record = replace(small_record(), scan=scan(scope=Scope(skip_kinds=("secrets",))))
    document = document_of(record)
    assert ("kinds secrets",) == document.provenance.exclusions
    assert document.complete


def test_gaps_are_named() -> None:
    """Every gap is described once, incomplete kinds first."""
    assert (
        "Job (batch/v1): listed only partly, the server went away after 1 page",
        "Pod (v1): no permission to list, system:serviceaccount:audit/assay may not list pods",
        "a document could not be read: broken.yaml, document 3: line 7: found a tab where a space is expected",
    ) == document_of(partial_record()).coverage.unseen


def test_many_gaps_are_counted() -> None:
    """Many gaps of one kind become a number."""
    gaps = tuple(Gap(GapKind.DOCUMENT, f"file-{number}.yaml", "not YAML") for number in range(1_200))
    document = document_of(replace(small_record(), gaps=gaps))
    assert ("1,200 documents could not be read",) == document.coverage.unseen
    assert len(document.gaps) == 1_200


def test_a_scan_of_files_has_a_note() -> None:
    """The note states that no server defaulted the objects; a scan of a cluster lacks the note."""
    notes = [document_of(record).provenance.notes[0] for record in (partial_record(), small_record())]
    assert [True, False] == ["no server has defaulted" in note for note in notes]


def test_policies_that_read_the_requester_are_marked() -> None:
    """A policy is marked if any of its expressions, messages included, reads the user."""
    quiet, loud = policy("quiet", "true"), policy("loud", "true")
    loud = replace(loud, validations=(Validation("true", message_expression="request.userInfo.username"),))
    record = replace(small_record(), policies=(PolicyRecord(quiet, (), 0), PolicyRecord(loud, (), 0)))
    marked = {policy.name: policy.reads_requester for policy in document_of(record).policies}
    assert (False, True) == (marked["quiet"], marked["loud"])


def test_a_policy_with_outcomes_alone_is_reported() -> None:
    """The findings of a policy that the scan did not record are in the report."""
    record = replace(small_record(), policies=())
    assert {"max-replicas": 2, "require-limits": 3, "require-owner": 1} == {
        policy.name: policy.findings.total for policy in document_of(record).policies
    }


def test_the_definition_is_the_authors_manifest() -> None:
    """The manifest lacks status and the metadata that a server adds."""
    manifest = document_of(small_record()).policies[0].manifest
    assert {"apiVersion", "kind", "metadata", "spec"} == set(manifest)
    assert {"name": "max-replicas"} == manifest["metadata"]


@pytest.mark.parametrize(("stored", "shown"), [("a" * 64, "a" * 64), ("", None)])
def test_a_digest_that_is_not_known_is_none(stored: str, shown: str | None) -> None:
    """Two scans whose digests are not known are not equal: nothing is shown that could be compared."""
    digested = replace(scan(), policy_set_digest=stored, description_digest=stored)
    provenance = document_of(replace(small_record(), scan=digested)).provenance
    assert (shown, shown) == (provenance.policy_set_digest, provenance.description_digest)


def test_findings_are_read_anew_each_time() -> None:
    """A document has no list of findings: it opens the stream again for every format."""
    document = document_of(small_record())
    assert 6 == len(list(document.findings())) == len(list(document.findings()))


def test_hostile_names_are_data() -> None:
    """The document keeps names unchanged; a format escapes them."""
    document = document_of(hostile_record())
    assert {policy.finding.name for policy in document.findings()} == {policy.name for policy in document.policies}


def test_an_unfinished_scan_has_no_end() -> None:
    """The provenance states that the scan did not finish."""
    record = replace(small_record(), scan=replace(scan(ScanState.FAILED), finished_at=None))
    document = document_of(record)
    assert document.provenance.finished_at is None
    assert ("the scan failed before its end",) == document.coverage.unseen


def test_first_scan_has_no_predecessor() -> None:
    """The provenance names no previous scan."""
    record = replace(small_record(), previous=None, found=lambda: ([finding("web", status="new")]))
    assert ("", None) == (
        document_of(record).provenance.previous_scan_id,
        document_of(record).provenance.previous_finished_at,
    )


def test_previews_are_not_in_force() -> None:
    """No number of what would be refused has them, and their checks are counted apart."""
    document = document_of(previewed())

    assert (0, 6) == (document.findings_total.would_deny, document.findings_total.preview)
    assert {NOTHING} == {document.count_in_force(section) for section in document.policies}
    assert {NOTHING} == {document.count_in_namespace(section) for section in document.namespaces}
    assert document.totals.violated == sum(counts.violated for counts in document.previews.values())
