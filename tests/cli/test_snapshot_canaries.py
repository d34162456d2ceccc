"""No secret is in a snapshot or a packet: the canaries of reports, searched in the raw bytes and in the content of every member."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from scanner.model.json import as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.test_canaries import (
    ALWAYS,
    GROUPS,
    READ,
    Cell,
    cells_of,
    leaked_cells,
    written,
    written_for_readers,
)


def contents(path: Path) -> bytes:
    """The bytes of a snapshot, and those of every member, decompressed."""
    with zipfile.ZipFile(path) as archive:
        return b"\n".join([path.read_bytes(), *(archive.read(name) for name in archive.namelist())])


def packet(assay: Assay, home: Path) -> bytes:
    """The bytes of a packet of every object of the last scan, which reproduces as far as the redaction permits."""
    made = assay("sample", "--seed", "s", "--n", "500", "--snapshot", "x.snapshot", "--out", "p.zip")
    assert 0 == made.code, made.stdout.decode()
    again = assay("reperform", "p.zip")
    assert again.code in {0, 3}, again.stdout
    return contents(home / "p.zip")


def results(assay: Assay, *arguments: str) -> dict[str, tuple[str, str]]:
    """The policy and message of each finding of a scan, by fingerprint."""
    report = assay("scan", *arguments, "-o", "json").report
    assert "internal error" not in str(report["gaps"])
    return {
        as_text(dig(finding, "fingerprint")): (as_text(dig(finding, "policy")), as_text(dig(finding, "message")))
        for finding in as_list(report["findings"])
    }


@pytest.mark.parametrize("resource", GROUPS)
def test_a_snapshot_contains_no_secret_and_replays(assay: Assay, home: Path, resource: str) -> None:
    """A replay has no finding that the scan did not have, and what both have is equal."""
    cells = cells_of(resource)
    live = results(assay, *written(home, cells), "--snapshot", "x.snapshot")
    replayed = results(assay, "--from", "x.snapshot")

    assert len(live) > 10
    assert {} == {key: (live.get(key), found) for key, found in replayed.items() if live.get(key) != found}
    assert set() == leaked_cells(contents(home / "x.snapshot"), cells)
    assert set() == leaked_cells(packet(assay, home), cells)


def test_a_snapshot_contains_no_secret_of_another_object(assay: Assay, home: Path) -> None:
    """The objects that Kyverno's expressions read are redacted as well, and the policies that read them are skipped."""
    cells = [Cell(source, done) for source in READ for done in ALWAYS]
    written_for_readers(home, cells)
    live = results(assay, "--from", "in", "--snapshot", "x.snapshot")
    replayed = results(assay, "--from", "x.snapshot")

    assert len(live) > 10
    assert {} == replayed
    assert set() == leaked_cells(contents(home / "x.snapshot"), cells)
    assert set() == leaked_cells(packet(assay, home), cells)
