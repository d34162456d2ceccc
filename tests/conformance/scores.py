"""The numbers of right cases of a file, and their floors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.conformance.cases import RECORDED, Comparison, Result
from tests.conformance.delta import compare_delta
from tests.conformance.expressions import compare_evaluations
from tests.conformance.kyverno import compare_kyverno
from tests.conformance.mutations import compare_mutations
from tests.conformance.pod_security import compare_pod_security
from tests.conformance.policies import compare_expressions, compare_matching, compare_policies, compare_rejected

COMPARISONS: dict[str, Comparison] = {
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
    "pod-security": compare_pod_security,
}
_MOST_DIFFERENCES = 500


@dataclass(frozen=True, slots=True)
class Score:
    """The numbers of cases of a file: all, those with the right class, text and cost, and skipped ones."""

    cases: int
    right: int
    text: int
    cost: int | None
    skipped: int

    def __str__(self) -> str:
        cost = "-" if self.cost is None else self.cost
        return f"cases={self.cases} class={self.right} text={self.text} cost={cost} skipped={self.skipped}"

    def figures(self) -> dict[str, int]:
        """Return the figures that a floor holds."""
        cost = {} if self.cost is None else {"cost": self.cost}
        return {"cases": self.cases, "class": self.right, "text": self.text, **cost}


def score(results: Iterable[Result], report: Path) -> Score:
    """Return the score of a file's comparisons, and write the differences to a report."""
    cases = right = text = skipped = cost = 0
    metered = False
    differences: list[dict[str, Any]] = []
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


def floors_of(folder: Path) -> Path:
    """Return the file that holds the floors of a folder: its own for the repository's verdicts."""
    return RECORDED / "floors.json" if folder == RECORDED else Path(__file__).parents[1] / "conformance-floors.json"


def floors(folder: Path) -> dict[str, Any]:
    """Return the floors of a folder, by the names of the files: of the whole file and, in order, of its `parts`."""
    loaded: dict[str, Any] = json.loads(floors_of(folder).read_text(encoding="utf-8"))
    return loaded
