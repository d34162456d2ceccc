"""Write the present conformance scores into the files of floors, where they are higher than the committed ones."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.cases import PARTS, RECORDED, folder, load, part_of
from tests.conformance.scores import COMPARISONS, floors, floors_of, score


def main() -> None:
    """Raise every floor that can be raised, of the files that exist."""
    for parent in (RECORDED, folder()):
        committed = floors(parent) if floors_of(parent).exists() else {}
        for name in COMPARISONS:
            path = parent / f"{name}.json.gz"
            if path.exists():
                committed[name] = raised(committed.get(name, {}), parts(name, path))
        floors_of(parent).write_text(printed(committed), encoding="utf-8")


def parts(name: str, path: Path) -> list[dict[str, int]]:
    """Return the present figures of each part of a file."""
    data = load(path)
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "differences.json"
        return [score(COMPARISONS[name](part_of(data, number)), report).figures() for number in range(PARTS)]


def raised(floor: dict[str, Any], actual: list[dict[str, int]]) -> dict[str, Any]:
    """Return a floor with the higher of the committed and the present figures; a file with other cases gets a new floor."""
    before = floor.get("parts", [])
    if [part["cases"] for part in before] == [part["cases"] for part in actual]:
        actual = [
            {figure: max(number, old[figure]) for figure, number in new.items()}
            for new, old in zip(actual, before, strict=True)
        ]
    total = {figure: sum(part[figure] for part in actual) for figure in actual[0]}
    return {**total, **({"why": floor["why"]} if "why" in floor else {}), "parts": actual}


def printed(committed: dict[str, Any]) -> str:
    """Return the floors as JSON, with a part on each line."""
    text = json.dumps({name: {**floor, "parts": []} for name, floor in committed.items()}, indent=2, sort_keys=True)
    for name in sorted(committed):
        lines = ",\n".join(f"      {json.dumps(part)}" for part in committed[name]["parts"])
        text = text.replace('"parts": []', f'"parts": [\n{lines}\n    ]', 1)
    return f"{text}\n"


if __name__ == "__main__":
    main()
