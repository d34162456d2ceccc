"""The read-only views show what reports show, in both databases alike, and their columns are an interface."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, inspect, text

from scanner.model.outcome import Change, Violated, WouldChange
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.scan import ClusterIdentity, ScanState, Scope
from scanner.posture.problem_rows import problems
from scanner.store import SqlStore, open_store, prune, upgrade
from scanner.store.database.engine import writing_shared
from scanner.store.upkeep.reading_rights import keeping_rights
from scanner.store.upkeep.retention_plan import RetentionRule
from scanner.store.upkeep.schema import run_migrations
from scanner.store.upkeep.views import VIEWS, create_views, creating_views, drop_views
from tests.store.conftest import Original
from tests.store.databases import (
    KINDS,
    WITHOUT_SEARCH,
    execute,
    kept_store,
    prepared_database,
    refill,
    rows,
    without_lists,
)
from tests.store.made import CHECK, Round, clock, ended, finding, listed, page_of
from tests.store.test_endings import REWORDED, Known
from tests.store.test_integrity import OLD, problems_of
from tests.store.test_problems import OTHER, passing, record_pods, with_checks
from tests.store.test_templates import TEXTS, WORDS
from tests.thorough import examples

COLUMNS = {
    "v_findings_open": (
        "cluster cluster_id finding problem status first_seen opened_at language policy binding param_namespace param_name"
        " check_kind check_index expression outcome message operation action actions denies excepted_by api_version kind"
        " namespace name uid workload_api_version workload_kind workload_namespace workload_name cause checked"
    ),
    "v_problems": (
        "cluster cluster_id problem status first_seen opened_at resolved_at resolution findings excepted action denies"
        " language policy check_kind check_index expression"
        " workload_api_version workload_kind workload_namespace workload_name moved_to"
    ),
    "v_scans": (
        "cluster cluster_id scan state started_at finished_at newest findings new reopened resolved unchecked source"
        " server_version tool_version pruned pruned_at"
    ),
    "v_coverage": (
        "cluster cluster_id scan finished_at newest api_version kind state objects evaluated pages bytes seconds note"
    ),
    "v_policy_health": "cluster cluster_id scan finished_at newest kind language policy binding detail",
    "v_daily": "cluster cluster_id day scan language policy namespace outcome depends_on_requester count",
}
"""The columns that programs of users name: add columns at the end, and change nothing else within a major version."""
WEB = finding("web", outcome=Violated("web in shop has too many replicas"))
MANY = WEB._replace(outcome=Violated("web in shop has far too many replicas\x01"))
LET_BE = finding("let-be", excepted_by="team/let-be", denies=False, actions=("Warn", "Audit"))
DRIFT = finding("drift", outcome=WouldChange((Change("replace", "/spec/replicas", 3, 7),)), actions=())
HEALTH = Health(HealthKind.UNBOUND, "labels", "", "no binding")


def fill(store: SqlStore) -> None:
    """Store findings of every status, with continuations, resolutions of several reasons, and scans of two clusters."""
    Round((finding("web", kind="Pod"),), cluster=ClusterIdentity("depot")).record(store, 1)
    Known((WEB, LET_BE, finding("a"))).record(store, 2)
    Known((MANY, LET_BE, DRIFT), own_policies=(with_checks(CHECK.expression),)).record(store, 3)
    Known((MANY, REWORDED), own_policies=(with_checks(OTHER.expression),)).record(store, 4)
    Known((MANY, finding("a"), LET_BE)).record(store, 5)
    passing(Known(), store, 6)
    pods = [finding(f"pod-{number}", kind="Pod") for number in (1, 2)]
    record_pods(store, 7, pods[:1])
    record_pods(store, 8, pods[1:])
    each = Known((WEB, finding("new")), coverage=(listed("Deployment"),))
    store.begin(each.start(9))
    store.write_page("scan-9", each.page())
    store.finish("scan-9", replace(each.end(9), health=(HEALTH,)))
    store.begin(Round().start(10))


def columns_of(url: str) -> dict[str, str]:
    """The columns of each view."""
    engine = create_engine(url)
    with engine.connect() as connection:
        seen = inspect(connection)
        views = {name: " ".join(column["name"] for column in seen.get_columns(name)) for name in seen.get_view_names()}
    engine.dispose()
    return views


@pytest.fixture
def filled(url: str, original: Original) -> Iterator[SqlStore]:
    """A store with the scans of `fill`."""
    refill(url, original(url, fill))
    with kept_store(url, clock) as store:
        yield store


def test_the_columns_of_the_views_are_an_interface(url: str) -> None:
    """A change of this list is a change for every user of the views."""
    assert COLUMNS == columns_of(url)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The URLs of a SQLite and a PostgreSQL database with the same scans, of which some are pruned."""
    with ExitStack() as kept:
        urls = [kept.enter_context(prepared_database(kind, tmp_path_factory.mktemp("both"))) for kind in KINDS]
        for url in urls:
            with open_store(url, clock) as store:
                fill(store)
            prune(url, RetentionRule(3), ended(9))
        yield urls


