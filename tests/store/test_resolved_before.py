"""A report keeps what scans of the last ninety days resolved."""

from __future__ import annotations

from itertools import chain

from scanner.model.scans.register import RECENT
from scanner.store import SqlStore
from tests.documents import Document, binding, namespace, pod, policy
from tests.store.scanned import Story, versioned

_RULES = (
    namespace("default"),
    policy("p", "!has(object.metadata.labels) || !('bad' in object.metadata.labels)"),
    binding(),
)


def _pods(bad: str, day: int) -> list[Document]:
    pods = (pod(name=name, labels={"bad": ""} if name in bad else {"good": ""}) for name in "abc")
    return [versioned(each, 10 * day) for each in pods]


def _story(store: SqlStore, *days: tuple[int, str]) -> list[list[tuple[str, str]]]:
    """The pods that are bad on some days, and what the report of each day keeps: the names of pods with the reasons."""
    story = Story(store)
    kept = []
    for day, bad in days:
        story.days = chain([day])  # type: ignore[assignment]
        scan = story.scan([*_RULES, *_pods(bad, day)], resource_version=str(100 * day))
        kept.append([(each.finding.name, each.resolution) for each in scan.resolved_before()])
    return kept


def test_what_an_earlier_scan_resolved_is_kept(store: SqlStore) -> None:
    """The scan that resolved a finding has it among its own; later ones keep it, the last resolved first."""
    kept = _story(store, (1, "abc"), (2, "bc"), (3, "c"), (4, "c"))
    assert [[], [], [("a", "fixed")], [("b", "fixed"), ("a", "fixed")]] == kept


def test_a_finding_that_came_back_is_not_kept(store: SqlStore) -> None:
    """Nor is an earlier end of one that was resolved twice."""
    kept = _story(store, (1, "a"), (2, ""), (3, "a"), (4, ""), (5, ""))
    assert [[], [], [], [], [("a", "fixed")]] == kept


def test_ninety_days_are_kept(store: SqlStore) -> None:
    """To the day."""
    kept = _story(store, (1, "a"), (2, ""), (2 + RECENT, ""), (3 + RECENT, ""))
    assert [[], [], [("a", "fixed")], []] == kept


def test_the_report_of_an_earlier_scan_does_not_know_the_future(store: SqlStore) -> None:
    """It keeps what was resolved before its scan."""
    _story(store, (1, "ab"), (2, "b"), (3, "b"), (4, ""), (5, "a"))
    third = store.read_scan("scan-3")
    assert ["a"] == [each.finding.name for each in third.resolved_before()]
