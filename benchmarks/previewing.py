"""Row 15: `assay preview` of one edited policy among 42, beside a scan of the same objects: seconds, and peaks of memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from statistics import median

import orjson

from benchmarks.live import ASSAY, Live, filled, rounds, sizes
from benchmarks.loader import store
from benchmarks.objects import NAMESPACES, WORDS, Body, Made
from benchmarks.policies import policies
from benchmarks.processes import peak
from scanner.model.json import JsonObject, as_list, as_object, dig

FACTOR = 1.6
MEMORY = 1.1
"""Memory as in a scan: two runs of one scan differ by less."""
_POLICY = "owner"
_INSTANCE = "object.metadata.labels['app.kubernetes.io/instance']"
_SCAN = "scan"
_CASES = {
    "nothing differs": "true",
    "a few break": f"!{_INSTANCE}.endsWith('00')",
    "half break": f"!{_INSTANCE}.matches('[0-7]$')",
}
"""What the edited policy asks besides. Names of objects end with a hexadecimal digit."""


def main() -> None:
    """Run the scan and each preview in turn, and then once more for their memory."""
    worst = 0.0
    for size in sizes("20000"):
        with filled(size) as live:
            store(live.server, _make_accounts())
            seconds: dict[str, list[float]] = {case: [] for case in (_SCAN, *_CASES)}
            words: dict[str, str] = {}
            for _ in range(rounds()):
                for case, measured in seconds.items():
                    measured.append(live.timed(_make_command(live, case)))
                    words[case] = live.described() if case == _SCAN else _describe(live)
            memory = {case: peak(_make_command(live, case), live.home) for case in seconds}
        scan = median(seconds[_SCAN])
        for case, measured in seconds.items():
            print(f"{size:,}, {case}: {words[case]}")
            print(
                f"  {median(measured):.2f} s {[f'{each:.2f}' for each in measured]}, {median(measured) / scan:.2f} x the scan"
            )
            print(f"  peak {memory[case]:.0f} MiB, {memory[case] / memory[_SCAN]:.2f} x the scan")
        worst = max(worst, *(median(seconds[case]) / scan / FACTOR for case in _CASES))
        worst = max(worst, *(memory[case] / memory[_SCAN] / MEMORY for case in _CASES))
    print(f"bench=15 ratio={worst:.2f} goal=1.00 rounds={rounds()}")


def _make_accounts() -> Iterator[Made]:
    """The service accounts of the pods: without its account no pod could be created by any rules."""
    for number, name in product(range(NAMESPACES), WORDS):
        path = f"/api/v1/namespaces/team-{number:02}/serviceaccounts"
        metadata: JsonObject = {"name": name, "labels": {"owner": f"team-{name}"}}
        body: Body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        yield Made(path, {**body, "automountServiceAccountToken": False})


def _make_command(live: Live, case: str) -> list[str]:
    if case == _SCAN:
        return live.scan()
    edited = next(body for body in policies() if dig(body, "metadata", "name") == _POLICY)
    spec = as_object(edited["spec"])
    check = as_object(as_list(spec["validations"])[0])
    validations = [{**check, "expression": f"{check['expression']} && {_CASES[case]}"}]
    path = live.home / "edited.json"
    path.write_text(json.dumps({**edited, "spec": {**spec, "validations": validations}}))
    return [str(ASSAY), "preview", "--kubeconfig", str(live.server.kubeconfig), "-f", str(path), "-o", "json", "-q"]


def _describe(live: Live) -> str:
    """A sentence with the objects and workloads of the last preview."""
    report = orjson.loads((live.home / "out").read_bytes())
    return f"{report['examined']:,} objects examined, {len(report['objects']):,} differ, {len(report['workloads']):,} workloads break"
