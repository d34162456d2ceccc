"""`make conformance`: one line per recorded file; differences go to `build/conformance/NAME.json`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.conformance.cases import Comparison, Result, folder, load
from tests.conformance.delta import compare_delta
from tests.conformance.expressions import compare_evaluations
from tests.conformance.kyverno import compare_kyverno
from tests.conformance.mutations import compare_mutations
from tests.conformance.policies import compare_expressions, compare_matching, compare_policies, compare_rejected

COMPARISONS: dict[str, Comparison | None] = {
    "policies": compare_policies,
    "matching": compare_matching,
    "expressions": compare_expressions,
    "rejected-expressions": compare_rejected,
    "probes": compare_evaluations,
    "random": compare_evaluations,
    "costs": compare_evaluations,
    "mutations": compare_mutations,
    "kyverno": compare_kyverno,
    "delta-1.37": compare_delta,
}
_MOST_DIFFERENCES = 500


@dataclass(frozen=True, slots=True)
class Score:
    """How many cases of a file came out right."""

    cases: int
    right: int
    text: int
    cost: int | None
    skipped: int

    def __str__(self) -> str:
        cost = "-" if self.cost is None else self.cost
        return f"cases={self.cases} class={self.right} text={self.text} cost={cost} skipped={self.skipped}"


def score(results: Iterable[Result], report: Path) -> Score:
    """Add up the comparisons of one file and write down what differs."""
    cases = right = text = skipped = cost = 0
    metered = False
    differences: list[dict[str, object]] = []
    for result in results:
        cases += 1
        right += result.right
        text += result.right and result.same_text
        skipped += result.skipped
        metered |= result.cost is not None
        cost += result.cost is True
        if (
            not (result.right and result.same_text and result.cost is not False)
            and len(differences) < _MOST_DIFFERENCES
        ):
            differences.append(asdict(result))
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps(differences, indent=1, default=repr))
    return Score(cases, right, text, cost if metered else None, skipped)


def run(cases: Path, only: str = "") -> dict[str, Score | None]:
    """Score every known file of a folder; None for one whose feature is not there."""
    found: dict[str, Score | None] = {}
    for name, comparison in COMPARISONS.items():
        path = cases / f"{name}.json.gz"
        if path.exists() and only in ("", name):
            found[name] = comparison and score(comparison(load(path)), Path("build/conformance") / f"{name}.json")
    return found


def main() -> int:
    """Print one line per file."""
    parser = argparse.ArgumentParser(prog="make conformance")
    parser.add_argument("--cases", type=Path, default=folder())
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if not arguments.cases.is_dir():
        sys.stderr.write(f"no recorded verdicts in {arguments.cases}; name their folder with CASES=DIR\n")
        return 0
    for name, result in run(arguments.cases, arguments.only).items():
        sys.stdout.write(f"{name} {result or 'unsupported'}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
