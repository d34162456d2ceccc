"""Damages files of SQLite databases, and reads every answer that Assay gives from them.

`python -m tests.store.damage 60` repeats the experiment of ADR 57 with that many files, and prints each flip that changes an answer
without being named.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scanner.store.upkeep.views import VIEWS
from tests.command import assay_here

SEED: Final = 37
_MOST_BITS: Final = 8


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file with flipped bits: what `db check` printed, if it ended with a problem, and which answers differ."""

    places: tuple[int, ...]
    named: bool
    printed: str
    changed: tuple[str, ...]
    internal: tuple[str, ...]


def record(folder: Path) -> Path:
    """A database with four scans of manifests: findings that stay, change, are fixed, and appear."""
    manifests, database = folder / "manifests", folder / "assay.db"
    manifests.mkdir()
    (manifests / "policies.yaml").write_text(_POLICIES, "utf-8")
    for fixed, changed, more in ((0, 0, 0), (0, 0, 0), (15, 0, 5), (15, 10, 10)):
        (manifests / "objects.yaml").write_text("\n---\n".join(_deployments(fixed, changed, more)), "utf-8")
        scan = "scan", "--from", manifests, "--db", database.name, "--cluster-name", "shop", "-o", "csv", "--quiet"
        assert assay_here(*scan, home=folder).code in {0, 3}
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database


def _deployments(fixed: int, changed: int, more: int) -> Iterator[str]:
    for number in range(200 + more):
        replicas = 2 if number < fixed else 30 if number < fixed + changed else 9
        labels = {"app": f"web-{number}", "team": f"team-{number % 7}"}
        yield json.dumps(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": f"web-{number}", "namespace": f"shop-{number % 5}", "labels": labels},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": {"app": f"web-{number}"}},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "web", "image": f"registry.example/web:{number}"}]},
                    },
                },
            }
        )


_POLICIES: Final = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations:
  - expression: object.spec.replicas <= 5
    messageExpression: "'deployment ' + object.metadata.name + ' has ' + string(object.spec.replicas) + ' replicas'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas}
spec: {policyName: replicas, validationActions: [Deny]}
"""


def copies(database: Path, folder: Path, count: int, seed: int = SEED) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """Copies of a database with 1 to 8 flipped bits, and the places of these bits."""
    content = database.read_bytes()
    chosen = random.Random(seed)
    for number in range(count):
        damaged = bytearray(content)
        places = tuple(chosen.randrange(len(content) * 8) for _ in range(chosen.randint(1, _MOST_BITS)))
        for place in places:
            damaged[place >> 3] ^= 1 << (place & 7)
        copy = folder / f"damaged-{number}.db"
        copy.write_bytes(damaged)
        yield copy, places


def answers(database: Path, scans: list[str], subjects: list[str]) -> dict[str, str]:
    """What reports, explanations, trends and views answer."""
    home = database.parent
    commands = {
        **{f"report {scan}": ("report", scan, "-o", "json") for scan in scans},
        **{f"explain {subject}": ("explain", subject) for subject in subjects},
        "diff": ("diff", scans[0], scans[-1], "-o", "json"),
        "findings": ("findings", "-o", "json"),
        "trend": ("trend", "-o", "json", "--days", "30"),
        "scans": ("scans",),
    }
    found: dict[str, str] = {}
    for name, arguments in commands.items():
        ran = assay_here(*arguments, "--db", database, home=home)
        found[name] = f"{ran.code} {ran.stdout!r} {ran.stderr}"
    for view in VIEWS:
        try:
            with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
                found[view] = repr(sorted(map(repr, connection.execute(f"SELECT * FROM {view}"))))
        except (sqlite3.Error, ValueError) as error:
            found[view] = repr(error)
    return {name: text.replace(str(database), "DATABASE") for name, text in found.items()}


def subjects_of(database: Path) -> tuple[list[str], list[str]]:
    """The ids of the scans, and some subjects to explain."""
    with closing(sqlite3.connect(database)) as connection:
        scans = [scan for (scan,) in connection.execute("SELECT id FROM scans ORDER BY number")]
        wanted = "SELECT fingerprint FROM findings WHERE superseded IS NULL ORDER BY id"
        findings = [fingerprint.hex()[:12] for (fingerprint,) in connection.execute(wanted)]
    return scans, ["replicas", findings[0], findings[-1]]


def experiment(folder: Path, count: int, seed: int = SEED) -> Iterator[Damaged]:
    """Each damaged file."""
    database = record(folder)
    scans, subjects = subjects_of(database)
    before = answers(database, scans, subjects)
    for copy, places in copies(database, folder, count, seed):
        checked = assay_here("db", "check", "--db", copy, home=folder)
        now = answers(copy, scans, subjects)
        changed = tuple(name for name, text in before.items() if now[name] != text)
        internal = tuple(name for name, text in now.items() if "internal error" in text or "Traceback" in text)
        internal += ("db check",) if "internal error" in checked.stderr else ()
        yield Damaged(places, checked.code != 0, checked.stdout.decode() + checked.stderr, changed, internal)
        copy.unlink()


def main(count: int, seed: int) -> None:
    """Print the result of the experiment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = list(experiment(folder, count, seed))
        content = (folder / "assay.db").read_bytes()
    for result in results:
        if result.internal or (result.changed and not result.named):
            around = [content[max(place // 8 - 24, 0) : place // 8 + 24] for place in result.places]
            print(result.places, result.changed, result.internal, around)  # noqa: T201 - the output of a script
    changing = [result for result in results if result.changed]
    named = sum(result.named for result in results)
    missed = sum(not result.named for result in changing)
    print(f"{count} files: {named} named, {len(changing)} with another answer, of which {missed} not named")  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SEED)
