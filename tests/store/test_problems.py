"""Problems, episodes and the reasons of resolutions, from scan to scan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from scanner.audit import population
from scanner.model.outcome import Check, CheckKind, Finding
from scanner.model.policy import VALIDATING, Binding, Policy, Validation
from scanner.model.population import Controller, PopulationMember
from scanner.model.resource import Kind
from scanner.model.scans.scan import ScanStart
from scanner.model.scans.stored_finding import StoredFinding
from scanner.store import SqlStore, open_store
from tests.store.databases import count
from tests.store.made import CHECK, Round, binding, clock, ended, finding, listed, page_of, policy

SETS = Controller("apps/v1", "ReplicaSet", "web-5d4f", "uid-of-set")
OTHER = Check(CheckKind.VALIDATION, 0, "object.spec.replicas < 6")


@dataclass(frozen=True)
class Rules(Round):
    """A scan whose policies and bindings a test names."""

    own_policies: tuple[Policy, ...] = (policy("replicas"),)
    own_bindings: tuple[Binding, ...] = (binding("replicas"),)
    tool: str = "0.1.0"

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        started = replace(super().start(number), tool_version=self.tool)
        return replace(started, policies=self.own_policies, bindings=self.own_bindings)


def with_checks(*expressions: str) -> Policy:
    """The policy of these validations."""
    return replace(policy("replicas"), validations=tuple(map(Validation, expressions)), digest=str(expressions))


def only(findings: Iterator[StoredFinding]) -> StoredFinding:
    """The only finding of a stream."""
    [stored] = findings
    return stored


A, B = finding("a"), finding("b")


def test_findings_of_one_workload_are_one_problem(store: SqlStore) -> None:
    """The pods of a rollout belong to the problem of their workload."""
    pods = [finding(name, kind="Pod") for name in ("web-1", "web-2")]
    record_pods(store, 1, pods[:1])
    record_pods(store, 2, pods[1:])

    first, second = (only(store.read_scan(f"scan-{number}").findings()) for number in (1, 2))
    assert first.problem == second.problem
    assert first.id != second.id


def record_pods(store: SqlStore, number: int, pods: list[Finding]) -> None:
    """Store a scan of pods that one replica set controls."""
    each = Round(tuple(pods), coverage=(listed("Pod"),))
    page = page_of(each.findings, "v1", "Pod")
    kind = Kind("", "v1", "Pod", "pods", namespaced=True)
    examined = [PopulationMember(kind, pod.namespace, pod.name, pod.uid, SETS) for pod in pods]
    store.begin(each.start(number))
    store.write_page(f"scan-{number}", replace(page, examined=population.pack(examined)))
    store.finish(f"scan-{number}", replace(each.end(number), controllers={("apps", "ReplicaSet"): True}))


def test_other_checks_and_other_workloads_are_other_problems(store: SqlStore) -> None:
    """A problem is one check of one policy, broken by one workload."""
    labels = finding("a", policy="labels")
    Round((A, B, labels)).record(store, 1)

    assert 3 == len({stored.problem for stored in store.read_scan("scan-1").findings()})


def test_problems_have_the_same_ids_in_every_database(store: SqlStore, tmp_path: Path) -> None:
    """Ids follow from names alone."""
    Round((A,)).record(store, 1)
    with open_store(str(tmp_path / "second.db"), clock) as second:
        Round((B, A)).record(second, 7)
        ids = {stored.finding.name: stored.problem for stored in second.read_scan("scan-7").findings()}

    assert ids["a"] == only(store.read_scan("scan-1").findings()).problem


def test_a_check_that_was_reworded_keeps_its_problem(store: SqlStore) -> None:
    """The finding is another one, because its fingerprint has the expression."""
    Rules((A,), own_policies=(with_checks(CHECK.expression),)).record(store, 1)
    edited = finding("a", check=OTHER)._replace(fingerprint="ab" * 32)
    Rules((edited,), own_policies=(with_checks(OTHER.expression),)).record(store, 2)

    first, second = (only(store.read_scan(f"scan-{number}").findings()) for number in (1, 2))
    assert first.problem == second.problem


def test_an_episode_begins_anew_and_the_first_sight_stays(store: SqlStore) -> None:
    """A changed message goes on with the episode."""
    Round((A,)).record(store, 1)
    Round(()).record(store, 2)
    Round((A,)).record(store, 3)
    Round((A._replace(denies=False),)).record(store, 4)

    stored = only(store.read_scan("scan-4").findings())
    assert (ended(1), ended(3)) == (stored.first_seen, stored.opened_at)


def test_an_object_that_is_gone_is_not_fixed(store: SqlStore) -> None:
    """The scan listed the kind, without the object."""
    Rules((A,)).record(store, 1)
    Rules(()).record(store, 2)

    assert "objectGone" == only(store.read_scan("scan-2").resolved_findings()).resolution


def passing(each: Round, store: SqlStore, number: int, *, matched: bool = True) -> None:
    """Store a scan in which the object of A passes its check, or is not matched."""
    page = page_of((A,), "apps/v1", "Deployment")
    store.begin(each.start(number))
    store.write_page(f"scan-{number}", replace(page, findings=(), places=(), sets=page.sets if matched else b""))
    store.finish(f"scan-{number}", each.end(number))


def test_an_object_that_passes_is_fixed(store: SqlStore) -> None:
    """Nothing that decides about it changed."""
    Rules((A,)).record(store, 1)
    passing(Rules(), store, 2)

    stored = only(store.read_scan("scan-2").resolved_findings())
    assert ("fixed", ended(2)) == (stored.resolution, stored.resolved_at)


def test_a_finding_is_not_fixed_if_its_rules_changed(store: SqlStore) -> None:
    """The object may be as it was: the policy was loosened, or Assay is another version."""
    for number, loosened in enumerate((Rules(own_policies=(with_checks("true"),)), Rules(tool="0.2.0"))):
        Rules((A,)).record(store, 1 + 2 * number)
        passing(loosened, store, 2 + 2 * number)
        assert "rulesChanged" == only(store.read_scan(f"scan-{2 + 2 * number}").resolved_findings()).resolution


def test_a_change_of_another_policy_hides_no_fix(store: SqlStore) -> None:
    """Only what decides about the finding counts."""
    others = policy("replicas"), policy("labels", digest="another")
    Rules((A,)).record(store, 1)
    passing(Rules(own_policies=others), store, 2)

    assert "fixed" == only(store.read_scan("scan-2").resolved_findings()).resolution


def test_an_object_that_is_no_longer_matched_is_not_fixed(store: SqlStore) -> None:
    """The object exists, and no check of the policy was evaluated for it."""
    Rules((A,)).record(store, 1)
    passing(Rules(), store, 2, matched=False)

    assert "notMatched" == only(store.read_scan("scan-2").resolved_findings()).resolution


def test_the_checks_of_an_unchanged_policy_keep_their_rows(store: SqlStore, url: str) -> None:
    """A rescan with nothing changed writes no id of a check."""
    Rules((A,), own_policies=(with_checks("a", "b"),)).record(store, 1)
    before = count(url, "check_names")
    Rules((A,), own_policies=(with_checks("a", "b"),)).record(store, 2)

    assert before == count(url, "check_names") > 0


def test_an_older_report_keeps_the_ids_of_its_checks(store: SqlStore) -> None:
    """A check that was removed comes back as the edited form of another one, whose id it carries on."""
    Rules((), own_policies=(with_checks("a", "b"),)).record(store, 1)
    before = store.read_scan("scan-1").check_ids
    for number, expression in enumerate(("a", "b"), start=2):
        Rules((), own_policies=(with_checks(expression),)).record(store, number)

    second, third = ({*store.read_scan(f"scan-{number}").check_ids.values()} for number in (2, 3))
    assert second == third
    assert before == store.read_scan("scan-1").check_ids


def test_the_language_of_a_policy_is_part_of_its_problem(store: SqlStore) -> None:
    """Policies of two languages may have one name."""
    kyverno = finding("a", language="ValidatingPolicy", binding="other")
    languages = policy("replicas"), policy("replicas", language="ValidatingPolicy")
    bound = binding("replicas"), binding("replicas", language="ValidatingPolicy", name="other")
    Rules((A, kyverno), own_policies=languages, own_bindings=bound).record(store, 1)

    assert VALIDATING != kyverno.language
    assert 2 == len({stored.problem for stored in store.read_scan("scan-1").findings()})
