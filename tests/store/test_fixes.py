"""Times to fix are counted by policy, and stay as long as daily tallies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from scanner.model.outcome import Finding
from scanner.model.scans.scan import ClusterIdentity, PageResult
from scanner.posture.history.daily import TimeToFix
from scanner.store import SqlStore, prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.databases import count
from tests.store.made import DAWN, PROD, Round, ended, finding

NAMES = "abcdefghij"
FINDINGS = tuple(finding(name) for name in NAMES)
LABELS = finding("web", policy="labels")


@dataclass(frozen=True)
class Fixing(Round):
    """A scan of objects of which some pass."""

    fixed: tuple[Finding, ...] = ()

    def pages(self) -> list[PageResult]:
        """The pages of all objects, without the findings that are fixed."""
        return [without(page, self.fixed) for page in super().pages()]


def without(page: PageResult, fixed: Sequence[Finding]) -> PageResult:
    """The page without some findings; their objects were examined and evaluated."""
    left = [(item, place) for item, place in zip(page.findings, page.places, strict=True) if item not in fixed]
    return replace(page, findings=tuple(item for item, _ in left), places=tuple(place for _, place in left))


def fixing(findings: tuple[Finding, ...], fixed: tuple[Finding, ...], cluster: ClusterIdentity = PROD) -> Fixing:
    """A scan of the objects of some findings, of which some pass."""
    return Fixing(findings, cluster=cluster, fixed=fixed)


def fixes(store: SqlStore, since: date = date.min) -> list[TimeToFix]:
    """The times to fix of the cluster."""
    return [each._replace(language="") for each in store.times_to_fix(store.cluster("prod").id, since)]


def days(number: int) -> timedelta:
    """So many days."""
    return timedelta(days=number)


def test_half_and_nine_tenths_of_the_problems(store: SqlStore) -> None:
    """Ten problems of a policy are fixed one after the other, day by day; another policy is counted apart."""
    every = (*FINDINGS, LABELS)
    for number in range(len(NAMES) + 1):
        fixing(every, every[:number] + (LABELS,) * (number > 2)).record(store, number + 1)

    assert [
        TimeToFix("", "labels", 1, days(3), days(3)),
        TimeToFix("", "replicas", 10, days(5), days(9)),
    ] == fixes(store)


def test_only_fixes_since_a_day_count(store: SqlStore) -> None:
    """By the end of the scan that saw the problem fixed."""
    for number in (1, 2, 3):
        fixing(FINDINGS[:2], FINDINGS[: number - 1]).record(store, number)

    assert [TimeToFix("", "replicas", 1, days(2), days(2))] == fixes(store, ended(3).date())


def test_other_resolutions_do_not_count(store: SqlStore) -> None:
    """The object is gone."""
    Round(FINDINGS).record(store, 1)
    Round().record(store, 2)

    assert [] == fixes(store)


def test_a_reopened_problem_begins_anew(store: SqlStore) -> None:
    """Each episode has a time of its own."""
    for number, fixed in enumerate([(), FINDINGS, (), (), FINDINGS]):
        fixing(FINDINGS[:1], fixed).record(store, number + 1)

    assert [TimeToFix("", "replicas", 2, days(1), days(2))] == fixes(store)


def test_other_clusters_are_others(store: SqlStore) -> None:
    """Their scans have revisions of their own."""
    for number, fixed in enumerate([(), FINDINGS]):
        fixing(FINDINGS, fixed, ClusterIdentity("depot")).record(store, number + 1)
        fixing(FINDINGS[:1], fixed).record(store, number + 11)

    assert [1] == [each.problems for each in fixes(store)]


def test_a_clock_that_was_set_back_gives_no_negative_time(store: SqlStore) -> None:
    """The time is none."""
    fixing(FINDINGS[:1], ()).record(store, 5)
    fixing(FINDINGS[:1], FINDINGS).record(store, 1)

    assert [timedelta()] == [each.median for each in fixes(store)]


def test_fixes_stay_when_scans_are_pruned_as_long_as_daily_tallies(store: SqlStore, url: str) -> None:
    """Four hundred days, or longer if the scans are kept longer."""
    for number, fixed in enumerate([(), FINDINGS, FINDINGS, FINDINGS]):
        fixing(FINDINGS, fixed).record(store, number + 1)
    before = fixes(store)
    kept = [pruned(store, url, days_kept, DAWN + days(after)) for days_kept, after in ((1, 402), (500, 403), (1, 403))]

    assert [before, before, []] == kept
    assert before
    assert 0 == count(url, "fixes")


def pruned(store: SqlStore, url: str, days_kept: int, now: datetime) -> list[TimeToFix]:
    """The times to fix after a prune."""
    prune(url, RetentionRule(days_kept), now)
    return fixes(store)
