"""The restore drill of `docs/database.md`: its commands run as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from scanner.model.json import as_list, dig
from scanner.store import open_reader, open_store
from tests.command import ASSAY, environment
from tests.docs.pages import ROOT
from tests.store.made import Round, finding

PAGE = (ROOT / "docs" / "database.md").read_text()
CHAPTER = PAGE.partition("### Backups\n")[2].partition("\n### ")[0]
DRILL, RESTORATION = (
    "".join(f"{line.removeprefix('$ ')}\n" for line in block.splitlines())
    for block in re.findall(r"^```console\n(.*?)^```", CHAPTER, re.MULTILINE | re.DOTALL)
)


def run(commands: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run commands as a user types them, up to the first one that fails."""
    path = f"{ASSAY.parent}{os.pathsep}{os.environ['PATH']}"
    variables = {**environment(home), "ASSAY_DB": "assay.db", "PATH": path}
    command = ["sh", "-e", "-c", commands]
    return subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture
def scanned(tmp_path: Path) -> Path:
    """A folder with a database of one scan, and an empty folder for backups."""
    (tmp_path / "backups").mkdir()
    with open_store(str(tmp_path / "assay.db")) as store:
        Round((finding("a"),)).record(store, 1)
    return tmp_path


def test_the_drill_restores_the_last_report(scanned: Path) -> None:
    """The report of the copy is that of the database, and nothing is left beside the copy."""
    ran = run(DRILL, scanned)
    assert (0, "") == (ran.returncode, "".join(line for line in ran.stderr.splitlines() if "schema" not in line))
    assert "The database has no problem." in ran.stdout
    assert [] == [path.name for path in scanned.iterdir() if path.name.startswith("drill") or path.suffix == ".json"]
    assert 1 == len(list((scanned / "backups").iterdir()))


def test_a_damaged_copy_fails_the_drill(scanned: Path) -> None:
    """The drill would not notice damage without its check."""
    without_cleanup = DRILL.replace('cp "$newest" drill.db', 'cp "$newest" drill.db; truncate -s 40000 drill.db')
    assert 4 == run(without_cleanup, scanned).returncode


def test_the_restoration_brings_the_scans_back(scanned: Path) -> None:
    """Also if the damaged file has a log beside it; scans go on."""
    assert 0 == run(DRILL, scanned).returncode
    (scanned / "assay.db").write_bytes(b"damaged")
    (scanned / "assay.db-wal").write_bytes(b"of the damaged file")
    ran = run(RESTORATION, scanned)
    assert 0 == ran.returncode, ran.stderr
    with open_store(str(scanned / "assay.db")) as store:
        Round((finding("a"), finding("b"))).record(store, 2)
    with open_reader(str(scanned / "assay.db")) as reader:
        assert ["scan-2", "scan-1"] == [scan.id for scan in reader.scans()]


def test_the_pod_of_the_drill_mounts_both_claims() -> None:
    """Those of the chart and of kustomize, under the paths that the page names."""
    page = (ROOT / "docs" / "deploy.md").read_text()
    [pod] = [
        each for each in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if "assay-drill" in each
    ]
    volumes = as_list(dig(yaml.safe_load(pod), "spec", "volumes"))
    assert {"assay", "assay-backup"} == {dig(each, "persistentVolumeClaim", "claimName") for each in volumes}
