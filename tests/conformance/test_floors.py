"""No score is below its committed floor, and floors may only rise.

Each class compares one part of every file: `--dist loadscope` gives a class to one worker.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.conformance.cases import PARTS, RECORDED, folder, load, parameters, part_of
from tests.conformance.scores import COMPARISONS, floors, score


class Part:
    """A part of every file."""

    number: ClassVar[int]

    @pytest.mark.long
    @pytest.mark.parametrize("path", parameters(*COMPARISONS))
    def test_no_recorded_verdict_is_lost(self, path: Path, tmp_path: Path) -> None:
        """The score of a part reaches its floor."""
        name = path.name.removesuffix(".json.gz")
        results = COMPARISONS[name](part_of(load(path), self.number))
        actual = score(results, tmp_path / "differences.json").figures()

        floor = floors(path.parent)[name]["parts"][self.number]
        assert floor["cases"] == actual["cases"]
        assert [] == [figure for figure, least in floor.items() if actual[figure] < least]


class TestFirstPart(Part):
    number = 0


class TestSecondPart(Part):
    number = 1


class TestThirdPart(Part):
    number = 2


class TestFourthPart(Part):
    number = 3


@pytest.mark.parametrize("parent", [RECORDED, folder()], ids=["recorded", "further"])
def test_the_parts_are_the_whole(parent: Path) -> None:
    """The floors of a file's parts add up to its floor."""
    committed = floors(parent)
    sums = {
        name: [sum(part[figure] for part in floor["parts"]) for figure in _figures(floor)]
        for name, floor in committed.items()
    }
    assert {name: [floor[figure] for figure in _figures(floor)] for name, floor in committed.items()} == sums
    assert {PARTS} == {len(floor["parts"]) for floor in committed.values()}


def test_every_file_of_the_repository_has_a_floor_and_every_shortfall_a_reason() -> None:
    """Each file has a floor, and a floor below the number of cases states the reason."""
    committed = floors(RECORDED)
    unexplained = [
        name for name, floor in committed.items() if len({*_figures(floor).values()}) > 1 and "why" not in floor
    ]
    assert {path.name.removesuffix(".json.gz") for path in RECORDED.glob("*.json.gz")} == committed.keys()
    assert [] == unexplained


@pytest.mark.parametrize("path", parameters("expressions", "probes", "rejected-expressions"))
def test_errors_of_syntax_alone_have_other_words_than_the_servers(path: Path) -> None:
    """The refusals with other words are those that the server refuses for their syntax, each of them."""
    name = path.name.removesuffix(".json.gz")
    data = load(path)
    if name == "expressions":
        data = {**data, "cases": [case for case in data["cases"] if "rejected" in case]}
    results = list(COMPARISONS[name](data))
    assert [result.subject for result in results if "Syntax error: " in str(result.expected)] == [
        result.subject for result in results if result.right and not result.same_text
    ]


def _figures(floor: dict[str, Any]) -> dict[str, int]:
    return {figure: number for figure, number in floor.items() if figure not in ("parts", "why")}
