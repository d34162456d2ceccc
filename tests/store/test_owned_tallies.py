"""The outcomes of a scan by owner, against a naive computation over a random cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from scanner.audit import object_sets, population
from scanner.audit.object_sets import InvocationKey, ObjectSets, SetKey
from scanner.model.outcome import Check, CheckKind, Errored, Finding, Violated
from scanner.model.policy import VALIDATING
from scanner.model.population import Controller, PopulationMember
from scanner.model.resource import NAMESPACES, Kind
from scanner.model.scans.scan import ClusterIdentity, PageResult
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.scans.tally import OutcomeName, OwnedTally, TallyKey
from scanner.posture.owners import Owners
from scanner.posture.score import Score, Scores, default_severity, owner_scores
from scanner.store import SqlStore
from tests.store.made import CHECK, PROD, Round, finding, identity_of, listed
from tests.store.test_population import SETTINGS

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
SECOND = Check(CheckKind.VALIDATION, 1, "object.metadata.name != 'x'")
OUTCOMES = {
    "violated": Violated("no"),
    "denies": Errored("broken", would_deny=True),
    "admits": Errored("broken", would_deny=False),
}
NUMBERS = count()
OWNER_OF = Owners()


@dataclass(frozen=True)
class Pod:
    """A Pod with the outcomes of two checks: passed, violated, denies, admits, excepted, or a reason of no evaluation."""

    namespace: str
    name: str
    team: str
    controlled: bool
    first: str
    second: str

    @property
    def examined(self) -> PopulationMember:
        """The record of the object."""
        controller = Controller("v1", "Pod", "top", "") if self.controlled else None
        labels = (("team", self.team),) if self.team else ()
        return PopulationMember(
            PODS, self.namespace, self.name, f"uid-{self.namespace}-{self.name}", controller, labels
        )

    def findings(self) -> list[Finding]:
        """The findings of both checks."""
        return [
            finding(
                self.name,
                kind="Pod",
                namespace=self.namespace,
                check=check,
                policy=policy,
                outcome=OUTCOMES["violated" if outcome == "excepted" else outcome],
                excepted_by="trusted" if outcome == "excepted" else "",
            )
            for policy, check, outcome in self.outcomes()
            if outcome in OUTCOMES or outcome == "excepted"
        ]

    def outcomes(self) -> list[tuple[str, Check, str]]:
        """Policy, check and outcome; of an object that no policy matches, nothing."""
        both = [("replicas", CHECK, self.first), ("labels", SECOND, self.second)]
        return [each for each in both if each[2]]


outcomes = st.sampled_from(["", "passed", "violated", "denies", "admits", "excepted", "notAuditable", "conditionFalse"])
clusters = st.lists(
    st.builds(
        Pod,
        st.sampled_from(["shop", "pay"]),
        st.sampled_from(["top", "a", "b", "c", "d", "e"]),
        st.sampled_from(["", "red", "blue", "green"]),
        st.booleans(),
        outcomes,
        outcomes,
    ),
    max_size=10,
    unique_by=lambda pod: (pod.namespace, pod.name),
)


def page_of(pods: list[Pod]) -> PageResult:
    """A page of these pods, with tallies, sets and findings."""
    found = [each for pod in pods for each in pod.findings()]
    places = {(pod.namespace, pod.name): place for place, pod in enumerate(pods)}
    sets: Counter[SetKey] = Counter()
    tallies: Counter[TallyKey] = Counter()
    for place, pod in enumerate(pods):
        for policy, check, outcome in pod.outcomes():
            reason = outcome if outcome in ("notAuditable", "conditionFalse") else ""
            sets[SetKey(InvocationKey(VALIDATING, policy, f"{policy}-binding"), ((check, reason),))] |= 1 << place
            tallies[key_of(policy, check, pod.namespace, outcome)] += 1
    return PageResult(
        "v1",
        "Pod",
        1,
        len(pods),
        len(pods),
        tuple(found),
        dict(tallies),
        examined=population.pack([pod.examined for pod in pods]),
        sets=object_sets.pack(ObjectSets(len(pods), dict(sets))),
        places=tuple(places[identity_of(each)[:2]] for each in found),
    )


def key_of(policy: str, check: Check, namespace: str, outcome: str) -> TallyKey:
    """The key under which an outcome is counted; the second check depends on the requester."""
    names = {
        "passed": OutcomeName.PASSED,
        "violated": OutcomeName.VIOLATED,
        "denies": OutcomeName.ERRORED_DENY,
        "admits": OutcomeName.ERRORED_ADMIT,
        "excepted": OutcomeName.EXCEPTED,
        "notAuditable": OutcomeName.NOT_AUDITABLE,
        "conditionFalse": OutcomeName.SKIPPED,
    }
    return TallyKey(
        policy, f"{policy}-binding", "", "", check, "v1", "Pod", namespace, names[outcome], requester=check is SECOND
    )


def scanned(store: SqlStore, pods: list[Pod], teams: dict[str, str], number: int) -> StoredScan:
    """The record of a scan of a cluster; `teams` are the labels of its namespaces."""
    each = Round(coverage=(listed("Pod"),), cluster=ClusterIdentity(f"cluster-{number}", source=PROD.source))
    store.begin(each.start(number))
    store.write_page(f"scan-{number}", page_of(pods))
    namespaces = [
        PopulationMember(NAMESPACES, "", name, "", None, (("team", team),)) for name, team in teams.items() if team
    ]
    store.write_controllers(f"scan-{number}", NAMESPACES, population.pack(namespaces))
    store.finish(f"scan-{number}", replace(each.end(number), controllers={("", "Pod"): True}))
    return store.read_scan(f"scan-{number}")


def naive(pods: list[Pod], teams: dict[str, str]) -> Counter[tuple[str, TallyKey]]:
    """The outcomes by owner, object by object."""
    own = {(pod.namespace, pod.name): pod.team for pod in pods}
    counted: Counter[tuple[str, TallyKey]] = Counter()
    for pod in pods:
        above = own.get((pod.namespace, "top"), "") if pod.controlled and pod.name != "top" else ""
        owner = pod.team or above or teams.get(pod.namespace, "")
        counted.update((owner, key_of(policy, check, "", outcome)) for policy, check, outcome in pod.outcomes())
    return counted


teams_of_namespaces = st.fixed_dictionaries({name: st.sampled_from(["", "red", "ops"]) for name in ("shop", "pay")})


@given(pods=clusters, teams=teams_of_namespaces)
@SETTINGS
def test_outcomes_by_owner_are_those_of_every_object(store: SqlStore, pods: list[Pod], teams: dict[str, str]) -> None:
    """Sets and findings give the numbers that a look at each object gives, and the same score."""
    record = scanned(store, pods, teams, next(NUMBERS))
    counted = summed(record.tallies_by_owner(OWNER_OF))

    assert naive(pods, teams) == counted
    assert naive_scores(record, naive(pods, teams)) == owner_scores(
        record.tallies_by_owner(OWNER_OF), Scores(record, default_severity)
    )
    assert sum(record.tallies.values()) == counted.total()


def naive_scores(record: StoredScan, counted: Counter[tuple[str, TallyKey]]) -> dict[str, Score]:
    """The score of each owner, as of a scan of its objects alone."""
    owners = {owner for owner, _ in counted}
    return {
        owner: Scores(
            replace(record, tallies={key: number for (of, key), number in counted.items() if of == owner}),
            default_severity,
        ).score_scan()
        for owner in owners
    }


def summed(tallies: Iterable[OwnedTally]) -> Counter[tuple[str, TallyKey]]:
    """The numbers by owner and key."""
    counted: Counter[tuple[str, TallyKey]] = Counter()
    for tally in tallies:
        counted.update({(owner, tally.key): number for owner, number in tally.numbers.items()})
    return counted
