"""What a report says about a scan, before it has a form."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Validation
from scanner.model.scan import Coverage, CoverageState, PolicyRecord, ScanState, Scope
from scanner.report.counts import Counts, FindingCounts
from scanner.report.document import document_of

from .records import finding, hostile_record, partial_record, policy, scan, small_record


def test_outcomes_add_up() -> None:
    """The outcomes of all policies, and of all namespaces, are those of the scan."""
    document = document_of(small_record())
    assert Counts(11, 5, 1, 0, 2) == document.totals
    assert document.totals.total == sum(policy.counts.total for policy in document.policies)
    assert document.totals.total == sum(namespace.counts.total for namespace in document.namespaces)


def test_findings_are_counted_by_status() -> None:
    """Findings are counted once, by status and by whether admission would deny."""
    document = document_of(small_record())
    assert FindingCounts(total=6, new=2, open=3, reopened=1, would_deny=3) == document.findings_total
    assert document.findings_total.total == sum(policy.findings.total for policy in document.policies)
    assert document.findings_total.total == sum(namespace.findings.total for namespace in document.namespaces)


def test_resolved_findings_are_counted() -> None:
    """What was fixed is counted from the stream of what was fixed."""
    assert document_of(small_record()).changes.resolved == 2


def test_params_are_counted_apart() -> None:
    """A binding tells what each of its params led to."""
    (param_binding,) = next(
        policy for policy in document_of(small_record()).policies if policy.name == "max-replicas"
    ).bindings
    assert [("shop", "limits", Counts(violated=1, errored_would_deny=1))] == [
        (param.namespace, param.name, param.counts) for param in param_binding.params
    ]
    assert param_binding.param_ref == "limits in namespace shop; if missing: Deny"


def test_cluster_scoped_objects_stand_apart() -> None:
    """Objects without a namespace are counted under the empty name."""
    first = document_of(small_record()).namespaces[0]
    assert ("", Counts(passed=3, violated=1, skipped=2)) == (first.namespace, first.counts)


def test_complete() -> None:
    """A scan is complete when it was recorded so and nothing was missed."""
    assert document_of(small_record()).complete


@pytest.mark.parametrize(
    "change",
    [
        {"scan": scan(ScanState.PARTIAL)},
        {"scan": scan(ScanState.FAILED)},
        {"scan": scan(ScanState.RUNNING)},
        {"gaps": (Gap(GapKind.OBJECT, "apps/v1/Deployment shop/web", "no metadata"),)},
        {"coverage": (Coverage("v1", "Pod", CoverageState.FORBIDDEN),)},
    ],
)
def test_incomplete(change: dict[str, object]) -> None:
    """A scan with a hole is not complete, whatever state it was recorded in."""
    record = replace(small_record(), **change)  # type: ignore[arg-type]
    assert not document_of(record).complete


def test_what_was_left_out_on_request_is_no_hole() -> None:
    """A skipped kind is named, and the scan is complete."""
    record = replace(small_record(), scan=scan(scope=Scope(skip_kinds=("secrets",))))
    document = document_of(record)
    assert ("kinds secrets",) == document.provenance.exclusions
    assert document.complete


def test_holes_are_named() -> None:
    """Every hole is said in words, worst kinds first, and what the ledger says is not said twice."""
    record = partial_record()
    record = replace(record, gaps=(*record.gaps, Gap(GapKind.LIST, "v1/Pod", "forbidden")))
    assert (
        "Job (batch/v1): listed only partly, the server went away after 1 page",
        "Pod (v1): no permission to list, system:serviceaccount:audit/assay may not list pods",
        "a document could not be read: broken.yaml, document 3: line 7: found a tab where a space is expected",
    ) == tuple(line for line in document_of(record).coverage.unseen if "v1 Pod" not in line)


def test_many_gaps_are_counted() -> None:
    """Of many gaps of one kind only the number is said."""
    gaps = tuple(Gap(GapKind.DOCUMENT, f"file-{number}.yaml", "not YAML") for number in range(1_200))
    document = document_of(replace(small_record(), gaps=gaps))
    assert ("1,200 documents could not be read",) == document.coverage.unseen
    assert len(document.gaps) == 1_200


def test_files_are_told_apart() -> None:
    """A scan of files says that no server defaulted them; one of a cluster does not."""
    notes = [document_of(record).provenance.notes[0] for record in (partial_record(), small_record())]
    assert [True, False] == ["no server has defaulted" in note for note in notes]


def test_policies_that_read_the_requester_are_marked() -> None:
    """A policy is marked when any of its expressions, messages included, reads who asks."""
    quiet, loud = policy("quiet", "true"), policy("loud", "true")
    loud = replace(loud, validations=(Validation("true", message_expression="request.userInfo.username"),))
    record = replace(small_record(), policies=(PolicyRecord(quiet, (), 0), PolicyRecord(loud, (), 0)))
    marked = {policy.name: policy.reads_requester for policy in document_of(record).policies}
    assert (False, True) == (marked["quiet"], marked["loud"])


def test_a_policy_that_only_left_outcomes_is_reported() -> None:
    """Findings of a policy that the scan did not record are not passed over."""
    record = replace(small_record(), policies=())
    assert {"max-replicas": 2, "require-limits": 3, "require-owner": 1} == {
        policy.name: policy.findings.total for policy in document_of(record).policies
    }


def test_definition_is_what_the_author_wrote() -> None:
    """The text of a policy has neither status nor what a server keeps in metadata."""
    manifest = document_of(small_record()).policies[0].manifest
    assert {"apiVersion", "kind", "metadata", "spec"} == set(manifest)
    assert {"name": "max-replicas"} == manifest["metadata"]


@pytest.mark.parametrize(("stored", "shown"), [("a" * 64, "a" * 64), ("", None)])
def test_a_digest_that_is_not_known_is_none(stored: str, shown: str | None) -> None:
    """Two scans whose digests are not known are not equal: nothing is shown that could be compared."""
    known = replace(scan(), policy_set_digest=stored, description_digest=stored)
    provenance = document_of(replace(small_record(), scan=known)).provenance
    assert (shown, shown) == (provenance.policy_set_digest, provenance.description_digest)


def test_findings_are_read_anew_each_time() -> None:
    """A document holds no finding: it opens the stream again for every format."""
    document = document_of(small_record())
    assert 6 == len(list(document.findings())) == len(list(document.findings()))


def test_hostile_names_are_data() -> None:
    """The document keeps names exactly as they are; making them harmless is the business of a format."""
    document = document_of(hostile_record())
    assert {policy.finding.name for policy in document.findings()} == {policy.name for policy in document.policies}


def test_an_unfinished_scan_has_no_end() -> None:
    """A scan that broke off before its end says so."""
    record = replace(small_record(), scan=replace(scan(ScanState.FAILED), finished_at=None))
    document = document_of(record)
    assert document.provenance.finished_at is None
    assert ("the scan failed before its end",) == document.coverage.unseen


def test_first_scan_has_no_predecessor() -> None:
    """Without a scan before, the provenance names none."""
    record = replace(small_record(), previous=None, findings=lambda: iter([finding("web", status="new")]))
    assert ("", None) == (
        document_of(record).provenance.previous_scan_id,
        document_of(record).provenance.previous_finished_at,
    )
