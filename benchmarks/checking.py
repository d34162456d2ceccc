"""Row 16: `assay check` of one manifest, from exec to exit, against a bare client that reads what decides; and of 500 manifests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

from benchmarks.live import ASSAY, Live, filled, rounds, sizes

FACTOR, SECONDS, MANY_SECONDS = 3.0, 1.0, 5.0
MANY = 500
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_READS = (
    "/api",
    "/apis",
    "/api/v1/namespaces",
    f"{_GROUP}/validatingadmissionpolicies",
    f"{_GROUP}/validatingadmissionpolicybindings",
    f"{_GROUP}/mutatingadmissionpolicies",
    f"{_GROUP}/mutatingadmissionpolicybindings",
)


def main() -> None:
    worst = 0.0
    for size in sizes("20000"):
        with filled(size) as live:
            one, many = (_write(live.home / f"{number}.json", number) for number in (1, MANY))
            bares, singles, hundreds = [], [], []
            for _ in range(rounds()):
                bares.append(live.timed(_bare(live)))
                singles.append(live.timed(_check(live, one)))
                hundreds.append(live.timed(_check(live, many)))
            print(f"{size:,}: one manifest {median(singles):.2f} s {[f'{seconds:.2f}' for seconds in singles]}")
            print(f"  {MANY} manifests {median(hundreds):.2f} s {[f'{seconds:.2f}' for seconds in hundreds]}")
            print(f"  bare client {median(bares):.2f} s {[f'{seconds:.2f}' for seconds in bares]}")
            allowed = min(FACTOR * median(bares), SECONDS)
            worst = max(worst, median(singles) / allowed, median(hundreds) / MANY_SECONDS)
            print(f"  allowed {allowed:.2f} s, and {MANY_SECONDS} s for {MANY}")
    print(f"bench=16 ratio={worst:.2f} goal=1.00 rounds={rounds()}")


def _write(path: Path, number: int) -> Path:
    """A list of Deployments, which policies of the cluster match."""
    container = {"name": "web", "image": "registry.example.com/web:1", "resources": {"limits": {"memory": "64Mi"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    items = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"web-{index}"}, "spec": spec}
        for index in range(number)
    ]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def _check(live: Live, manifests: Path) -> list[str]:
    """The command, which ends with code 0 for every decision of the policies."""
    check = f"{ASSAY} check -f {manifests} --kubeconfig {live.server.kubeconfig} -o json; test $? -ne 2 -a $? -ne 4"
    return ["/bin/sh", "-c", check]


def _bare(live: Live) -> list[str]:
    token = live.home / "token"
    token.write_text(live.server.token)
    return [sys.executable, "-m", "benchmarks.bare", live.server.url, str(live.server.ca), str(token), *_READS]
