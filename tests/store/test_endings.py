"""How findings end: they continue in others, or are resolved because they are not bound any more; and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from sqlalchemy import select

from scanner.errors import UsageError
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import VALIDATING
from scanner.model.scans.cause import Cause, CauseKind
from scanner.model.scans.method import Method
from scanner.model.scans.scan import CoverageState, ScanEnd, ScanStart, Scope
from scanner.model.scans.stored_finding import StoredFinding
from scanner.policies.manifest import read_binding
from scanner.posture.problem_rows import Problem, problems
from scanner.store import SqlStore
from scanner.store.rows.tables import FIXES
from tests import documents
from tests.store.made import CHECK, Round, binding, ended, finding, listed, page_of, policy
from tests.store.test_problems import OTHER, Rules, only, record_pods, with_checks

A, B = finding("a"), finding("b")
REWORDED = finding("a", check=OTHER)._replace(fingerprint="ab" * 32)
RENAMED = finding("a", binding="renamed")
METHOD = Method()


@dataclass(frozen=True)
class Known(Rules):
    """A scan that read all policies."""

    method: Method = METHOD
    languages: tuple[str, ...] = (VALIDATING,)

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        return replace(super().start(number), method=self.method)

    def end(self, number: int) -> ScanEnd:
        """The end of the scan."""
        return replace(super().end(number), read_languages=self.languages)


UNBOUND = Known(own_bindings=())
WITHOUT_POLICY = Known(own_policies=(), own_bindings=())


def resolved_in(store: SqlStore, number: int) -> StoredFinding:
    """The only finding that a scan resolved."""
    return only(store.read_scan(f"scan-{number}").resolved_findings())


def found_in(store: SqlStore, number: int) -> StoredFinding:
    """The only finding of a scan."""
    return only(store.read_scan(f"scan-{number}").findings())


@pytest.mark.parametrize(
    ("later", "cause"),
    [
        pytest.param(UNBOUND, Cause(CauseKind.BINDING), id="its binding is deleted"),
        pytest.param(WITHOUT_POLICY, Cause(CauseKind.POLICY, (CauseKind.BINDING,)), id="its policy is deleted, too"),
        pytest.param(
            replace(UNBOUND, coverage=(listed("Deployment", CoverageState.SKIPPED),)),
            Cause(CauseKind.BINDING),
            id="its kind is not listed any more",
        ),
    ],
)
def test_a_finding_of_a_deleted_policy_is_unbound(store: SqlStore, later: Known, cause: Cause) -> None:
    """The object was not fixed."""
    Known((A,)).record(store, 1)
    later.record(store, 2)

    stored = resolved_in(store, 2)
    assert ("unbound", cause) == (stored.resolution, stored.cause)


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(replace(UNBOUND, languages=()), id="policies could not be listed"),
        pytest.param(
            replace(UNBOUND, languages=("MutatingAdmissionPolicy",)), id="policies of another language were read"
        ),
        pytest.param(replace(UNBOUND, method=Method(policy_files=("new.yaml",))), id="policies come from a file, too"),
        pytest.param(replace(UNBOUND, scope=Scope(selector="app=web")), id="a label selector was given"),
        pytest.param(replace(UNBOUND, scope=Scope(namespaces=("bank",))), id="another namespace was scanned"),
        pytest.param(replace(UNBOUND, scope=Scope(policies=("labels",))), id="another policy was asked for"),
        pytest.param(replace(UNBOUND, scope=Scope(kinds=("Pod",)), coverage=(listed("Pod"),)), id="another kind was"),
        pytest.param(
            replace(UNBOUND, gaps=(Gap(GapKind.DOCUMENT, "a.yaml, document 1", "a tab"),)), id="a file was not read"
        ),
    ],
)
def test_a_finding_is_not_unbound_for_a_scan_that_cannot_know(store: SqlStore, later: Known) -> None:
    """The finding stays open, unchecked."""
    Known((A,)).record(store, 1)

    assert 0 == later.record(store, 2).resolved
    assert 1 == store.read_scan("scan-2").unchecked


def test_a_scan_without_the_file_of_a_policy_does_not_unbind_it(store: SqlStore) -> None:
    """The policy never was in the cluster."""
    with_file = Method(policy_files=("new.yaml",))
    Known((A,), method=with_file).record(store, 1)
    UNBOUND.record(store, 2)
    assert 1 == store.read_scan("scan-2").unchecked

    replace(UNBOUND, method=with_file).record(store, 3)
    assert "unbound" == resolved_in(store, 3).resolution


def test_a_reworded_check_continues_its_finding(store: SqlStore) -> None:
    """The age and the episode stay, and neither is anything new nor resolved."""
    Known((A,), own_policies=(with_checks(CHECK.expression),)).record(store, 1)
    scan = Known((REWORDED,), own_policies=(with_checks(OTHER.expression),)).record(store, 2)

    stored = found_in(store, 2)
    assert (0, 0) == (scan.new, scan.resolved)
    assert (ended(1), ended(1), "open") == (stored.first_seen, stored.opened_at, stored.status)
    assert (A.fingerprint[:12], Cause(CauseKind.POLICY)) == (stored.continues, stored.cause)
    assert [] == list(store.read_scan("scan-2").resolved_findings())
    assert A.fingerprint == found_in(store, 1).finding.fingerprint


def test_a_recreated_object_continues_its_finding(store: SqlStore) -> None:
    """The object of the same name has another UID, and so another fingerprint."""
    recreated = finding("a", uid="another")._replace(fingerprint="cd" * 32)
    Known((A,)).record(store, 1)
    Known((recreated,)).record(store, 2)

    stored = found_in(store, 2)
    assert (A.fingerprint[:12], ended(1)) == (stored.continues, stored.first_seen)
    assert Cause(CauseKind.OBJECT_CREATED) == stored.cause


def test_a_renamed_binding_continues_its_findings_there_and_back(store: SqlStore) -> None:
    """The content is the same; so are the findings."""
    renamed = binding("replicas", name="renamed")
    Known((A,)).record(store, 1)
    Known((RENAMED,), own_bindings=(renamed,)).record(store, 2)
    there = found_in(store, 2)
    scan = Known((A,)).record(store, 3)
    back = found_in(store, 3)

    assert (A.fingerprint[:12], Cause(CauseKind.BINDING)) == (there.continues, there.cause)
    assert (RENAMED.fingerprint[:12], ended(1)) == (back.continues, back.first_seen)
    assert (0, 0) == (scan.new, scan.resolved)


def test_a_binding_of_a_manifest_is_renamed_if_its_spec_stays(store: SqlStore) -> None:
    """Its digest is another one, because that has the name."""
    earlier, later = (
        read_binding(documents.binding(name, "replicas"), language=VALIDATING)
        for name in ("replicas-binding", "renamed")
    )
    Known((A,), own_bindings=(earlier,)).record(store, 1)
    Known((RENAMED,), own_bindings=(later,)).record(store, 2)

    assert earlier.digest != later.digest
    assert A.fingerprint[:12] == found_in(store, 2).continues


def test_a_finding_that_continues_a_younger_one_is_as_old_as_ever(store: SqlStore) -> None:
    """It was seen, resolved, and comes back when the binding of the younger one gets its name."""
    renamed = binding("replicas", name="renamed")
    Known((A,)).record(store, 1)
    UNBOUND.record(store, 2)
    Known((RENAMED,), own_bindings=(renamed,)).record(store, 3)
    Known((A,)).record(store, 4)

    stored = found_in(store, 4)
    assert (RENAMED.fingerprint[:12], ended(1), ended(3)) == (stored.continues, stored.first_seen, stored.opened_at)


def test_a_binding_with_other_content_is_another_one(store: SqlStore) -> None:
    """Its findings are new, and those of the first one are unbound; the problem goes on."""
    stricter = binding("replicas", name="renamed", digest="stricter")
    Known((A,)).record(store, 1)
    Known((RENAMED,), own_bindings=(stricter,)).record(store, 2)

    assert ("new", "") == (found_in(store, 2).status, found_in(store, 2).continues)
    assert "unbound" == resolved_in(store, 2).resolution
    assert ["open"] == [problem.status for problem in problems_of(store, 2)]


def test_a_finding_is_explained_by_the_id_that_it_had(store: SqlStore) -> None:
    """With all its events, those of the finding that it continues first."""
    Known((A,)).record(store, 1)
    Known((RENAMED,), own_bindings=(binding("replicas", name="renamed"),)).record(store, 2)
    Known(own_bindings=(binding("replicas", name="renamed"),)).record(store, 3)

    explained = store.find_finding(A.fingerprint[:12])
    assert RENAMED.fingerprint == explained.stored.finding.fingerprint
    assert [("new", ended(1)), ("continued", ended(2)), ("objectGone", ended(3))] == [
        (event.event, event.at) for event in explained.events
    ]
    with pytest.raises(UsageError, match="There is no finding"):
        store.find_finding("0123456789ab")


def problems_of(store: SqlStore, number: int) -> list[Problem]:
    """The problems of a scan."""
    return list(problems(store.read_scan(f"scan-{number}").findings_by_problem()))


def test_a_problem_goes_on_while_its_pods_are_replaced(store: SqlStore) -> None:
    """Its clocks stay, although every finding is another one."""
    pods = [finding(name, kind="Pod") for name in ("web-1", "web-2")]
    record_pods(store, 1, pods[:1])
    record_pods(store, 2, pods[1:])

    [problem] = problems_of(store, 2)
    assert ("open", ended(1), ended(1), 1) == (problem.status, problem.first_seen, problem.opened_at, problem.findings)
    assert ("new", ended(2)) == (found_in(store, 2).status, found_in(store, 2).opened_at)


def test_a_problem_that_comes_back_begins_a_new_episode(store: SqlStore) -> None:
    """The problem is reopened, even if its pods have other names now."""
    pods = [finding(name, kind="Pod") for name in ("web-1", "web-2")]
    record_pods(store, 1, pods[:1])
    record_pods(store, 2, [])
    record_pods(store, 3, pods[1:])

    [problem] = problems_of(store, 3)
    assert ("reopened", ended(1), ended(3)) == (problem.status, problem.first_seen, problem.opened_at)


def test_a_problem_with_an_unchecked_finding_is_not_resolved(store: SqlStore) -> None:
    """One of two pods of a workload is in a namespace that the second scan left out."""
    other = finding("a", binding="labels-binding")
    both = (binding("replicas"), binding("replicas", name="labels-binding"))
    Known((A, other), own_bindings=both).record(store, 1)
    Known(own_bindings=both, scope=Scope(bindings=("replicas-binding",))).record(store, 2)

    [problem] = problems_of(store, 2)
    assert ("open", 1, 1) == (problem.status, problem.findings, problem.unchecked)


def test_a_problem_is_fixed_only_if_all_its_findings_are(store: SqlStore) -> None:
    """One of its objects was deleted: the weaker reason counts, and no fix is counted."""
    pods = [finding(name, kind="Pod") for name in ("web-1", "web-2")]
    record_pods(store, 1, pods)
    record_pods(store, 2, [])
    [problem] = problems_of(store, 2)

    assert ("resolved", "objectGone") == (problem.status, problem.resolution)
    assert [] == fixes(store)


def fixes(store: SqlStore) -> list[tuple[object, ...]]:
    """The rows of the table of fixes, without the cluster."""
    with store._engine.connect() as connection:
        own = FIXES.c
        return [
            tuple(row)
            for row in connection.execute(select(own.revision, own.policy, own.opened, own.problems).order_by(*FIXES.c))
        ]


def test_a_fixed_problem_is_counted_with_the_beginning_of_its_episode(store: SqlStore) -> None:
    """Two were opened by the first scan, and the third scan saw one of them fixed."""
    Known((A, B)).record(store, 1)
    Known((A, B)).record(store, 2)
    each = Known((B,))
    page = page_of((A, B), "apps/v1", "Deployment")
    store.begin(each.start(3))
    store.write_page("scan-3", replace(page, findings=(B,), places=(1,)))
    store.finish("scan-3", each.end(3))

    assert [(3, "replicas", 1, 1)] == fixes(store)
    assert ("fixed", Cause(CauseKind.OBJECT_CHANGED)) == (resolved_in(store, 3).resolution, resolved_in(store, 3).cause)


def test_everything_in_the_first_scan_of_a_cluster_has_the_cause_first_scan(store: SqlStore) -> None:
    """No part changed, because there is no earlier scan."""
    Known((A,)).record(store, 1)

    assert Cause(CauseKind.FIRST_SCAN) == found_in(store, 1).cause
    Known((A,)).record(store, 2)
    assert found_in(store, 2).cause is None


@pytest.mark.parametrize(
    ("before", "now", "cause"),
    [
        pytest.param(Known(), Known((A,)), Cause(CauseKind.OBJECT_CREATED), id="the object was created"),
        pytest.param(
            Known(own_policies=(policy("replicas", digest="loose"),)),
            Known((A,)),
            Cause(CauseKind.POLICY, (CauseKind.OBJECT_CREATED,)),
            id="the policy changed, too",
        ),
        pytest.param(
            Known(coverage=(listed("Deployment", CoverageState.FORBIDDEN),)),
            Known((A,)),
            Cause(CauseKind.COVERAGE),
            id="the kind was forbidden",
        ),
        pytest.param(
            Known(gaps=(Gap(GapKind.EVALUATION, "policy replicas", "its params could not be listed"),)),
            Known((A,)),
            Cause(CauseKind.OBJECT_CREATED),
            id="the policy was not evaluated, but the object did not exist",
        ),
        pytest.param(Known(scope=Scope(namespaces=("bank",))), Known((A,)), Cause(CauseKind.COVERAGE), id="-n"),
        pytest.param(
            Known(tool="0.0.9"), Known((A,)), Cause(CauseKind.ASSAY, (CauseKind.OBJECT_CREATED,)), id="another version"
        ),
        pytest.param(
            Known(own_bindings=()),
            Known((A,)),
            Cause(CauseKind.BINDING, (CauseKind.OBJECT_CREATED,)),
            id="the policy was not bound",
        ),
    ],
)
def test_a_new_finding_has_the_cause_of_what_changed(store: SqlStore, before: Known, now: Known, cause: Cause) -> None:
    """Compared with the newest comparable scan, or else with the newest one."""
    before.record(store, 1)
    now.record(store, 2)

    assert cause == found_in(store, 2).cause


@pytest.mark.parametrize(
    ("now", "cause"),
    [
        pytest.param(Known((A._replace(denies=False),)), Cause(CauseKind.OBJECT_CHANGED), id="by elimination"),
        pytest.param(
            Known((A._replace(denies=False),), own_bindings=(binding("replicas", digest="warn"),)),
            Cause(CauseKind.BINDING),
            id="the binding changed",
        ),
        pytest.param(
            Known(
                (A._replace(denies=False, resource_version="2"),), own_bindings=(binding("replicas", digest="warn"),)
            ),
            Cause(CauseKind.BINDING, (CauseKind.OBJECT_CHANGED,)),
            id="the object changed, too",
        ),
    ],
)
def test_a_changed_finding_has_a_cause(store: SqlStore, now: Known, cause: Cause) -> None:
    """Compared with the scan that last saw it."""
    Known((A,)).record(store, 1)
    now.record(store, 2)

    assert cause == found_in(store, 2).cause


def test_a_new_finding_is_compared_with_a_comparable_scan(store: SqlStore) -> None:
    """A scan of another namespace in between does not make everything new because of coverage."""
    Known((B,)).record(store, 1)
    Round(scope=Scope(namespaces=("bank",))).record(store, 2)
    Known((A, B)).record(store, 3)

    causes = {stored.finding.name: stored.cause for stored in store.read_scan("scan-3").findings()}
    assert {"a": Cause(CauseKind.OBJECT_CREATED), "b": None} == causes