@pytest.mark.parametrize("view", VIEWS)
def test_both_databases_show_the_same(both: list[str], view: str) -> None:
    """Values and their types."""
    first, second = (sorted(rows(url, f"SELECT * FROM {view}"), key=repr) for url in both)

    assert first
    assert [{name: (type(value), value) for name, value in row.items()} for row in first] == [
        {name: (type(value), value) for name, value in row.items()} for row in second
    ]


def test_open_findings_are_those_of_the_report(filled: SqlStore, url: str) -> None:
    """With status, times, workload and message of each."""
    record = filled.read_scan("scan-9")
    shown = {
        stored.id: (
            *(stored.problem, stored.status, seconds(stored.first_seen), seconds(stored.opened_at or ended(0))),
            *(stored.finding.policy, stored.finding.outcome.message, ",".join(stored.finding.actions)),
            *((stored.workload.kind, stored.workload.name) if stored.workload else ()),
            *(stored.cause and stored.cause.kind.value, 1),
        )
        for stored in record.findings()
    }
    names = (
        "problem, status, first_seen, opened_at, policy, message, actions, workload_kind, workload_name, cause, checked"
    )
    query = f"SELECT finding, {names} FROM v_findings_open WHERE cluster = 'prod'"
    found = {row.pop("finding"): tuple(row.values()) for row in rows(url, query)}

    assert {"new", "reopened"} == {status for _, status, *_ in shown.values()}
    assert shown == {finding_id: values for finding_id, values in found.items() if finding_id in shown}
    assert record.unchecked == len(found) - len(shown) == 1
    assert [0] == [checked for finding_id, (*_, checked) in found.items() if finding_id not in shown]


MANY_PODS = tuple(finding(f"pod-{number}", kind="Pod", namespace=("bank", "shop")[number % 2]) for number in range(80))
OF_THE_BANK = tuple(pod for pod in MANY_PODS if pod.namespace == "bank")


def unchecked_in(url: str) -> set[str]:
    """The names of the objects of findings that the newest scan left unchecked."""
    return {str(row["name"]) for row in rows(url, "SELECT name FROM v_findings_open WHERE checked = 0")}


def test_findings_are_checked_or_not_in_the_newest_scan(store: SqlStore, url: str) -> None:
    """A scan of one namespace leaves those of others unchecked, and a scan of the other namespace the other way round."""
    bank, shop = {pod.name for pod in OF_THE_BANK}, {pod.name for pod in MANY_PODS} - {pod.name for pod in OF_THE_BANK}
    Round(MANY_PODS[:1], cluster=ClusterIdentity("depot")).record(store, 1)
    found = []
    for number, (namespace, findings) in enumerate(
        [("", MANY_PODS), ("bank", OF_THE_BANK), ("bank", OF_THE_BANK), ("shop", MANY_PODS[1::2]), ("", MANY_PODS)], 2
    ):
        Round(findings, scope=Scope(namespaces=(namespace,) if namespace else ())).record(store, number)
        found.append(unchecked_in(url))
        assert store.read_scan(f"scan-{number}").unchecked == len(found[-1])
        assert [] == problems_of(url)

    assert [set(), shop, shop, bank, set()] == found


