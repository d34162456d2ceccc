"""The closing sums of scans name damage, and stay true while rows change."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scanner.errors import StoreError
from scanner.model.outcome import Gap, GapKind, Violated
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.scan import ScanState
from scanner.store import SqlStore, open_store, prune
from scanner.store.rows.logical_rows import PARTS
from scanner.store.rows.tally_lists import TallyRow, encode_tallies
from scanner.store.upkeep.integrity import check_database
from scanner.store.upkeep.maintenance import reindex
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.conftest import Original
from tests.store.databases import execute, prepared_database, refill, rows
from tests.store.made import Round, clock, ended, finding

GAP = Gap(GapKind.LIST, "v1/Secret", "forbidden")
WEB, GONE, OTHER = finding("web"), finding("gone", kind="Pod"), finding("other", kind="Pod")


def record_story(store: SqlStore) -> None:
    """Record four scans: findings that stay, change, are resolved and come back, a rule, and a gap."""
    many = WEB._replace(outcome=Violated("far too many"))
    for number, findings in enumerate([(WEB, GONE), (many, OTHER), (many, GONE), (many, GONE)]):
        gaps, state = ((GAP,), ScanState.INCOMPLETE) if number == 1 else ((), ScanState.COMPLETE)
        each = Round(findings, gaps=gaps, state=state)
        store.begin(replace(each.start(number), rules=(RuleObject(RuleType.PARAM, "limit", "digest", {"limit": 3}),)))
        for page in each.pages():
            store.write_page(f"scan-{number}", page)
        store.finish(f"scan-{number}", each.end(number))


@pytest.fixture
def filled(url: str, original: Original) -> Iterator[SqlStore]:
    """A store with the story."""
    refill(url, original(url, record_story))
    with open_store(url, clock) as store:
        yield store


def sums(url: str) -> list[dict[str, Any]]:
    """The sums in the database, but for the part that has ids of the database."""
    wanted = (
        "SELECT part, block, scan, rows, sum FROM closing_sums WHERE part <> 'coverage sets' ORDER BY part, block, scan"
    )
    return [
        {name: bytes(value).hex() if name == "sum" else value for name, value in row.items()}
        for row in rows(url, wanted)
    ]


def places(url: str) -> set[str]:
    """The places of the problems of a database."""
    return {problem.where for problem in check_database(url)}


def test_both_databases_have_equal_sums(tmp_path: Path) -> None:
    """Logical rows have no id that only one database gives."""
    stored = []
    for kind in ("sqlite", "postgresql"):
        with prepared_database(kind, tmp_path) as url, open_store(url, clock) as store:
            record_story(store)
            stored.append(sums(url))

    assert stored[0] == stored[1]
    assert stored[0]


def test_a_sum_is_that_of_the_documented_encoding(filled: SqlStore, url: str) -> None:
    """The sum of one row is its digest: BLAKE2b of 32 bytes of compact JSON."""
    assert filled.scans()
    row = json.dumps(["gaps", 0, "list", "v1/Secret", "forbidden"], separators=(",", ":")).encode()
    of_gaps = [each for each in sums(url) if each["part"] == "gaps"]

    assert [(1, hashlib.blake2b(row, digest_size=32).hexdigest())] == [(each["rows"], each["sum"]) for each in of_gaps]


def test_the_documents_list_the_columns_of_every_part() -> None:
    """In their order, which never changes: sums of older scans would be wrong."""
    documents = (Path(__file__).parents[2] / "docs" / "database.md").read_text("utf-8")
    listed = re.findall(
        r"^\| `([a-z_ ]+)` \| [^|]* \| (`[^|;]*`)", documents.partition("### Closing sums")[2], re.MULTILINE
    )

    assert {name: part.columns for name, part in PARTS.items()} == {
        name: tuple(re.findall(r"`(\w+)`", columns)) for name, columns in listed
    }


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("UPDATE findings SET resource_version = '7' WHERE id = 1", "findings 0 to 1023 of scan scan-0"),
        ("UPDATE findings SET problem = problem + 1 WHERE id = 1", "findings 0 to 1023 of scan scan-0"),
        ("UPDATE findings SET resolution = 'unbound' WHERE last_seen = 1", "findings 0 to 1023 of scan scan-1"),
        ("UPDATE findings SET until = 2147483647 WHERE last_seen = 1", "findings 0 to 1023 of scan scan-1"),
        ("UPDATE objects SET uid = 'uid-shop-wet' WHERE name = 'web'", "population 0 to 1023 of scan scan-0"),
        (
            "UPDATE population SET kept = 0, workload = 0, since = 3 WHERE object = 1",
            "population 0 to 1023 of scan scan-0",
        ),
        # The end of an interval of one revision is in no sum: another end is a row too many in that of its scan.
        ("UPDATE population SET until = 3 WHERE until = 2", "population 0 to 1023 of scan scan-2"),
        ("UPDATE scans SET tallies = NULL WHERE number = 1", "tallies of scan scan-0"),
        ("UPDATE tally_lists SET digest = (SELECT digest FROM gap_lists)", "tally_lists 1"),
        ("UPDATE coverage SET objects = 8 WHERE scan = 1", "coverage of scan scan-0"),
        ("UPDATE coverage SET sets = NULL WHERE scan = 1", "coverage sets of scan scan-0"),
        ("UPDATE scans SET gaps = NULL", "gaps of scan scan-1"),
        ("UPDATE scan_policies SET position = 5 WHERE position = 1", "scan_policies of scan scan-0"),
        ("UPDATE scans SET tool_version = '0.1.1' WHERE number = 2", "scans of scan scan-1"),
        ("UPDATE scans SET resolved = 4 WHERE number = 2", "scans ended of scan scan-1"),
        ("UPDATE scans SET matched = '[1,2]' WHERE number = 2", "reports of scan scan-1"),
        ("UPDATE daily_lists SET content = replace(content, '2}', '5}')", "daily of scan scan-0"),
        ("UPDATE days SET day = '2026-04-01' WHERE number = 1", "daily of scan scan-0"),
        ("UPDATE check_names SET since = 2 WHERE since = 1", "check_names of scan scan-0"),
        ("DELETE FROM closing_sums WHERE scan = 2", "scan scan-1"),
        ("DELETE FROM closing_sums WHERE part = 'findings'", "findings 0 to 1023 of scan scan-0"),
    ],
)
def test_a_changed_row_is_named_with_the_scan_that_wrote_it(
    filled: SqlStore, url: str, statement: str, where: str
) -> None:
    """For every column."""
    filled.close()
    execute(url, f"{'SET session_replication_role = replica; ' * url.startswith('postgresql')}{statement}")

    assert where in places(url)


def test_a_changed_list_is_named_with_every_scan_that_has_it(filled: SqlStore, url: str) -> None:
    """The scans share the list, and all reports change."""
    filled.close()
    content = encode_tallies([TallyRow(1, 1, "shop", "violated", 99, requester=False)])
    execute(url, "UPDATE tally_lists SET content = :content", content=content)

    assert {"tally_lists 1", *(f"tallies of scan scan-{number}" for number in range(4))} <= places(url)


def test_lost_rows_are_counted(filled: SqlStore, url: str) -> None:
    """The problem has both numbers."""
    filled.close()
    execute(url, "UPDATE scans SET tallies = NULL WHERE number = 1")
    what = next(problem.what for problem in check_database(url) if problem.where == "tallies of scan scan-0")

    assert "the scan wrote 2 rows, and 0 are there" == what


def test_a_prune_keeps_the_sums_true(filled: SqlStore, url: str) -> None:
    """It takes the rows that it deletes out of the sums."""
    before = len(sums(url))
    prune(url, RetentionRule(1), ended(4))

    assert set() == places(url)
    assert before > len(sums(url))


def test_a_prune_does_not_hide_damage(filled: SqlStore, url: str) -> None:
    """A damaged row that stays is named afterwards, too."""
    filled.close()
    execute(url, "UPDATE findings SET resource_version = '7' WHERE superseded IS NULL")
    prune(url, RetentionRule(1), ended(4))

    assert any(place.startswith("findings 0 to 1023 of scan") for place in places(url))


def test_a_dead_scan_has_sums(filled: SqlStore, url: str) -> None:
    """The process that marks the scan as failed writes them."""
    filled.begin(Round().start(5))
    execute(
        url,
        "UPDATE scans SET host = 'elsewhere', heartbeat = '2020-01-01 00:00:00+00' WHERE id = 'scan-5'",
    )
    Round((WEB,)).record(filled, 6)
    [state] = [row["state"] for row in rows(url, "SELECT state FROM scans WHERE id = 'scan-5'")]

    assert "failed" == state
    assert "scans ended" in {each["part"] for each in sums(url) if each["scan"] == 5}
    assert set() == places(url)


def test_a_scan_does_not_build_on_damage(filled: SqlStore, url: str) -> None:
    """The error has the place and both ways to go on."""
    execute(url, "UPDATE findings SET resource_version = '7' WHERE superseded IS NULL")
    with pytest.raises(StoreError, match=r"findings 0 to 1023 of scan scan-1 .*Restore .* --accept-damage") as error:
        Round().record(filled, 6)

    assert 4 == error.value.exit_code
    assert "scan-6" not in {scan.id for scan in filled.scans()}


def test_accepted_damage_is_recorded(filled: SqlStore, url: str) -> None:
    """In the notes of the scan; the next scan finds no damage."""
    execute(url, "UPDATE findings SET resource_version = '7' WHERE superseded IS NULL")
    execute(url, "UPDATE verdicts SET message = 'far too mamy' WHERE message LIKE 'far%'")
    each = Round((WEB, GONE))
    filled.begin(replace(each.start(6), accept_damage=True))
    for page in each.pages():
        filled.write_page("scan-6", page)
    [note] = filled.finish("scan-6", each.end(6)).notes

    assert "--accept-damage accepted the rows as they were" in note
    assert "findings 0 to 1023 of scan scan-1" in note
    assert "verdicts 2" in note
    reindex(url)
    assert set() == places(url)
    assert () == each.record(filled, 7).notes


def test_a_scan_that_could_accept_damage_and_finds_none_has_no_note(filled: SqlStore) -> None:
    """The flag alone changes nothing."""
    each = Round((WEB,))
    filled.begin(replace(each.start(6), accept_damage=True))

    assert () == filled.finish("scan-6", each.end(6)).notes
