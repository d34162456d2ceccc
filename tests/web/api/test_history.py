"""Clusters, scans, runs and trends over a history."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.api.asking import Api

_CLUSTER = "/clusters/{cluster}"
_BAD, _MISSING = 400, 404


def test_the_clusters_have_their_newest_scans(history: Api) -> None:
    """Running scans do not count."""
    clusters = history.answer("/clusters")["clusters"]
    assert [("prod", "scan-5"), ("depot", "scan-4")] == [(each["name"], each["newestScan"]["id"]) for each in clusters]
    assert clusters[0] == history.answer(_CLUSTER)


def test_the_scans_of_a_cluster_are_listed_in_any_state(history: Api) -> None:
    """The newest first, the running one too, and none of another cluster."""
    scans = history.answer(f"{_CLUSTER}/scans")["scans"]
    states = [(each["id"], each["state"]) for each in scans]
    complete = [(f"scan-{number}", "complete") for number in (3, 2, 1)]
    assert [("scan-6", "running"), ("scan-5", "incomplete"), *complete] == states
    assert [False] * 5 == [each["pruned"] for each in scans]


def test_a_running_scan_has_no_report(history: Api) -> None:
    """The answer says why."""
    got = history.get(f"{_CLUSTER}/summary", scan="scan-6")
    assert (_MISSING, True) == (got.status, "is still running" in got.text)


@pytest.mark.parametrize(
    ("query", "scan"),
    [
        ({}, "scan-5"),
        ({"scan": "scan-2"}, "scan-2"),
        ({"at": "2026-03-03"}, "scan-2"),
        ({"at": "2026-03-04T06:04:59Z"}, "scan-2"),
        ({"at": "2026-03-04T06:05:00Z"}, "scan-3"),
        ({"scan": "", "at": ""}, "scan-5"),
    ],
)
def test_a_moment_names_a_scan(history: Api, query: dict[str, Any], scan: str) -> None:
    """By its id, by a date whose end in UTC counts, or by a time; by default the newest."""
    assert scan == history.answer(f"{_CLUSTER}/summary", **query)["scan"]
    assert scan == history.answer(f"{_CLUSTER}/findings", **query)["scan"]


def test_a_scan_of_another_cluster_is_not_found(history: Api) -> None:
    """Scans are looked for in the cluster that the path names."""
    assert _MISSING == history.get(f"{_CLUSTER}/summary", scan="scan-4").status


def test_a_trend_has_the_sums_of_its_tallies(history: Api) -> None:
    """Each day has the outcomes of the chosen policies, and its tallies if the request asks for them."""
    days = history.answer(f"{_CLUSTER}/trend", tallies="true", days=40)["days"]
    assert [("2026-03-02", "scan-1", 4), ("2026-03-03", "scan-2", 22), ("2026-03-04", "scan-3", 32)] == [
        (each["day"], each["scanId"], each["findings"]) for each in days
    ]
    assert [each["totals"]["violated"] for each in days] == [_sum(each["tallies"]) for each in days]
    assert all("tallies" not in each for each in history.answer(f"{_CLUSTER}/trend")["days"])


def _sum(tallies: list[dict[str, Any]]) -> int:
    return sum(each["count"] for each in tallies if each["outcome"] == "violated")


def test_a_trend_of_a_policy_counts_that_policy(history: Api) -> None:
    """A name or a pattern chooses policies, also for the times to fix."""
    for pattern in ("labels", "lab*"):
        trend = history.answer(f"{_CLUSTER}/trend", policy=pattern)
        assert [1, 1, 0] == [each["totals"]["violated"] for each in trend["days"]]
    assert {"labels"} >= {each["policy"] for each in trend["fixes"]}


def test_the_days_of_a_trend_end_today(history: Api) -> None:
    """`days` counts back from today, in UTC."""
    trend = history.answer(f"{_CLUSTER}/trend", days=29)
    assert ("2026-03-03", "2026-03-31", 2) == (trend["since"], trend["until"], trend["total"])


def test_runs_without_a_scan_are_listed(history: Api) -> None:
    """A run that reached no cluster has a reason; `cluster` chooses the runs of one cluster, `since` the later ones."""
    runs = history.answer("/runs")["runs"]
    assert ("failed", "no answer", "") == (runs[0]["state"], runs[0]["run"]["reason"], runs[0]["run"]["scanId"])
    assert "scan-4" not in [each["run"]["scanId"] for each in history.items("/runs", cluster=history.key)]
    assert (6, 0) == (
        history.answer("/runs", since="2026-03-01")["total"],
        history.answer("/runs", since="2026-03-02")["total"],
    )
    assert _BAD == history.get("/runs", since="2026-02-30").status


def test_what_is_not_there_is_named(history: Api) -> None:
    """A cluster, a problem or a run that the database does not have is 404."""
    assert [_MISSING] * 4 == [
        history.get(_CLUSTER, of={"cluster": "prod.00000000"}).status,
        history.get(f"{_CLUSTER}/problems/{{problem}}", of={"problem": "p-000000000000"}).status,
        history.get("/runs/{run}", of={"run": "99"}).status,
        history.get("/runs/{run}", of={"run": "0"}).status,
    ]
