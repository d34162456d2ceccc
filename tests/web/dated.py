"""A database with scans of the example cluster on fixed days of three months: what last week, last month and a finding that was fixed need."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfile, copytree
from typing import Final

from scanner.cli.scanning.inputs import read_policy_files
from scanner.cli.scanning.named_cluster import NamedCluster
from scanner.cluster.files.snapshot import SnapshotCluster
from scanner.model.population import DEFAULT_KEYS
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import open_store

NOW: Final = datetime(2026, 11, 27, 12, tzinfo=UTC)
_ROOT: Final = Path(__file__).parents[2] / "examples"
_CLUSTER: Final = _ROOT / "cluster"
_POLICIES: Final = [_ROOT / each for each in ("policies", "policies-mutating", "policies-kyverno")]
_CHANGED: Final = ("payments.yaml", "data.yaml")
"""The files that change a week before the others do."""
SCANS: Final[Mapping[str, str]] = {
    "2026-09-20": "before",
    "2026-10-12": "before",
    "2026-10-26": "before",
    "2026-11-17": "between",
    "2026-11-26": "after",
    "2026-11-27": "after",
}
"""The states of the cluster on the days of scans. The newest scan changes nothing: what is fixed was fixed the day before."""


def scan_on_days(url: str, home: Path, name: str = "shop") -> None:
    """Scan the states, each at ten o'clock; `home` is a folder to work in."""
    options = Options(
        manifests=read_policy_files(_POLICIES).manifests, kept_keys=DEFAULT_KEYS.add_keys((), ("example.com/owner",))
    )
    for day, state in SCANS.items():
        _scan(url, NamedCluster(SnapshotCluster([_folder_of(state, home)]), name), options, day)


def _scan(url: str, cluster: NamedCluster, options: Options, day: str) -> None:
    moment = datetime.fromisoformat(f"{day}T10:00:00+00:00")
    with open_store(url, lambda: moment) as store:
        run(cluster, store, options, scan_id=f"{moment:%Y%m%dT%H%M%SZ}-abcdef", clock=lambda: moment)


def _folder_of(state: str, home: Path) -> Path:
    if state != "between":
        return _CLUSTER / state
    folder = copytree(_CLUSTER / "before", home / state)
    for name in _CHANGED:
        copyfile(_CLUSTER / "after" / name, folder / name)
    return folder
