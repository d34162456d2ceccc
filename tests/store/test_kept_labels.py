"""The kept labels of the objects of findings, of their workloads and of their namespaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from sqlalchemy import func, select

from scanner.audit import population
from scanner.model.population import NOTHING_KEPT, Controller, KeptMetadata, KeptOfObject, Pairs, PopulationMember
from scanner.model.resource import NAMESPACES, Kind
from scanner.model.scans.scan import PageResult, Scope
from scanner.model.scans.stored_finding import make_census_by_owner
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.owners import Owners
from scanner.store import SqlStore
from scanner.store.rows.tables import OPEN, POPULATION
from tests.store.databases import execute
from tests.store.made import EVERYTHING, Round, finding, listed, page_of

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
TEAM: Pairs = (("team", "blue"),)
POD = finding("web-1", kind="Pod")
WEB = finding("web")
OWNER_OF = Owners()


@dataclass(frozen=True)
class Labelled:
    """A scan of the Deployment `web` of shop and of its Pod, both with a finding, with labels of each object."""

    pod: Pairs = ()
    deployment: Pairs = ()
    namespace: Pairs = ()
    with_deployment: bool = True
    scope: Scope = EVERYTHING
    findings: bool = True
    namespaces: tuple[str, ...] = ("shop",)

    def record(self, store: SqlStore, number: int) -> None:
        """Store the scan."""
        kinds = (listed("Deployment"), listed("Pod")) if self.with_deployment else (listed("Pod"),)
        each = Round(coverage=kinds, scope=self.scope)
        store.begin(each.start(number))
        controller = Controller("apps/v1", "Deployment", "web", "")
        pod = PopulationMember(PODS, POD.namespace, POD.name, POD.uid, controller, self.pod)
        page = page_of((POD,), "v1", "Pod")
        store.write_page(f"scan-{number}", self._page(page, pod))
        if self.with_deployment:
            deployment = PopulationMember(DEPLOYMENTS, WEB.namespace, WEB.name, WEB.uid, None, self.deployment)
            store.write_page(f"scan-{number}", self._page(page_of((WEB,), "apps/v1", "Deployment"), deployment))
        namespaces = [
            PopulationMember(NAMESPACES, "", name, f"uid-{name}", None, self.namespace) for name in self.namespaces
        ]
        store.write_controllers(f"scan-{number}", NAMESPACES, population.pack(namespaces))
        end = replace(each.end(number), controllers={("apps", "Deployment"): True})
        store.finish(f"scan-{number}", end)

    def _page(self, page: PageResult, examined: PopulationMember) -> PageResult:
        page = page if self.findings else replace(page, findings=(), places=(), tallies={})
        return replace(page, examined=population.pack([examined]))


def kept(record: StoredScan) -> dict[str, KeptOfObject | None]:
    """The labels of the objects of findings, by name."""
    return {stored.finding.name: stored.kept for stored in record.findings()}


def owners(record: StoredScan) -> dict[str, str]:
    """The owners of the objects of findings, by name."""
    return {name: OWNER_OF(labels) for name, labels in kept(record).items()}


def test_an_object_has_the_labels_of_its_workload_and_of_its_namespace(store: SqlStore) -> None:
    """An object that is its own workload has its own labels twice."""
    Labelled((("app", "web"),), TEAM, (("tier", "gold"),)).record(store, 1)
    app, team, gold = KeptMetadata((("app", "web"),)), KeptMetadata(TEAM), KeptMetadata((("tier", "gold"),))

    assert {"web-1": KeptOfObject(app, team, gold), "web": KeptOfObject(team, team, gold)} == kept(
        store.read_scan("scan-1")
    )


def test_a_workload_that_was_not_examined_has_no_labels(store: SqlStore) -> None:
    """Only its name is known."""
    Labelled((("app", "web"),), TEAM, with_deployment=False).record(store, 1)

    assert {"web-1": KeptOfObject(KeptMetadata((("app", "web"),)), NOTHING_KEPT, NOTHING_KEPT)} == kept(
        store.read_scan("scan-1")
    )


def test_every_scan_keeps_the_labels_of_its_day(store: SqlStore) -> None:
    """Labels of a workload or of a namespace that change later do not rewrite an earlier report."""
    Labelled(deployment=TEAM).record(store, 1)
    Labelled(namespace=(("team", "red"),)).record(store, 2)
    Labelled((("owner", "ann"),)).record(store, 3)
    scans = [owners(store.read_scan(f"scan-{number}")) for number in (1, 2, 3)]

    assert [{"web-1": "blue", "web": "blue"}, {"web-1": "red", "web": "red"}, {"web-1": "ann", "web": ""}] == scans


def test_a_resolved_finding_keeps_its_owner(store: SqlStore) -> None:
    """Its labels are those of the scan before."""
    Labelled(deployment=TEAM).record(store, 1)
    Labelled(findings=False).record(store, 2)
    resolved = list(store.read_scan("scan-2").resolved_findings())

    assert {"web-1": "blue", "web": "blue"} == {stored.finding.name: OWNER_OF(stored.kept) for stored in resolved}


def test_a_finding_has_its_owner_in_every_list(store: SqlStore) -> None:
    """In the list by problem, and where one finding is looked up."""
    Labelled(deployment=TEAM).record(store, 1)
    by_problem = [each.stored for each in store.read_scan("scan-1").findings_by_problem()]
    single = store.find_finding(POD.fingerprint).stored

    assert ["blue"] * 3 == [OWNER_OF(stored.kept) for stored in (*by_problem, single)]


def test_a_namespace_that_is_gone_has_no_interval_any_more(store: SqlStore) -> None:
    """A scan of the whole cluster ends its interval; a scan of some namespaces does not."""
    Labelled(namespace=TEAM, namespaces=("shop", "pay")).record(store, 1)
    Labelled(namespace=TEAM, scope=Scope(namespaces=("shop",))).record(store, 2)
    assert 4 == in_force(store)
    Labelled(namespace=TEAM).record(store, 3)
    assert 3 == in_force(store)


def in_force(store: SqlStore) -> int:
    """The number of objects of the population that exist."""
    with store._reading() as connection:
        return connection.execute(select(func.count()).where(POPULATION.c.until == OPEN)).scalar_one()


def test_namespaces_read_for_their_labels_are_no_part_of_the_population(store: SqlStore) -> None:
    """No policy examined them."""
    Labelled(namespace=TEAM).record(store, 1)

    assert {"Pod", "Deployment"} == {each.kind for each in store.read_scan("scan-1").population()}


def test_findings_of_older_versions_have_no_known_labels(store: SqlStore, url: str) -> None:
    """They recorded no population."""
    Labelled(TEAM).record(store, 1)
    execute(url, "DELETE FROM population")

    assert {"web-1": None, "web": None} == kept(store.read_scan("scan-1"))


def test_findings_without_a_population_are_counted(store: SqlStore, url: str) -> None:
    """Their owner is not known; labels of other times are no labels of these objects."""
    Labelled(TEAM).record(store, 1)
    execute(url, "UPDATE population SET until = since")
    record = store.read_scan("scan-1")

    assert dict(make_census_by_owner(record.findings(), OWNER_OF)) == dict(record.census_by_owner(OWNER_OF))


@pytest.mark.parametrize("labels", [Labelled(TEAM), Labelled(deployment=TEAM), Labelled(namespace=TEAM), Labelled()])
def test_findings_are_counted_by_owner_without_being_read(store: SqlStore, labels: Labelled) -> None:
    """The numbers are those of the findings themselves, also with findings that the scan left unchecked."""
    labels.record(store, 1)
    replace(labels, scope=Scope(exclude_namespaces=("kube-*",)), findings=False).record(store, 2)
    for number in (1, 2):
        record = store.read_scan(f"scan-{number}")
        assert dict(make_census_by_owner(record.findings(), OWNER_OF)) == dict(record.census_by_owner(OWNER_OF))


def test_equal_labels_are_one_object(store: SqlStore) -> None:
    """Reading many findings holds few labels."""
    Labelled(TEAM, TEAM).record(store, 1)
    first, second = store.read_scan("scan-1").findings()

    assert first.kept is second.kept
