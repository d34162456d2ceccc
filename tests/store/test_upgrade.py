"""A database of an older version becomes one of this version, with its whole history.

`old/` has such databases as SQL. Those of versions 0001 and 0026 have two scans, of which the first sees `a` and `b`, the second `a` alone.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from scanner.model.reading import UNKNOWN_READING
from scanner.model.resource import UserInfo
from scanner.store import open_store, upgrade
from tests.store.made import Round, clock, finding, statuses

OLD = [Path(__file__).parent / "old" / f"{version}.sql" for version in ("0001", "0026")]


@pytest.fixture(params=OLD, ids=lambda path: path.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database as an older version left it."""
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(request.param.read_text("utf-8"))
    connection.close()
    return path


def test_an_upgrade_keeps_the_records(old: Path) -> None:
    """Findings, their history and the counts read as before."""
    assert upgrade(str(old))
    with open_store(str(old), clock) as store:
        first, second = store.read_scan("scan-1"), store.read_scan("scan-2")
        assert {"a": "new", "b": "new"} == statuses(first.findings())
        assert {"a": "open"} == statuses(second.findings())
        assert {"b": "resolved"} == statuses(second.resolved_findings())
        assert 2 == sum(first.tallies.values())


def test_data_that_an_older_version_lacks_is_unknown(old: Path) -> None:
    """Its policies have no classes, its scans no user, and no outcome depends on one."""
    upgrade(str(old))
    with open_store(str(old), clock) as store:
        record = store.read_scan("scan-2")
    assert {UNKNOWN_READING} == {policy.reading for policy in record.policies}
    assert (UserInfo(), (), {False}) == (
        record.scan.requester,
        record.outside,
        {key.requester for key in record.tallies},
    )


def test_scans_go_on_after_an_upgrade(old: Path) -> None:
    """The open findings are open or resolved in the next scan."""
    upgrade(str(old))
    with open_store(str(old), clock) as store:
        Round((finding("c"),)).record(store, 3)
        record = store.read_scan("scan-3")
        assert {"c": "new"} == statuses(record.findings())
        assert {"a": "resolved"} == statuses(record.resolved_findings())
