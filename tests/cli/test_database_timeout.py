"""`--database-timeout`: commands wait for a PostgreSQL that is away, print that they wait, and record their run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scanner.store import open_reader
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.store.databases import database
from tests.store.relay import Relay, refusing, relayed

Write = Callable[[str, str], Path]


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    """An empty PostgreSQL database that is away."""
    with database("postgresql", tmp_path) as url, relayed(url) as relay:
        yield relay


@pytest.mark.parametrize("by", ["flag", "file"])
def test_a_scan_waits_for_its_database(assay: Assay, write: Write, relay: Relay, by: str) -> None:
    """It ends as if the database had been there, and stderr has the wait; the file of the configuration has the same key."""
    write("shop/all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("assay.yaml", "databaseTimeout: 2m" if by == "file" else "{}")
    relay.give(refused=2)
    flags = ("--database-timeout", "2m") if by == "flag" else ()
    ran = assay("scan", "--from", "shop", "--db", relay.url, *flags)
    with open_reader(relay.url) as store:
        [run] = store.list_runs()

    assert 0 == ran.code, ran.stderr
    assert "the database system is starting up" in ran.stderr
    assert "Waiting for the database, 120 seconds at most" in ran.stderr
    assert "The database answers after" in ran.stderr
    assert (0, True) == (run.run.exit_code, run.complete)


def test_an_upgrade_waits_too(assay: Assay, relay: Relay) -> None:
    """The init containers of a scan run before it."""
    relay.give(refused=2)
    upgraded = assay("db", "upgrade", "--db", relay.url, "--database-timeout", "2m")

    assert 0 == upgraded.code, upgraded.stderr


@pytest.mark.parametrize("flags", [(), ("--database-timeout", "1s")], ids=["no wait", "wait"])
def test_a_database_that_stays_away_is_exit_code_4(assay: Assay, relay: Relay, flags: tuple[str, ...]) -> None:
    """With the error of the database; without the flag nothing is waited for."""
    ran = assay("scan", "--from", ".", "--db", relay.url, *flags)

    assert 4 == ran.code
    assert "does not answer" in ran.stderr.splitlines()[-1]
    assert bool(flags) == ("Waiting" in ran.stderr)


@pytest.mark.parametrize(("job", "code"), [("0", 4), ("1", 5)], ids=["at a terminal", "in a Job"])
def test_a_refused_password_is_not_waited_for(
    assay: Assay, monkeypatch: pytest.MonkeyPatch, job: str, code: int
) -> None:
    """A scan with a wrong Secret fails at once, in a Job with the code that it does not try again."""
    monkeypatch.setenv("ASSAY_JOB", job)
    with refusing("28P01", 'password authentication failed for user "assay"') as url:
        ran = assay("scan", "--from", ".", "--db", url, "--database-timeout", "10m")

    assert code == ran.code
    assert "Waiting" not in ran.stderr


def test_a_time_that_is_no_duration_is_an_error(assay: Assay) -> None:
    """Of usage."""
    ran = assay("scan", "--from", ".", "--db", "assay.db", "--database-timeout", "soon")

    assert (2, True) == (ran.code, "--database-timeout soon: write a duration" in ran.stderr)
