"""The list of all clusters: the silent and the never complete ones first, with the numbers of each cluster's own summary."""

from __future__ import annotations

import re
import threading
from collections import Counter
from datetime import timedelta
from time import monotonic, sleep

import pytest

from scanner.model.scans.scan import ScanState
from scanner.posture.severity import Severity
from scanner.report.document.sentences import coverage_line
from scanner.report.runs.document import RunExpectation, RunExpectations
from scanner.store import SqlReader, open_store
from scanner.web.requests.addresses import ScanMoment
from scanner.web.views.fleet_counts import FleetCounts
from scanner.web.views.library import ScanLibrary
from scanner.web.views.scan_counts import CountedScan
from tests.web.fleets import NOW, Clock, Scanned, fill
from tests.web.served import Got, Served, counted, served

_OK, _BAD = 200, 400


def _names(page: Got) -> list[str]:
    """The names of the clusters of a page, one after the other."""
    table = page.text[page.text.index("<table") : page.text.index("</table>")]
    return re.findall(r"<th scope=\"row\">.*?<bdi>(.*?)</bdi>", table)


def test_silent_clusters_come_first_then_the_worst(fleet: Served) -> None:
    """A cluster that is scanned, but never completely, comes between."""
    assert ["silent", "failed", "prod", "partial", "stage"] == _names(fleet.get("/"))


def test_the_page_states_when_a_cluster_is_silent(fleet: Served) -> None:
    """Without a schedule, after a day and a half."""
    page = fleet.get("/")
    assert "began more than 36 hours ago" in page.text
    [row] = page.rows("silent")
    assert "the last run began 10 d ago" in row
    assert "Silent" not in page.rows("prod")[0]


def test_a_cluster_without_a_complete_scan_is_never_complete(fleet: Served) -> None:
    """A state of its own: the cluster is not silent, because a scan of it failed an hour ago."""
    page = fleet.get("/")
    [row] = page.rows("failed")
    assert "✕Never complete no scan of this cluster has been complete" in row
    assert "Silent" not in row
    assert "5 clusters; 1 silent; 1 never complete;" in page.text
    assert 1 == sum("Never complete" in each for each in page.rows())


