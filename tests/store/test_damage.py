"""Damage of a file is named by `assay db check`, and no command ends with an internal error."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command import assay_here
from tests.store.damage import copies, experiment, record

pytestmark = pytest.mark.long

_FILES = 12


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with four scans."""
    return record(tmp_path_factory.mktemp("damage"))


def test_every_flip_that_changes_an_answer_is_named(tmp_path: Path) -> None:
    """Files with 1 to 8 flipped bits: reports of all scans, explanations, differences, trends and views are compared."""
    results = list(experiment(tmp_path, _FILES))

    assert [] == [(each.places, each.changed) for each in results if each.changed and not each.named]
    assert [] == [(each.places, each.internal) for each in results if each.internal]
    assert any(each.changed for each in results)


def test_flipped_bits_are_the_same_each_time(database: Path, tmp_path: Path) -> None:
    """The seed is fixed."""
    first, second = ([places for _, places in copies(database, tmp_path, 3)] for _ in range(2))

    assert first == second


@pytest.mark.parametrize("missing", [1, 5000])
@pytest.mark.parametrize("command", [("db", "check"), ("report", "last"), ("scan", "--from", "."), ("db", "vacuum")])
def test_a_file_that_is_cut_short_is_refused(
    database: Path, tmp_path: Path, command: tuple[str, ...], missing: int
) -> None:
    """Also if one byte is missing, which SQLite reads as zero."""
    cut = tmp_path / "assay.db"
    cut.write_bytes(database.read_bytes()[:-missing])
    ran = assay_here(*command, "--db", cut, home=tmp_path)

    assert 4 == ran.code
    assert f"the file is cut short, and at least {missing:,} bytes are missing. Restore" in ran.stderr


def test_no_copy_is_made_of_a_file_that_is_cut_short(database: Path, tmp_path: Path) -> None:
    """The copy would be whole, and would hide the loss."""
    cut = tmp_path / "assay.db"
    cut.write_bytes(database.read_bytes()[:-1])
    ran = assay_here("db", "backup", tmp_path / "copy.db", "--db", cut, home=tmp_path)

    assert (4, False) == (ran.code, (tmp_path / "copy.db").exists())


def test_a_scan_accepts_damage_on_demand(database: Path, tmp_path: Path) -> None:
    """Without the flag it ends with code 4; with it, the report names the damage."""
    damaged = tmp_path / "assay.db"
    content = database.read_bytes()
    assert content.count(b'["app","web-196"]')
    damaged.write_bytes(content.replace(b'["app","web-196"]', b'["app","web-197"]'))
    scan = "scan", "--from", database.parent / "manifests", "--cluster-name", "shop", "--db", damaged
    refused = assay_here(*scan, home=tmp_path)
    accepted = assay_here(*scan, "--accept-damage", "-o", "json", home=tmp_path)

    assert (4, 0) == (refused.code, accepted.code)
    assert "is damaged, and a scan would build on the damage: kept" in refused.stderr
    assert "--accept-damage accepted the rows as they were" in accepted.stdout.decode()
    assert 0 == assay_here(*scan, home=tmp_path).code


def test_the_database_of_the_experiment_has_no_problem(database: Path, tmp_path: Path) -> None:
    """Without a flip, nothing is named."""
    copy = shutil.copy(database, tmp_path / "assay.db")

    assert b"The database has no problem.\n" == assay_here("db", "check", "--db", copy, home=tmp_path).stdout
