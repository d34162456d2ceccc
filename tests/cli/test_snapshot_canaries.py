"""No secret is in a snapshot or a packet: the canaries of reports, searched in the raw bytes and in the content of every member."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from scanner.model.json import as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.test_canaries import (
    CELLS,
    ENTRIES,
    READ,
    READING,
    RESOURCES,
    SOURCES,
    WIDGETS,
    Cell,
    documents,
    leaked_cells,
    policies,
    read_documents,
    reading,
    thing,
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


@pytest.mark.parametrize("source", SOURCES)
def test_a_snapshot_contains_no_secret_and_replays(assay: Assay, home: Path, source: str) -> None:
    """A replay has no finding that the scan did not have, and what both have is equal."""
    cells = [Cell(of, done) for of, done in CELLS if of == source]
    (home / "in").mkdir()
    crd = [WIDGETS] if RESOURCES.get(source) == "widgets" else []
    manifests = [manifest for cell in cells for manifest in (*documents(cell), *policies(cell))]
    (home / "in" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*crd, *manifests]}))
    user = [part for cell in cells for part in ("--as-user-extra", f"example.com/{cell.name}={cell.canary}")]
    requester = ["--as-user", "jane", *user] if source == "user" else []
    live = results(assay, "--from", "in", "--snapshot", "x.snapshot", *requester)
    replayed = results(assay, "--from", "x.snapshot")

    assert len(live) > 10
    assert {} == {key: (live.get(key), found) for key, found in replayed.items() if live.get(key) != found}
    assert set() == leaked_cells(contents(home / "x.snapshot"), cells)
    assert set() == leaked_cells(packet(assay, home), cells)


@pytest.mark.parametrize("source", READ)
def test_a_snapshot_contains_no_secret_of_another_object(assay: Assay, home: Path, source: str) -> None:
    """The objects that Kyverno's expressions read are redacted as well, and the policies that read them are skipped."""
    cells = [Cell(source, done) for done in ("upper", "as-it-is")]
    (home / "in").mkdir()
    manifests = [
        manifest
        for cell in cells
        for manifest in (*read_documents(cell), *(each for way in READING for each in reading(cell, way)))
    ]
    everything = [WIDGETS, *ENTRIES, thing("v1", "Namespace", "shop"), *manifests]
    (home / "in" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": everything}))
    live = results(assay, "--from", "in", "--snapshot", "x.snapshot")
    replayed = results(assay, "--from", "x.snapshot")

    assert len(live) > 10
    assert {} == replayed
    assert set() == leaked_cells(contents(home / "x.snapshot"), cells)
    assert set() == leaked_cells(packet(assay, home), cells)
