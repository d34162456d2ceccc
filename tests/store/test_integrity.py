"""`check_database` finds what is wrong with a database, and finds nothing in a sound one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from scanner.errors import StoreError, UsageError
from scanner.model.outcome import Violated
from scanner.model.rule import RuleObject, RuleType
from scanner.store import SqlStore, open_store, prune, upgrade
from scanner.store.upkeep.integrity import DatabaseProblem, check_database
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.conftest import Original
from tests.store.databases import execute, kept_store, refill, rows
from tests.store.made import CHECK, Round, binding, clock, ended, finding
from tests.store.test_endings import RENAMED, REWORDED, UNBOUND, A, B, Known
from tests.store.test_problems import OTHER, passing, record_pods, with_checks

OLD = Path(__file__).parent / "old"
MANY = A._replace(outcome=Violated("far too many"))


def problems_of(url: str) -> list[DatabaseProblem]:
    """The problems of a database, with the digests of all rows."""
    return check_database(url, all_words=True)


@pytest.fixture
def filled(url: str, original: Original) -> Iterator[SqlStore]:
    """A store with findings that are open, changed, resolved and reopened, and with population, rules and unchecked findings."""
    refill(url, original(url, record_every_kind))
    with kept_store(url, clock) as store:
        yield store


def record_every_kind(store: SqlStore) -> None:
    """Record five scans."""
    web, gone = finding("web"), finding("gone", kind="Pod")
    changed = web._replace(outcome=Violated("far too many"))
    for number, findings in enumerate([(web, gone), (changed,), (changed, gone), (changed, gone)]):
        each = Round(findings)
        rules = (RuleObject(RuleType.PARAM, "limit", "digest", {"limit": 3}),)
        store.begin(replace(each.start(number), rules=rules))
        for page in each.pages():
            store.write_page(f"scan-{number}", page)
        store.finish(f"scan-{number}", each.end(number))
    Round(bound=("labels",)).record(store, 4)


def test_a_sound_database_has_no_problem(filled: SqlStore, url: str) -> None:
    """With a sample of the digests, and with all."""
    assert filled.scans()
    assert ([], []) == (problems_of(url), check_database(url))


def test_findings_that_continue_others_are_no_problem(store: SqlStore, url: str) -> None:
    """There and back, as old as before, and again after the finding that continued another was resolved."""
    named, renamed = Known((A,)), Known((RENAMED,), own_bindings=(binding("replicas", name="renamed"),))
    for number, each in enumerate((named, renamed, named, UNBOUND, renamed, named, renamed, UNBOUND, named)):
        each.record(store, number)
    events = [store.read_scan(f"scan-{number}").scan.new for number in range(9)]

    assert [1, 0, 0, 0, 1, 0, 0, 0, 1] == events
    assert [] == problems_of(url)


def test_a_continuing_row_that_is_lost_is_found(store: SqlStore, url: str) -> None:
    """The finding ended, and no other goes on."""
    Known((A,)).record(store, 1)
    Known((RENAMED,), own_bindings=(binding("replicas", name="renamed"),)).record(store, 2)
    execute(url, "DELETE FROM findings WHERE continues IS NOT NULL")

    what = "findings end without the one that continues them, or continue one that does not end"
    assert what in {problem.what for problem in problems_of(url)}


@pytest.mark.parametrize(
    ("statement", "what", "where"),
    [
        pytest.param("DELETE FROM verdicts", "rows refer to verdicts 1", "findings.verdict", id="missing verdicts"),
        pytest.param(
            "UPDATE population SET workload = 7",
            "workloads 7, which do not exist",
            "population.workload",
            id="workloads",
        ),
        pytest.param(
            "UPDATE scans SET policies_of = 99 WHERE number = 2", "shares policies", "scan scan-1", id="owners"
        ),
        pytest.param("UPDATE findings SET until = since WHERE until < 9", "rows end before", "findings", id="empty"),
        pytest.param("UPDATE findings SET until = 4 WHERE superseded = 2", "overlap", "findings", id="overlap"),
        pytest.param("UPDATE findings SET until = 99 WHERE superseded = 2", "does not exist", "findings", id="future"),
        pytest.param(
            "UPDATE findings SET superseded = 4 WHERE superseded IS NULL", "no latest row", "findings", id="latest"
        ),
        pytest.param("UPDATE findings SET first = 2 WHERE event = 'reopened'", "several first", "findings", id="first"),
        pytest.param("UPDATE findings SET last_seen = 9 WHERE last_seen = 1", "last seen", "findings", id="last seen"),
        pytest.param("DELETE FROM findings WHERE superseded = 2", "missing between", "findings", id="gap"),
        pytest.param("UPDATE last_ids SET id = 1 WHERE name = 'findings'", "highest given id, 1", "findings", id="ids"),
        pytest.param("UPDATE verdicts SET message = 'x'", "its digest is another", "verdicts", id="digest"),
        pytest.param("UPDATE rules SET document = '{}'", "its digest is another", "rules 1", id="rules"),
        pytest.param("UPDATE object_sets SET count = 99", "another number of objects", "object_sets 1", id="sets"),
        pytest.param("DELETE FROM object_sets", "refers to object_sets 1", "set_lists 1", id="missing sets"),
        pytest.param("DELETE FROM checks", "refers to checks 1", "set_lists 1", id="missing checks"),
        pytest.param("DELETE FROM findings", "refers to findings", "unchecked, scan 5", id="missing findings"),
        pytest.param("DELETE FROM unchecked_now", "are others in the views", "unchecked_now", id="unchecked in views"),
    ],
)
def test_a_problem_has_a_place_and_a_remedy(filled: SqlStore, url: str, statement: str, what: str, where: str) -> None:
    """Each rule is checked."""
    filled.close()
    execute(url, f"{'SET session_replication_role = replica; ' * url.startswith('postgresql')}{statement}")
    found = [problem for problem in problems_of(url) if what in problem.what and problem.where.startswith(where)]

    assert found
    assert "Restore" in found[0].remedy


@pytest.fixture
def continued(url: str, original: Original) -> Iterator[SqlStore]:
    """A store with a finding that continues as another one, comes back, changes, and is fixed; and with an open one."""
    refill(url, original(url, record_continuations))
    with kept_store(url, clock) as store:
        yield store


def record_continuations(store: SqlStore) -> None:
    """Record seven scans."""
    there, back = Known((A, B)), Known((REWORDED, B), own_policies=(with_checks(OTHER.expression),))
    first = replace(there, own_policies=(with_checks(CHECK.expression),))
    for number, each in enumerate((first, back, first, replace(first, findings=(MANY, B))), 1):
        each.record(store, number)
    passing(replace(first, findings=()), store, 5)
    first.record(store, 6)
    record_pods(store, 7, [finding(name, kind="Pod") for name in ("pod-1", "pod-2")])


def test_continuations_are_no_problem(continued: SqlStore, url: str) -> None:
    """A fingerprint may come back, with a first scan before its first row; also if a prune deleted rows between."""
    assert continued.scans()
    assert [] == problems_of(url)
    prune(url, RetentionRule(1), ended(7))
    assert [] == problems_of(url)


def test_a_finding_that_comes_back_beside_the_one_that_continued_it_begins_anew(store: SqlStore, url: str) -> None:
    """Its rows have two first scans."""
    both = Known((A, RENAMED), own_bindings=(binding("replicas"), binding("replicas", name="renamed")))
    Known((A,)).record(store, 1)
    Known((RENAMED,), own_bindings=both.own_bindings[1:]).record(store, 2)
    both.record(store, 3)
    replace(both, findings=(MANY, RENAMED)).record(store, 4)

    assert 2 == len(rows(url, f"SELECT DISTINCT first FROM findings WHERE fingerprint = {literal(url)}"))
    assert [] == problems_of(url)


def literal(url: str) -> str:
    """The fingerprint of A in SQL."""
    return f"x'{A.fingerprint}'" if url.startswith("sqlite") else f"'\\x{A.fingerprint}'"


LAST_OF_A = "event = 'new' AND superseded = 2"


@pytest.mark.parametrize(
    ("statement", "what", "where"),
    [
        pytest.param(
            "DELETE FROM findings WHERE event = 'continued' AND since = 2", "end without", "findings", id="end"
        ),
        pytest.param(f"DELETE FROM findings WHERE {LAST_OF_A}", "end without", "findings", id="continued row missing"),
        pytest.param(
            f"UPDATE findings SET until = 1 WHERE {LAST_OF_A}", "end without", "findings", id="ends elsewhere"
        ),
        pytest.param(
            "UPDATE findings SET continues = NULL WHERE since = 2", "without naming", "findings", id="unnamed"
        ),
        pytest.param("UPDATE findings SET first = 2 WHERE event = 'changed'", "several first", "findings", id="first"),
        pytest.param("UPDATE findings SET first = 9 WHERE since = 3", "several first", "findings", id="first too late"),
        pytest.param("DELETE FROM causes", "rows refer to causes", "findings.cause", id="causes"),
        pytest.param("DELETE FROM causes", "rows refer to causes", "findings.end_cause", id="causes of ends"),
        pytest.param("UPDATE findings SET problem = NULL", "no problem", "findings", id="problem"),
        pytest.param("UPDATE findings SET opened = 0", "opened before", "findings", id="opened too early"),
        pytest.param("UPDATE findings SET opened = 9", "opened before", "findings", id="opened too late"),
        pytest.param(
            "UPDATE findings SET opened = 1 WHERE event = 'reopened'", "opened before", "findings", id="old episode"
        ),
        pytest.param("UPDATE findings SET problem_first = 9", "contradict", "findings", id="problem first too late"),
        pytest.param("UPDATE findings SET problem_opened = 9", "contradict", "findings", id="problem opened too late"),
        pytest.param("UPDATE findings SET problem_first = NULL", "contradict", "findings", id="half a clock"),
        pytest.param(
            "UPDATE findings SET problem_opened = 6 WHERE id = (SELECT max(id) FROM findings)",
            "several begins",
            "findings",
            id="two episodes at once",
        ),
        pytest.param("UPDATE findings SET resolution = NULL", "without a reason", "findings", id="no reason"),
        pytest.param("UPDATE findings SET resolution = 'fixed'", "were not resolved", "findings", id="open and fixed"),
        pytest.param(
            "UPDATE findings SET resolution = 'x' WHERE last_seen > 0", "a reason", "findings", id="unknown reason"
        ),
        pytest.param("UPDATE check_names SET name = 'replicas'", "another form", "check_names", id="ids of checks"),
        pytest.param("UPDATE fixes SET revision = 99", "do not exist", "fixes.revision", id="fixes"),
        pytest.param("UPDATE fixes SET opened = 99", "do not exist", "fixes.opened", id="episodes of fixes"),
    ],
)
def test_histories_and_clocks_are_checked(continued: SqlStore, url: str, statement: str, what: str, where: str) -> None:
    """Each rule is checked."""
    test_a_problem_has_a_place_and_a_remedy(continued, url, statement, what, where)


def test_missing_objects_are_found(filled: SqlStore, url: str) -> None:
    """In sets, and by the rows that refer to them."""
    filled.close()
    execute(url, f"{'SET session_replication_role = replica; ' * url.startswith('postgresql')}DELETE FROM objects")
    places = {problem.where.split()[0] for problem in problems_of(url)}

    assert {"findings.object", "population.object", "object_sets"} <= places


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    """SQLite finds it; nothing else is checked then."""
    path = tmp_path / "assay.db"
    with open_store(str(path), clock) as store:
        Round(tuple(finding(f"web-{number}") for number in range(400))).record(store, 1)
    content = bytearray(path.read_bytes())
    page = content.index(b"web-200") // 4096 * 4096
    content[page + 8 : page + 200] = bytes(192)
    path.write_bytes(content)

    try:
        problems = check_database(str(path))
    except StoreError as error:
        assert "is damaged" in str(error)  # noqa: PT017 -- SQLite reports damage either way
    else:
        assert {"the file"} == {problem.where for problem in problems}


def test_a_missing_database_is_a_usage_error(tmp_path: Path) -> None:
    """A check creates no file."""
    with pytest.raises(UsageError, match="does not exist"):
        check_database(str(tmp_path / "assay.db"))
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("old", sorted(OLD.glob("*.sql")), ids=lambda path: path.stem)
def test_an_upgraded_database_has_no_problem(tmp_path: Path, old: Path) -> None:
    """What older versions wrote differently is no damage."""
    path = tmp_path / "assay.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(old.read_text("utf-8"))
    upgrade(str(path))
    upgraded = problems_of(str(path))
    with open_store(str(path), clock) as store:
        Round((finding("web"),)).record(store, 7)

    assert ([], []) == (upgraded, problems_of(str(path)))
