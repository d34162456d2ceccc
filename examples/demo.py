"""Thirty nights of a small cluster and a scan of today, with its report and its changes: what `make demo` runs.

The nights are scans of the example cluster as it was then, made now with the dates of the past: trend, ages and causes are those that
a month of scans would show.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scanner.cli.scanning.inputs import read_policy_files
from scanner.cli.scanning.named_cluster import NamedCluster
from scanner.cluster.files.snapshot import SnapshotCluster
from scanner.cluster.yaml import load
from scanner.documents.pod_security import read_pod_security
from scanner.model.population import DEFAULT_KEYS
from scanner.model.scans.method import Method
from scanner.model.scans.scan import ScanState
from scanner.policies.kyverno.family import KyvernoOptions
from scanner.policies.language import with_options
from scanner.policies.pod_security.language import PodSecurity
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import SqlStore, open_store

ROOT = Path(__file__).parents[1]
OUTPUT = Path("build") / "demo"
EXAMPLES = Path("examples")
ASSAY = os.path.relpath(Path(sys.executable).with_name("assay"), ROOT)
"""The path from the folder in which `make demo` runs: the summary recommends commands that begin with it."""
DATABASE = "build/demo/assay.db"
CONFIGURATION = "examples/assay.yaml"
CLUSTER = "shop"
POLICIES = ("build/demo/policies", "examples/policies-mutating", "examples/policies-kyverno")
NIGHTS = 30
EDITED_POLICY = 4
"""The nights ago at which the limit of memory was lowered."""
BROKEN_NIGHT = 17
"""The nights ago at which a file could not be read: that scan is incomplete."""
CHANGES = {
    24: ("payments.yaml",),
    16: ("02-access.yaml",),
    12: ("shop.yaml",),
    6: ("staging.yaml", "running.json"),
    3: ("data.yaml",),
    1: ("00-namespaces.yaml", "campaign.yaml"),
}
"""The files of the cluster that changed, by the nights ago."""
WAIVER = """\
apiVersion: assay.dev/v1alpha1
kind: Waiver
metadata:
  name: fraud-scorer-memory
spec:
  policy: memory-limits
  namespace: payments
  workload: Deployment/fraud-scorer
  reason: The vendor sets the limits in the release of next month.
  requestedBy: dana
  approvedBy: bob
  ticket: SEC-1234
  from: {begin:%Y-%m-%d}
  until: {end:%Y-%m-%d}
"""


class Clock:
    """A clock that stands still at a moment."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def __call__(self) -> datetime:
        """The time."""
        return self.moment


def main() -> None:
    """Start from nothing in a folder, by default the checkout, record the nights, scan today, and print what changed in a week."""
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else ROOT)
    now = datetime.now(UTC)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    say(f"1. {NIGHTS} nights of the example cluster, one scan each.")
    record_nights(now)
    say("2. The cluster of today: every object against every bound policy.")
    write_state(0)
    write_waiver(now)
    scan = ["scan", "-q", "--config", CONFIGURATION, "--from", "build/demo/cluster", *list_policy_flags()]
    assay(
        *scan, "--waivers", "build/demo/waivers.yaml", *("--cluster-name", CLUSTER), *DB, "--html", "build/demo/report"
    )
    say("3. What changed in a week, and why.")
    assay("diff", "last~7", "last", "--limit", "2", *DB, *("--config", CONFIGURATION))
    say(f"Open {OUTPUT.resolve() / 'report' / 'index.html'}")


DB = ("--db", DATABASE)


def record_nights(now: datetime) -> None:
    """Scan the cluster of each night into the database, the earliest first."""
    with open_store(DATABASE, clock := Clock(now)) as store:
        for night in range(NIGHTS, 0, -1):
            clock.moment = now - timedelta(days=night)
            write_state(night)
            record_night(store, clock, f"{clock.moment:%Y%m%dT%H%M%SZ}-{night:06x}")


def record_night(store: SqlStore, clock: Clock, scan_id: str) -> None:
    """Scan the cluster as it is written, with the date of a clock, as a run of the command."""
    night = store.begin_run(CLUSTER, ["assay", "scan"])
    store.begin_scan_of_run(night, scan_id)
    cluster = NamedCluster(SnapshotCluster([OUTPUT / "cluster"], name=CLUSTER), CLUSTER)
    scan = run(cluster, store, make_options(), scan_id=scan_id, clock=clock)
    complete = scan.state is ScanState.COMPLETE
    store.end_run(
        night, exit_code=0 if complete else 3, reason="" if complete else "the scan is incomplete", scan_id=scan_id
    )


def make_options() -> Options:
    """The options that the flags of today's scan stand for: only then are the scans comparable."""
    files = read_policy_files([Path(folder) for folder in POLICIES])
    return Options(
        manifests=files.manifests,
        definitions=files.kinds,
        outside=files.outside,
        cluster_policies=False,
        languages=with_options(
            KyvernoOptions(parse=load), PodSecurity(read_pod_security(EXAMPLES / "pod-security.yaml"))
        ),
        kept_keys=DEFAULT_KEYS.add_keys((), ("example.com/owner",)),
        method=Method(policy_files=POLICIES),
    )


def write_state(night: int) -> None:
    """Write the cluster and its policies as they were so many nights ago; 0 is today."""
    cluster, policies = OUTPUT / "cluster", OUTPUT / "policies"
    for folder in (cluster, policies):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(EXAMPLES / "policies", policies)
    if night > EDITED_POLICY:
        limits = policies / "memory-limits.yaml"
        limits.write_text(limits.read_text("utf-8").replace("2Gi", "4Gi"), "utf-8")
    cluster.mkdir()
    for path in list_files(night):
        shutil.copy(path, cluster)


def list_files(night: int) -> Iterator[Path]:
    """The files of the cluster so many nights ago: those of its later state that had changed by then, else the earlier ones."""
    examples = EXAMPLES / "cluster"
    changed = {name for since, names in CHANGES.items() if night < since for name in names}
    for path in sorted({*(examples / "before").iterdir(), *((examples / "after" / name) for name in changed)}):
        if path.parent.name == "before" and path.name in changed:
            continue
        if not path.name.startswith("broken-") or night == BROKEN_NIGHT:
            yield path


def write_waiver(now: datetime) -> None:
    """Write a waiver that ends in five days."""
    text = WAIVER.format(begin=now, end=now + timedelta(days=5))
    (OUTPUT / "waivers.yaml").write_text(text, "utf-8")


def list_policy_flags() -> list[str]:
    """The flags that name the policies."""
    return [argument for folder in POLICIES for argument in ("-f", folder)]


def assay(*command: str) -> None:
    """Run a command in the checkout; one that fails ends the demo."""
    say(f"$ {ASSAY} {' '.join(command)}")
    code = subprocess.run([ASSAY, *command], check=False).returncode  # noqa: S603 - our own command
    if code:
        sys.exit(f"the command ended with exit code {code}")


def say(text: str) -> None:
    """Print a paragraph at once, so that it stands before what the command prints next."""
    sys.stdout.write(f"\n{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
