"""What was once right stays right: the committed floors may only rise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.__main__ import COMPARISONS, score
from tests.conformance.cases import folder, load

FLOORS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "conformance-floors.json").read_text())


@pytest.mark.parametrize("name", sorted(FLOORS))
def test_no_recorded_verdict_is_lost(name: str, tmp_path: Path) -> None:
    """As many recorded verdicts come out right as ever did."""
    path = folder() / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no {path.name} in {folder()}; name the folder of recorded verdicts with ASSAY_CONFORMANCE")
    comparison = COMPARISONS[name]
    assert comparison is not None
    found = score(comparison(load(path)), tmp_path / "differences.json")

    actual = {"cases": found.cases, "class": found.right, "text": found.text}
    floor = FLOORS[name]
    assert floor["cases"] == actual["cases"]
    assert floor["class"] <= actual["class"]
    assert floor["text"] <= actual["text"]
    assert floor.get("cost", 0) <= (found.cost or 0)
