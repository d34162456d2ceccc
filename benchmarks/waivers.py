"""Row waivers: the report of a scan with 100,000 findings and 2,000 waivers, and the same report without waivers.

The waivers name objects, workloads, namespaces and labels, a quarter each, and half of them apply. Measured is processor time.
"""

from __future__ import annotations

import json
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson

from benchmarks.bulk import POLICIES, write_cluster
from benchmarks.live import ASSAY, rounds, sizes
from benchmarks.measured import medians, say
from benchmarks.processes import timed
from scanner.model.json import Json, as_object, as_text, dig

_GOAL: Final = 1.2
_WAIVERS: Final = 2_000
_FORMATS: Final = ("table", "json")


def main() -> None:
    """Make a scan and waivers, and compare the reports in turns."""
    for size in sizes("10000"):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            write_cluster(home / "cluster", size)
            database = ["--db", str(home / "assay.db")]
            timed([str(ASSAY), "scan", "--from", str(home / "cluster"), *database, "-q"], home)
            timed([str(ASSAY), "report", *database, "-o", "json"], home)
            _write_waivers(home / "waivers.yaml", orjson.loads((home / "out").read_bytes())["findings"])
            stored = ["--db", str(home / "stored.db")]
            files = ["--waivers", str(home / "waivers.yaml")]
            timed([str(ASSAY), "scan", "--from", str(home / "cluster"), *stored, *files, "-q"], home)
            worst = 0.0
            for form in _FORMATS:
                sides = {
                    "without": [*database, "-o", form],
                    "stored": [*stored, "-o", form],
                    "from a file": [*database, "-o", form, *files],
                }
                times = medians(
                    {name: _used([str(ASSAY), "report", *flags], home) for name, flags in sides.items()}
                    for _ in range(rounds())
                )
                say(f"{size * POLICIES:,} findings, -o {form}: {', '.join(f'{t:.2f} s {n}' for n, t in times.items())}")
                worst = max(worst, times["stored"] / times["without"])
            say(f"bench=waivers ratio={worst:.2f} goal=<={_GOAL:.2f} rounds={rounds()} (stored; processor time)")


def _used(command: list[str], home: Path) -> float:
    """Return the processor time of a command in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    timed(command, home)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _write_waivers(path: Path, several: Sequence[Json]) -> None:
    """Write the waivers as JSON documents; every second one is for a policy, but names no object of the scan."""
    step = max(1, len(several) // _WAIVERS)
    with path.open("w") as out:
        for number in range(_WAIVERS):
            finding = several[number * step % len(several)]
            name = as_text(dig(finding, "object", "name")) + ("-gone" if number % 2 else "")
            namespace = as_text(dig(finding, "object", "namespace"))
            places: list[dict[str, Json]] = [
                {"namespace": namespace, "object": f"ConfigMap/{name}"},
                {"namespace": namespace, "workload": name},
                {"namespace": f"{namespace}-{number}", "check": as_text(dig(finding, "check", "id"))},
                {"selector": {"matchLabels": {"app": name}}},
            ]
            spec = {
                "policy": as_text(as_object(finding).get("policy")),
                **places[number // 2 % 4],
                "reason": "legacy",
                "requestedBy": "ann",
                "approvedBy": "bob",
                "until": "2999-12-31",
            }
            document = {"apiVersion": "assay.dev/v1alpha1", "kind": "Waiver", "metadata": {"name": f"w{number}"}}
            out.write(f"---\n{json.dumps({**document, 'spec': spec})}\n")
