"""`assay scan --second-opinion`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]
EXPRESSION = "!has(object.data.deeper.still)"


def test_a_second_opinion_is_reported(assay: Assay, write: Write) -> None:
    """The verdict is Assay's, and the report has the difference, also for the stored scan."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict', expression=EXPRESSION)}")

    ran = assay(
        *("scan", "--from", "all.yaml", "-q", "-o", "json"),
        *("--second-opinion", "cel-python", "--second-opinion-sample", "100"),
    )

    report = json.loads(ran.stdout)
    [differs] = report["secondOpinion"]["disagreements"]
    assert ("errored", "an error", "true") == (report["findings"][0]["outcome"], differs["ours"], differs["theirs"])
    assert report["secondOpinion"] == json.loads(assay("report", "-o", "json").stdout)["secondOpinion"]


def test_the_same_scan_has_the_same_opinion(assay: Assay, write: Write) -> None:
    """The sample depends on the objects alone."""
    objects = "---\n".join(config_map(f"c{number}") for number in range(40))
    write("all.yaml", f"{objects}---\n{bound('strict', expression=EXPRESSION)}")
    arguments = ("scan", "--from", "all.yaml", "-q", "-o", "json", "--second-opinion", "cel-python")

    first, second = (
        json.loads(assay(*arguments, "--second-opinion-sample", "25", "--workers", number).stdout)["secondOpinion"]
        for number in ("1", "2")
    )

    assert first == second
    assert 0 < first["objects"] < 40


def test_without_the_flag_there_is_no_opinion(assay: Assay, write: Write) -> None:
    """The report has null."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")

    ran = assay("scan", "--from", "all.yaml", "-q", "-o", "json")

    assert json.loads(ran.stdout)["secondOpinion"] is None


def test_a_sample_without_an_engine_is_a_usage_error(assay: Assay, write: Write) -> None:
    """--second-opinion-sample needs --second-opinion."""
    write("all.yaml", config_map("one"))

    ran = assay("scan", "--from", "all.yaml", "--second-opinion-sample", "5")

    assert 2 == ran.code
    assert "needs --second-opinion" in ran.stderr