def test_a_run_that_reaches_no_cluster_ends_the_silence(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Silent means that no run began: a run that fails is no silence, and its register has the reason."""
    url = f"sqlite:///{tmp_path_factory.mktemp('fails') / 'assay.db'}"
    clock = Clock()
    with open_store(url, clock) as store:
        for name in ("down", "off"):
            Scanned(name, NOW - timedelta(days=10)).record(store, clock)
        clock.now = NOW - timedelta(hours=2)
        store.end_run(store.begin_run("down"), exit_code=4, reason="the API server does not answer")
    with served(url, lambda: NOW) as opened:
        counted(opened)
        page = opened.get("/")
        assert ["off"] == [row.split(" ")[0] for row in page.rows() if " ✕Silent " in row]


def test_a_cluster_that_is_never_complete_goes_silent_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Both states are on the page."""
    url = f"sqlite:///{tmp_path_factory.mktemp('both') / 'assay.db'}"
    clock = Clock()
    with open_store(url, clock) as store:
        Scanned("once", NOW - timedelta(days=3), state=ScanState.FAILED).record(store, clock)
    with served(url, lambda: NOW) as opened:
        [row] = opened.get("/").rows("once")
        assert "✕Silent the last run began 3 d ago ✕Never complete" in row


@pytest.mark.parametrize(
    ("schedule", "silent"),
    [("0 * * * *", ["silent", "prod", "stage", "partial"]), ("@weekly", [])],
)
def test_a_schedule_decides_which_clusters_are_silent(fleet_url: str, schedule: str, silent: list[str]) -> None:
    """Expected every hour, all have gone silent of which no run began in the last one; expected every week, none."""
    expectations = RunExpectations(RunExpectation(schedule, "Etc/UTC", timedelta(minutes=10)))
    with served(fleet_url, lambda: NOW, expectations) as opened:
        counted(opened)
        page = opened.get("/")
        assert f"by the schedule {schedule} (Etc/UTC)" in page.text
        assert silent == [row.split(" ")[0] for row in page.rows() if " ✕Silent " in row]


def test_each_cluster_of_a_fleet_has_a_schedule_of_its_own(fleet_url: str) -> None:
    """Expected every hour, `prod` has gone silent; the others follow the schedule of the configuration."""
    weekly, hourly = (RunExpectation(cron, "Etc/UTC", timedelta(minutes=10)) for cron in ("@weekly", "0 * * * *"))
    with served(fleet_url, lambda: NOW, RunExpectations(weekly, {"prod": hourly})) as opened:
        counted(opened)
        page = opened.get("/")
        assert "1 cluster has a schedule of their own" not in page.text
        assert "1 cluster has a schedule of its own, others by @weekly (Etc/UTC)" in page.text
        assert ["prod"] == [row.split(" ")[0] for row in page.rows() if " ✕Silent " in row]


def test_a_cluster_of_the_fleet_without_a_run_is_named(fleet_url: str) -> None:
    """Neither a scan nor a failed run shows that it is missing; those with either are not named again."""
    members = ("prod", "unreachable", "forgotten")
    with served(fleet_url, lambda: NOW, RunExpectations(members=members)) as opened:
        text = opened.get("/").text
    assert ["forgotten"] == re.findall(r"<bdi>(.*?)</bdi>", text[text.index('id="without-run"') :])


@pytest.mark.parametrize("name", ["prod", "stage", "silent", "partial"])
def test_the_numbers_are_those_of_the_clusters_own_summary(fleet: Served, name: str) -> None:
    """Problems by severity, refused and new ones, coverage and days; waived problems count in neither."""
    library = fleet.library
    cluster = next(each for each in library.clusters() if each.name == name)
    document = library.view(library.scan(cluster, ScanMoment())).document
    counts = FleetCounts(library).count(document.provenance.scan_id)
    severities = Counter[str]()
    for group in document.groups:
        severities[Severity.of_rank(group.rank)] += group.number
    assert document.problems == counts.totals
    assert {severity: severities[severity] for severity in Severity} == {
        severity: numbers.problems for severity, numbers in counts.severities.items()
    }
    assert document.problems.refused == sum(each.refused for each in counts.severities.values())
    assert document.problems.open == sum(each.problems for each in counts.workloads)
    assert (coverage_line(document), document.complete) == (counts.coverage, counts.complete)
    assert document.stored.register().days == counts.days
    assert {policy.key: policy.actions for policy in document.policies} == {
        key: policy.actions for key, policy in counts.policies.items()
    }


def test_a_waived_problem_is_not_counted(fleet: Served) -> None:
    """The production cluster has four findings that would be refused, of which one is waived."""
    [row] = fleet.get("/").rows("prod")
    cells = row.split(" | ")
    assert ["3", "0", "2", "1", "0", "0", "2"] == cells[4:11]


def test_every_number_leads_to_the_rows_that_it_counts(fleet: Served) -> None:
    """The links of the list of clusters filter the findings of the newest scan."""
    page = fleet.get("/")
    links = re.findall(r'<a href="(/clusters/prod[^"]*findings.html\?[^"]*)">(\d+)</a>', page.text)
    assert links
    for link, number in links:
        rows = fleet.get(link.replace("&amp;", "&")).text
        shown = rows.count('class="fid"') - rows.count("Waived</span>")
        assert int(number) == shown, link


def test_a_cluster_without_a_finished_scan_has_no_numbers(fleet: Served) -> None:
    """Its scan failed: nothing is known, and nothing is shown as zero."""
    [row] = fleet.get("/").rows("failed")
    assert row.endswith("| none | no scan of this cluster has finished")
    assert "Failed" in row


def test_an_incomplete_newest_scan_is_marked_with_its_gaps(fleet: Served) -> None:
    """The last complete scan is another one, whose age is shown."""
    [row] = fleet.get("/").rows("partial")
    assert "Incomplete" in row
    assert "1 gap" in row
    assert "23 h 55 min ago" in row


def test_runs_that_began_no_scan_are_listed_with_the_reason(fleet: Served) -> None:
    """A cluster that could never be scanned would otherwise be in no list."""
    [row] = fleet.get("/").rows("unreachable")
    assert "the API server does not answer" in row


def test_the_trend_is_there_as_text(fleet: Served) -> None:
    """A reader without pictures has the number of each day."""
    [row] = fleet.get("/").rows("prod")
    assert "2026-03-31: 4" in row
    assert "2026-03-29: 2" in row
    assert 'role="img" aria-label="Open findings of prod from 2026-03-29 (2) to 2026-03-31 (4), at most 4"' in (
        fleet.get("/").text
    )


def test_clusters_are_chosen_by_name_and_sorted(fleet: Served) -> None:
    """The filter takes a part of the name in any case."""
    assert ["failed", "partial", "prod", "silent", "stage"] == _names(fleet.get("/?sort=name"))
    assert ["silent"] == _names(fleet.get("/?text=SIL"))
    assert "No cluster matches" in fleet.get("/?text=nothing").text


@pytest.mark.parametrize("query", ["after=nowhere", "text=" + "x" * 257])
def test_an_invalid_parameter_is_refused(fleet: Served, query: str) -> None:
    """With one sentence, and no part of the list."""
    assert _BAD == fleet.get(f"/?{query}").status


def test_a_database_without_a_scan_has_an_empty_list(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each page about all clusters states that nothing is known."""
    url = f"sqlite:///{tmp_path_factory.mktemp('empty') / 'assay.db'}"
    open_store(url).close()
    with served(url) as opened:
        assert "The database has no scan" in opened.get("/").text
        for path in ("/policies", "/workloads?name=web", "/compare", "/search?q=web"):
            assert _OK == opened.get(path).status, path


class _Slow(FleetCounts):
    """Counts nothing before `go` is set."""

    def __init__(self, library: ScanLibrary) -> None:
        super().__init__(library)
        self.go = threading.Event()

    def _counts(self, scan: str) -> CountedScan:
        self.go.wait()
        return super()._counts(scan)


def test_numbers_that_are_not_counted_yet_are_not_shown_as_others(fleet: Served) -> None:
    """The first answer states that a scan is being counted; later ones have its numbers."""
    counts = _Slow(fleet.library)
    scan = next(each.usable.id for each in fleet.library.fleet().clusters if each.usable)
    assert "being counted" in getattr(counts.get([scan], patience=0)[scan], "why", "")
    counts.go.set()
    assert isinstance(counts.get([scan], patience=60)[scan], CountedScan)


def test_a_scan_that_cannot_be_counted_states_why(fleet: Served) -> None:
    """A scan that is gone, for instance, is no row of zeros."""
    counts = FleetCounts(fleet.library)
    assert "not counted: There is no scan" in getattr(counts.get(["gone"], patience=60)["gone"], "why", "")


def test_a_scan_that_ends_meanwhile_is_on_a_later_page(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Some seconds later, since the newest scans are read again then."""
    url = f"sqlite:///{tmp_path_factory.mktemp('live') / 'assay.db'}"
    fill(url)
    clock = Clock()
    with served(url, clock=lambda: NOW) as opened:
        counted(opened)
        assert "8 h 55 min ago" in opened.get("/").rows("stage")[0]
        with open_store(url, clock) as store:
            Scanned("stage", NOW - timedelta(minutes=10)).record(store, clock)
        patience = monotonic() + 60
        while "8 h 55 min ago" in (row := opened.get("/").rows("stage")[0]) and monotonic() < patience:
            sleep(0.1)
        assert "5 min ago" in row


@pytest.mark.long
def test_the_list_has_a_row_for_each_cluster_however_many_there_are(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A page has a hundred; the link leads to the next ones, without repetition."""
    url = f"sqlite:///{tmp_path_factory.mktemp('many') / 'assay.db'}"
    clock = Clock()
    names = [f"c{number:03}" for number in range(103)]
    with open_store(url, clock) as store:
        for name in names:
            Scanned(name, NOW - timedelta(hours=3)).record(store, clock)
    with served(url, clock=lambda: NOW) as opened:
        counted(opened)
        first = opened.get("/")
        [link] = first.links("/?after=")
        assert names == _names(first) + _names(opened.get(link))


def test_only_as_many_numbers_are_kept_as_clusters_need(fleet: Served) -> None:
    """Besides the newest scans, those of 64 others: memory does not grow with the scans that users compare."""
    counts = FleetCounts(fleet.library)
    scan = next(each.usable.id for each in fleet.library.fleet().clusters if each.usable)
    known = counts.count(scan)
    for number in range(100):
        counts._keep(f"other-{number}", known)
    assert len(counts._kept) == 64


def test_a_reader_that_only_may_read_serves_the_fleet(fleet: Served) -> None:
    """The library opens the database to read."""
    with fleet.library.use_reader() as reader:
        assert type(reader) is SqlReader
