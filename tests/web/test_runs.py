"""The run register of a cluster, and the completeness sheet of a run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from scanner.report.runs.document import RunExpectation, RunExpectations
from scanner.store import open_store
from tests.web.fleets import GAP, NOW, PARTIAL, PROD, Clock, Scanned
from tests.web.served import Served, served

_OK, _BAD, _MISSING = 200, 400, 404
DAILY = RunExpectation("0 2 * * *", "Etc/UTC", timedelta(minutes=10))


def _path(site: Served, name: str) -> str:
    clusters = [each.cluster for each in site.library.fleet().clusters]
    return next(f"/clusters/{site.library.key(each)}" for each in clusters if each.name == name)


@pytest.fixture
def scheduled(fleet_url: str) -> Iterator[Served]:
    """The application with a schedule."""
    with served(fleet_url, lambda: NOW, RunExpectations(DAILY)) as opened:
        yield opened


def test_runs_are_listed_as_recorded_without_a_schedule(fleet: Served) -> None:
    """The page states that a run which never began is not listed."""
    page = fleet.get(f"{_path(fleet, 'prod')}/runs")
    assert "No schedule is configured" in page.text
    assert ["✓Complete", "✓Complete"] == [row.split(" | ")[1] for row in page.rows() if " | " in row][1:]
    assert "2 runs since 2025-12-31 00:00 UTC: 2 complete." in page.text


def test_runs_are_compared_with_the_schedule(scheduled: Served) -> None:
    """An expected time without a run is missed."""
    path = _path(scheduled, "prod")
    page = scheduled.get(f"{path}/runs?since=2026-03-28")
    states = [(row.split(" | ")[0], row.split(" | ")[2]) for row in page.rows("2026-03-")]
    assert [
        ("2026-03-31 02:00:00 UTC", "✓Complete"),
        ("2026-03-30 02:00:00 UTC", "✕Missed"),
        ("2026-03-29 02:00:00 UTC", "▲Late"),
        ("2026-03-28 02:00:00 UTC", "✕Missed"),
    ] == states
    assert "0 2 * * * (Etc/UTC)" in page.text


def test_runs_are_expected_since_the_first_recorded_one(scheduled: Served) -> None:
    """As `assay runs` does: before the first run of a cluster, none was missed."""
    page = scheduled.get(f"{_path(scheduled, 'prod')}/runs")
    assert ["2026-03-30"] == [row.split(" ")[0] for row in page.rows() if "✕Missed" in row]


def test_runs_of_a_cluster_that_was_never_reached_are_expected_since_the_first_one(scheduled: Served) -> None:
    """A failed run is a recorded one."""
    page = scheduled.get(f"{_path(scheduled, 'failed')}/runs")
    assert (1, 0) == tuple(sum(word in row for row in page.rows()) for word in ("✕Failed", "✕Missed"))


def test_a_register_goes_back_for_ninety_days(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A cluster whose runs ended before has a missed run on each of these days."""
    url = f"sqlite:///{tmp_path_factory.mktemp('ended') / 'assay.db'}"
    clock = Clock()
    with open_store(url, clock) as store:
        Scanned("prod", NOW - timedelta(days=200)).record(store, clock)
    with served(url, lambda: NOW, RunExpectations(DAILY)) as opened:
        assert "91 missed" in opened.get(f"{_path(opened, 'prod')}/runs").text


def test_a_run_has_its_sheet(fleet: Served) -> None:
    """With the numbers of each kind, the command and the link to the report."""
    path = _path(fleet, "partial")
    link = fleet.get(f"{path}/runs").links(f"{path}/runs/")[0]
    page = fleet.get(link)
    assert f"Run {link.rpartition('/')[2]}" == page.heading
    assert "</i>Incomplete" in page.text
    assert page.rows(GAP.where) == [f"{GAP.where} | {GAP.why}"]
    assert [row for row in page.rows("Pod") if "no permission" in row]
    assert "assay scan" in page.text
    assert _OK == fleet.get(next(each for each in page.links(path) if PARTIAL[1].id in each)).status


def test_a_cluster_without_a_finished_scan_has_its_runs(fleet: Served) -> None:
    """The list of clusters leads to them, and no link leads to a report that does not exist."""
    path = _path(fleet, "failed")
    assert f"{path}/runs" in fleet.get("/").links(path)
    page = fleet.get(f"{path}/runs")
    [row] = [row for row in page.rows() if " | " in row][1:]
    assert "✕Failed" in row
    links = [link for link in page.links("/clusters/") if not link.endswith("/runs")]
    assert {_OK} == {fleet.get(link).status for link in links}


def test_a_run_of_another_cluster_is_not_there(fleet: Served) -> None:
    """The address of a run is below that of its cluster."""
    partial, prod = _path(fleet, "partial"), _path(fleet, "prod")
    number = fleet.get(f"{partial}/runs").links(f"{partial}/runs/")[0].rpartition("/")[2]
    assert _MISSING == fleet.get(f"{prod}/runs/{number}").status
    assert _MISSING == fleet.get(f"{prod}/runs/99999").status
    assert _MISSING == fleet.get(f"{prod}/runs/99999999999999999999").status
    assert _MISSING == fleet.get(f"{prod}/runs/{'9' * 5000}").status
    assert _MISSING == fleet.get(f"{prod}/runs/x").status


@pytest.mark.parametrize("query", ["since=nonsense", "since=2026-02-30", "after=nothing"])
def test_an_invalid_period_is_refused(fleet: Served, query: str) -> None:
    """With the form of a date."""
    assert _BAD == fleet.get(f"{_path(fleet, 'prod')}/runs?{query}").status


def test_a_period_with_too_many_expected_times_is_refused(fleet_url: str) -> None:
    """Every minute of many years would be more than a page can list."""
    with served(fleet_url, lambda: NOW, RunExpectations(RunExpectation("* * * * *", "Etc/UTC", timedelta()))) as opened:
        answer = opened.get(f"{_path(opened, 'prod')}/runs?since=2001-01-01")
        assert _BAD == answer.status
        assert "Name a later date" in answer.text


def test_a_long_register_continues_on_further_pages(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each run is on one of them, also several of one second."""
    url = f"sqlite:///{tmp_path_factory.mktemp('runs') / 'assay.db'}"
    clock = Clock()
    with open_store(url, clock) as store:
        Scanned("prod", PROD[1].began).record(store, clock)
        clock.now = NOW - timedelta(hours=1)
        for _ in range(120):
            store.end_run(store.begin_run("prod"), exit_code=4, reason="the API server does not answer")
    with served(url, lambda: NOW) as opened:
        path = f"{_path(opened, 'prod')}/runs"
        first = opened.get(path)
        [following] = [link for link in first.links(f"{path}?") if "after=" in link]
        numbers = [
            int(link.rpartition("/")[2]) for page in (first, opened.get(following)) for link in page.links(f"{path}/")
        ]
        assert list(range(121, 0, -1)) == numbers
