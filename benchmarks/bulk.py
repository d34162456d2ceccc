"""Row 10: findings in bulk. 50,000 objects from files, 10 policies that all of them violate, messages that name the object.

Measured are a first scan into a new database, a second scan with nothing changed, the peak memory of a first scan, and the
bytes of the database after the first scan. The anchor decodes the same pages and inserts as many rows into a table.
"""

from __future__ import annotations

import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import orjson

from benchmarks.live import ASSAY, rounds, sizes
from benchmarks.objects import MAKERS, NAMESPACES, WORDS, namespaces
from benchmarks.processes import peak, timed
from scanner.model.json import Json, JsonObject, as_object

FACTOR, MEBIBYTES, BYTES, AGAIN = 8.0, 300.0, 250.0, 0.6
POLICIES = 10
_PAGE = 500
_VERSION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class _Figures:
    """The figures of a round, in seconds and bytes."""

    bare: float
    first: float
    again: float
    size: int


def main() -> None:
    """Measure at every size."""
    worst = 0.0
    for size in sizes("50000"):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            write_cluster(home / "cluster", size)
            worst = max(worst, _measured(home, size * POLICIES))
    print(f"bench=10 ratio={worst:.2f} goal=1.00 rounds={rounds()}")


def _measured(home: Path, findings: int) -> float:
    figures = [_round(home) for _ in range(rounds())]
    _reject_other_findings(home, findings)
    memory = peak(_scan(home, new=True), home)
    bare, first = median(each.bare for each in figures), median(each.first for each in figures)
    again = median(each.again for each in figures)
    size = median(each.size for each in figures) / findings
    print(f"{findings:,} findings: first scan {first:.2f} s {[f'{each.first:.2f}' for each in figures]}")
    print(
        f"  bare insert {bare:.2f} s {[f'{each.bare:.2f}' for each in figures]}: {first / bare:.1f} x, goal {FACTOR:.0f} x"
    )
    print(
        f"  second scan {again:.2f} s {[f'{each.again:.2f}' for each in figures]}: {again / first:.2f} x, goal {AGAIN} x"
    )
    print(
        f"  peak {memory:.0f} MiB, goal {MEBIBYTES:.0f} MiB; {size:.0f} bytes of database a finding, goal {BYTES:.0f}"
    )
    return max(first / bare / FACTOR, again / first / AGAIN, memory / MEBIBYTES, size / BYTES)


def _round(home: Path) -> _Figures:
    """Measure the anchor, a first scan and a second scan."""
    for path in home.glob("bare.db*"):
        path.unlink()
    insert = [
        sys.executable,
        "-m",
        "benchmarks.bare_insert",
        str(home / "cluster"),
        str(home / "bare.db"),
        str(POLICIES),
    ]
    bare = timed(insert, home)
    first = timed(_scan(home, new=True), home)
    size = sum(path.stat().st_size for path in home.glob("assay.db*"))
    return _Figures(bare, first, timed(_scan(home), home), size)


def _scan(home: Path, *, new: bool = False) -> list[str]:
    """Return the command of a scan of the files, by default into the existing database."""
    for path in home.glob("assay.db*") if new else ():
        path.unlink()
    return [str(ASSAY), "scan", "--from", str(home / "cluster"), "--db", str(home / "assay.db"), "-q"]


def _reject_other_findings(home: Path, findings: int) -> None:
    """End the benchmark unless every policy denied every object: its figures would be of no use."""
    timed([str(ASSAY), "report", "--db", str(home / "assay.db"), "-o", "json"], home)
    score = orjson.loads((home / "out").read_bytes())["score"]
    if (findings, 0) != (score["decided"], score["passed"]):
        sys.exit(f"{score['decided'] - score['passed']:,} findings instead of {findings:,}")


def write_cluster(folder: Path, count: int) -> None:
    """Write pages of config maps as a server stores them, their namespaces, and the policies."""
    folder.mkdir()
    dice = random.Random(1)
    for start in range(0, count, _PAGE):
        items = written_objects(dice, range(start, min(start + _PAGE, count)))
        _page(folder / f"page-{start // _PAGE:05}.json", items)
    _page(folder / "namespaces.json", [made.body for made in namespaces()])
    _page(
        folder / "policies.json", [document for number in range(POLICIES) for document in _policy(f"policy-{number}")]
    )


def _page(path: Path, items: list[JsonObject]) -> None:
    path.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def written_objects(dice: random.Random, numbers: range) -> list[JsonObject]:
    """Make the config maps with these numbers, in namespaces by chance."""
    return [_object(dice, number) for number in numbers]


def _object(dice: random.Random, number: int) -> JsonObject:
    namespace = f"team-{dice.randrange(NAMESPACES):02}"
    body = MAKERS["ConfigMap"](dice, f"{dice.choice(WORDS)}-{number:06x}", namespace).body
    uid = f"{number:08x}-0000-4000-8000-000000000000"
    metadata: JsonObject = {**as_object(body["metadata"]), "uid": uid, "resourceVersion": str(number + 1)}
    return {**body, "metadata": metadata}


def _policy(name: str) -> list[JsonObject]:
    rules: list[Json] = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    ]
    validation: JsonObject = {
        "expression": f"'{name}' in object.data",
        "messageExpression": f"'{name} denies ' + object.metadata.name",
    }
    spec: JsonObject = {"matchConstraints": {"resourceRules": rules}, "validations": [validation]}
    bound: JsonObject = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": _VERSION, "kind": f"ValidatingAdmissionPolicy{suffix}", "metadata": {"name": name}, "spec": own}
        for suffix, own in (("", spec), ("Binding", bound))
    ]
