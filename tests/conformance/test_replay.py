"""Recorded policies are replayed through a snapshot: a replay has the recorded verdicts, but for what redaction prevents.

`make conformance REPLAYS=1` prints the table of all suites.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance.cases import PARTS, RECORDED, label, load, parameters, part_of
from tests.conformance.replay_suites import SUITES
from tests.conformance.replays import HEADS, score_replay, score_suites, write_line

_MOST_OTHER = 0.12
"""The share of the answers of a part that a scan of a cluster cannot give, as Kyverno's command line has the images and users of its suites."""
_PARTS = [0, *(pytest.param(number, marks=pytest.mark.long) for number in range(1, PARTS))]


@pytest.mark.parametrize("number", _PARTS)
@pytest.mark.parametrize("path", parameters(*SUITES))
def test_a_replay_has_the_recorded_verdicts(path: Path, number: int, tmp_path: Path) -> None:
    """Each verdict is equal, or it is skipped because the check may read what the snapshot withholds. It is never another one."""
    name = path.name.removesuffix(".json.gz")
    score = score_suites(SUITES[name](part_of(load(path), number)), tmp_path)

    print(write_line("suite", HEADS), write_line(label(path), score.cells()), sep="\n")  # noqa: T201 - for `pytest -s`
    assert [] == score.differences
    assert score.verdicts > 50
    assert score.answers * _MOST_OTHER >= score.other


def test_an_answer_that_the_scan_does_not_give_is_counted_apart(tmp_path: Path) -> None:
    """A comparison that cannot fail would show nothing."""
    [suite] = SUITES["mutations"](part_of(load(RECORDED / "mutations.json.gz"), 0))
    wrong = replace(suite, recorded=dict.fromkeys(suite.recorded, "fail"))
    score = score_replay(wrong, tmp_path / "scan")
    assert (len(suite.recorded), 0) == (score.other, score.redacted_answers)