def without_search(connection: Any) -> None:
    """Undo migrations 0027 and 0028."""
    others = ("DROP INDEX objects_by_word",) if connection.dialect.name == "postgresql" else ()
    for statement in (*others, *WITHOUT_SEARCH):
        connection.execute(text(statement))


def without_unchecked_now(connection: Any) -> None:
    """Undo migrations 0023 to 0028."""
    drop_views(connection)
    without_search(connection)
    connection.execute(text("ALTER TABLE scans DROP COLUMN changed_rules"))
    connection.execute(text("DROP TABLE unchecked_now"))
    connection.execute(text("DROP TABLE scan_places"))
    connection.execute(text("DROP TABLE places"))
    connection.execute(text("UPDATE alembic_version SET version_num = '0022'"))


def test_an_upgrade_knows_which_findings_are_unchecked(store: SqlStore, url: str) -> None:
    """Also those of two clusters, in which the newest scans left different ones."""
    depot = ClusterIdentity("depot")
    other = finding("other", kind="Pod")
    Round(MANY_PODS).record(store, 1)
    Round((other,), cluster=depot).record(store, 2)
    Round(OF_THE_BANK, scope=Scope(namespaces=("bank",))).record(store, 3)
    Round(scope=Scope(namespaces=("bank",)), cluster=depot).record(store, 4)
    before = unchecked_in(url)
    store.close()
    downgraded(url, without_unchecked_now)

    assert 41 == len(before)
    assert before == unchecked_in(url)
    assert [] == problems_of(url)


