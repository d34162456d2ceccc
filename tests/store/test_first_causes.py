"""The causes of what a scan finds first: in the first scan of a cluster, and for an object that files did not have."""

from __future__ import annotations

from scanner.model.scans.scan import Scope
from scanner.store import SqlStore
from tests.documents import binding, namespace, pod, policy
from tests.store.scanned import Facts, Story, facts, versioned

RULES = (namespace("shop"), namespace("bank"), policy("p", "false"), binding("b", "p"))
WEB, API = (versioned(pod(name, "shop"), 1) for name in ("web", "api"))


def new(name: str, *cause: str, change: str = "new") -> Facts:
    """The facts of one finding."""
    return {(change, "validation", f"shop/{name}"): cause}


def test_a_first_scan_has_the_cause_first_scan(store: SqlStore) -> None:
    """Of a cluster and of files alike; no scan before it could have evaluated anything."""
    of_cluster, of_files = (Story(store, source=source, name=source, scans=source) for source in ("cluster", "files"))

    assert new("web", "firstScan") == facts(of_cluster.scan([*RULES, WEB]))
    assert new("web", "firstScan") == facts(of_files.scan([*RULES, WEB]))


def test_a_first_scan_of_its_kind_is_no_first_scan(store: SqlStore) -> None:
    """An earlier scan of another scope did not evaluate the object."""
    story = Story(store)
    story.scan([*RULES, WEB], scope=Scope(namespaces=("bank",)))

    assert new("web", "coverage") == facts(story.scan([*RULES, WEB]))


def test_an_object_that_is_new_in_files_was_not_in_the_earlier_scan(store: SqlStore) -> None:
    """It may exist for years, and only its file is new."""
    story = Story(store, source="files")
    story.scan([*RULES, WEB])

    assert new("api", "objectNotInEarlierScan") == facts(story.scan([*RULES, WEB, API]))


def test_an_object_that_is_new_in_a_cluster_was_created(store: SqlStore) -> None:
    """The earlier scan listed every object of its kind."""
    story = Story(store)
    story.scan([*RULES, WEB])

    assert new("api", "objectCreated") == facts(story.scan([*RULES, WEB, API]))


def test_an_object_that_is_back_among_files_was_not_in_the_earlier_scan(store: SqlStore) -> None:
    """Compared with the scan that did not have it, and with the newest comparable scan, which had it."""
    story, bank = Story(store, source="files"), Scope(namespaces=("bank", "shop"))
    story.scan([*RULES, WEB])
    story.scan(RULES)
    assert new("web", "objectNotInEarlierScan", change="reopened") == facts(story.scan([*RULES, WEB]))

    story.scan(RULES, scope=bank)
    assert new("web", "objectNotInEarlierScan", change="reopened") == facts(story.scan([*RULES, WEB]))


def test_a_difference_of_files_has_the_cause_of_history(store: SqlStore) -> None:
    """The problem of the new object."""
    story = Story(store, source="files")
    story.scan([*RULES, WEB])
    story.scan([*RULES, WEB, API])

    assert ["objectNotInEarlierScan"] == [kind.value for kind in store.compare_scans("scan-1", "scan-2").causes]
