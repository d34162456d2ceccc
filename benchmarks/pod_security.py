"""Row 14: a scan of a live API server whose namespaces are all *restricted*, against the same scan without Pod Security.

One pod in a hundred violates a check. `FAULT=0.01` is the share of the other rows: then six in a hundred do.
"""

from __future__ import annotations

import os
from statistics import median

from benchmarks.live import Live, filled, rounds, sizes
from scanner.model.json import as_list, as_object, as_text, dig
from scanner.policies.pod_security.labels import Mode

GOAL = 1.1
_FAULT = 0.0017
"""Pods violate a check by one of six fields."""


def main() -> None:
    worst = 0.0
    for size in sizes("20000"):
        with filled(size, float(os.environ.get("FAULT", _FAULT))) as live:
            _restrict(live)
            without, judged = [], []
            for _ in range(rounds()):
                without.append(live.timed([*live.scan(), "--no-pod-security"]))
                judged.append(live.timed(live.scan()))
            print(f"{size:,}: {live.described()}")
            print(f"  with Pod Security {median(judged):.2f} s {[f'{seconds:.2f}' for seconds in judged]}")
            print(f"  without {median(without):.2f} s {[f'{seconds:.2f}' for seconds in without]}")
            worst = max(worst, median(judged) / median(without))
    print(f"bench=14 ratio={worst:.2f} goal={GOAL:.2f} rounds={rounds()}")


def _restrict(live: Live) -> None:
    """Label every namespace."""
    path = "/api/v1/namespaces"
    for namespace in as_list(dig(as_object(live.server.request("GET", path).body), "items")):
        patch = {"metadata": {"labels": {Mode.ENFORCE.level_key: "restricted"}}}
        name = as_text(dig(namespace, "metadata", "name"))
        answer = live.server.client.request(
            "PATCH", f"{path}/{name}", patch, content_type="application/merge-patch+json"
        )
        if answer.status != 200:
            raise SystemExit(f"{name} was not labelled: {answer.body}")