def seconds(moment: Any) -> str:
    """A time as the views show it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def test_pods_have_the_workload_that_controls_them(filled: SqlStore, url: str) -> None:
    """A finding that the newest scan left unchecked stays open, with the workload that it had."""
    [pod] = rows(url, "SELECT * FROM v_findings_open WHERE kind = 'Pod' AND cluster = 'prod'")

    assert ("apps/v1", "ReplicaSet", "shop", "web-5d4f") == tuple(pod[name] for name in pod if "workload" in name)
    assert "open" == pod["status"]


@pytest.mark.long
@pytest.mark.parametrize("number", [3, 4, 5, 6, 9])
def test_problems_are_those_of_the_report(store: SqlStore, url: str, number: int) -> None:
    """The problems of the newest scan have the status, the clocks and the resolution of the report."""

    class Ended(Exception):
        """The scan is stored."""

    class Until(SqlStore):
        def finish(self, scan_id: str, end: Any) -> Any:
            super().finish(scan_id, end)
            if scan_id == f"scan-{number}":
                raise Ended

    with pytest.raises(Ended):
        fill(Until(store._engine, store._address, clock))
    shown = {
        problem.id: {
            "status": problem.status,
            "first_seen": seconds(problem.first_seen),
            "opened_at": seconds(problem.opened_at),
            "resolved_at": seconds(problem.resolved_at) if problem.resolved_at else None,
            "resolution": problem.resolution or None,
            "findings": problem.findings,
            "workload_name": problem.workload.name,
            "expression": problem.check.expression,
        }
        for problem in problems(store.read_scan(f"scan-{number}").findings_by_problem())
    }
    found = {row["problem"]: row for row in rows(url, "SELECT * FROM v_problems WHERE cluster = 'prod'")}

    assert shown
    assert shown == {key: {name: found[key][name] for name in value} for key, value in shown.items()}


def test_a_problem_is_shown_after_its_end(filled: SqlStore, url: str) -> None:
    """With the strictest action that it had, and without open findings."""
    query = "SELECT resolution, resolved_at, action, findings FROM v_problems WHERE status = 'resolved'"
    found = rows(url, query)
    assert {"fixed", "objectGone"} <= {row["resolution"] for row in found}
    assert {"resolution": "fixed", "resolved_at": seconds(ended(6)), "action": "Deny", "findings": 0} in found


def test_exceptions_are_counted_apart(filled: SqlStore, url: str) -> None:
    """The strictest action is shown, whether the exception lets requests pass or not."""
    Known((LET_BE, WEB)).record(filled, 11)
    query = "SELECT excepted, action, denies FROM v_problems WHERE workload_name = 'let-be'"
    assert [{"excepted": 1, "action": "Warn", "denies": 0}] == rows(url, query)


def test_drift_has_no_message(store: SqlStore, url: str) -> None:
    """Its text is that of an internal form; `assay explain` shows the change."""
    Round((DRIFT,)).record(store, 1)

    query = "SELECT outcome, message, action FROM v_findings_open"
    assert [{"outcome": "wouldChange", "message": None, "action": ""}] == rows(url, query)


def test_previews_are_not_open(store: SqlStore, url: str) -> None:
    """They belong to one scan alone."""
    each = Round((finding("a", policy="sandbox"),))
    started = each.start(1)
    store.begin(replace(started, bindings=(replace(started.bindings[0], assumed=True, policy_name="sandbox"),)))
    store.write_page("scan-1", page_of(each.findings, "apps/v1", "Deployment"))
    store.finish("scan-1", each.end(1))

    kept = rows(url, "SELECT finding FROM v_findings_open"), rows(url, "SELECT problem FROM v_problems")
    assert len(list(store.read_scan("scan-1").findings())) == len(kept[0]) == len(kept[1])


@pytest.mark.long
@pytest.mark.parametrize("view", ["v_coverage", "v_policy_health"])
def test_pruned_scans_have_no_body(filled: SqlStore, url: str, view: str) -> None:
    """They are in `v_scans`, with their counts."""
    prune(url, RetentionRule(1), ended(9))
    pruned = {row["scan"] for row in rows(url, "SELECT scan FROM v_scans WHERE pruned = 1 AND findings > 0")}

    assert "scan-3" in pruned
    assert set() == pruned & {row["scan"] for row in rows(url, f"SELECT scan FROM {view}")}


def test_the_newest_scan_is_marked(filled: SqlStore, url: str) -> None:
    """One for each cluster; a running scan is none."""
    query = "SELECT cluster, scan FROM v_scans WHERE newest = 1 ORDER BY cluster"
    assert [{"cluster": "depot", "scan": "scan-1"}, {"cluster": "prod", "scan": "scan-9"}] == rows(url, query)
    assert [{"state": "running", "finished_at": None}] == rows(
        url, "SELECT state, finished_at FROM v_scans WHERE scan = 'scan-10'"
    )


def test_shared_health_is_shown_for_each_scan(store: SqlStore, url: str) -> None:
    """It is stored once."""
    for number in (1, 2):
        store.begin(Round().start(number))
        store.finish(f"scan-{number}", replace(Round().end(number), health=(HEALTH,)))

    query = "SELECT scan, kind, policy, detail FROM v_policy_health ORDER BY scan"
    told = {"kind": "unbound", "policy": "labels", "detail": "no binding"}
    assert [{"scan": "scan-1", **told}, {"scan": "scan-2", **told}] == rows(url, query)


@given(texts=st.lists(st.tuples(TEXTS, WORDS, WORDS), min_size=20, max_size=60, unique_by=lambda each: each[1:]))
@settings(
    max_examples=examples(9),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_messages_are_filled(url: str, store: SqlStore, texts: list[tuple[str, str, str]]) -> None:
    """With name and namespace, for every text, as reports fill them."""
    number = len(store.scans(limit=1_000_000)) + 1
    findings = (finding(name, namespace=namespace, outcome=Violated(message)) for message, name, namespace in texts)
    Round(tuple(findings)).record(store, number)

    shown = {stored.id: stored.finding.outcome.message for stored in store.read_scan(f"scan-{number}").findings()}
    found = {row["finding"]: row["message"] for row in rows(url, "SELECT finding, message FROM v_findings_open")}
    assert shown == found


def test_an_upgrade_creates_the_views_anew(tmp_path: Path) -> None:
    """Of a database of the first version, whose findings have no problems: each of them stands for itself."""
    path = tmp_path / "assay.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((OLD / "0001.sql").read_text("utf-8"))
    upgrade(str(path))

    url = f"sqlite:///{path}"
    findings, shown = (rows(url, f"SELECT * FROM {view}") for view in ("v_findings_open", "v_problems"))
    assert {row["finding"] for row in findings} == {row["problem"] for row in shown if row["status"] != "resolved"}
    assert findings
    assert [] == problems_of(url)


def remigrated(url: str, change: Callable[[Any], object] = lambda _: None) -> None:
    """Upgrade after a change."""
    engine = create_engine(url)
    with writing_shared(engine) as connection:
        change(connection)
        run_migrations(connection)
    engine.dispose()


def downgraded(url: str, change: Callable[[Any], object]) -> None:
    """Make the database one of an older version, and upgrade it."""
    without_lists(url)
    engine = create_engine(url)
    with writing_shared(engine) as connection:
        change(connection)
    engine.dispose()
    assert upgrade(url, backup=False).migrated


def test_an_upgrade_creates_the_views_of_its_version(url: str) -> None:
    """Whether the database has older ones or none."""

    def older(connection: Any) -> None:
        drop_views(connection)
        connection.execute(text("CREATE VIEW v_daily AS SELECT 'prod' AS cluster"))

    remigrated(url, drop_views)
    assert COLUMNS == columns_of(url)
    if url.startswith("sqlite"):
        remigrated(url, older)
        assert COLUMNS == columns_of(url)


def partial_before(connection: Any) -> None:
    """Undo migrations 0025 to 0028."""
    without_search(connection)
    connection.execute(text("DROP TABLE scan_places"))
    connection.execute(text("DROP TABLE places"))
    connection.execute(text("UPDATE scans SET state = 'partial' WHERE state = 'incomplete'"))
    connection.execute(text("UPDATE alembic_version SET version_num = '0024'"))


def test_an_upgrade_calls_a_partial_scan_incomplete(store: SqlStore, url: str) -> None:
    """As reports and exit codes do; other states stay."""
    Round(MANY_PODS).record(store, 1)
    Round(MANY_PODS, state=ScanState.INCOMPLETE).record(store, 2)
    store.close()
    downgraded(url, partial_before)
    assert ["complete", "incomplete"] == [row["state"] for row in rows(url, "SELECT * FROM v_scans ORDER BY scan")]


def test_an_upgrade_keeps_rights_and_views_of_users(filled: SqlStore, url: str) -> None:
    """A role that may only read the views still may, also if a migration dropped them."""
    filled.close()
    if url.startswith("sqlite"):
        pytest.skip("SQLite has no rights")
    remigrated(url)
    execute(url, "CREATE VIEW of_a_user AS SELECT finding FROM v_findings_open")
    remigrated(url)
    execute(url, "DROP VIEW of_a_user")
    execute(url, "GRANT SELECT ON v_problems TO PUBLIC; GRANT SELECT ON v_scans TO pg_monitor WITH GRANT OPTION")

    engine = create_engine(url)
    with writing_shared(engine) as connection, keeping_rights(connection), creating_views(connection):
        drop_views(connection)
    engine.dispose()
    granted = (
        "SELECT table_name, grantee, is_grantable FROM information_schema.role_table_grants"
        " WHERE table_schema = current_schema() AND grantee IN ('PUBLIC', 'pg_monitor') ORDER BY 1"
    )
    assert [("v_problems", "PUBLIC", "NO"), ("v_scans", "pg_monitor", "YES")] == [
        tuple(row.values()) for row in rows(url, granted)
    ]


def test_a_table_below_a_view_can_be_copied(url: str) -> None:
    """As Alembic does in SQLite to change a column: the views are dropped before, and created after."""
    engine = create_engine(url)
    with writing_shared(engine) as connection:
        drop_views(connection)
        connection.execute(text("ALTER TABLE coverage RENAME TO earlier"))
        connection.execute(text("CREATE TABLE coverage AS SELECT * FROM earlier"))
        connection.execute(text("DROP TABLE earlier"))
        create_views(connection)
    engine.dispose()

    assert COLUMNS == columns_of(url)
