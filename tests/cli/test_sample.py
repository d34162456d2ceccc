"""`assay sample`: a list that another person can draw again from the files alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.proof.draw_independently import draw

Write = Callable[[str, str], Path]
OBJECT = ["apiVersion", "kind", "namespace", "name", "uid"]
TEAMS = "metadata: {name: NAME, namespace: NS, labels: {team: TEAM}}"


def some_map(number: int) -> str:
    """A ConfigMap, in one of three namespaces, of one of two teams; every fourth one fails."""
    return (
        "apiVersion: v1\nkind: ConfigMap\n"
        + TEAMS.replace("NAME", f"{'bad' if number % 4 == 0 else 'good'}-{number:02}")
        .replace("NS", f"ns-{number % 3}")
        .replace("TEAM", f"team-{number % 2}")
        + "\n"
    )


@pytest.fixture
def scanned(assay: Assay, write: Write) -> Assay:
    """The command line after a scan of 40 objects, of which 10 have a finding."""
    rule = bound("named", expression="object.metadata.name.startsWith('good')")
    write("all.yaml", "---\n".join([*map(some_map, range(40)), rule]))
    assert 0 == assay("scan", "-q", "--from", "all.yaml").code
    return assay


def rows(path: Path) -> list[dict[str, str]]:
    """The lines of a file of CSV by column."""
    return list(csv.DictReader(io.StringIO(path.read_text(), newline="")))


@pytest.mark.parametrize("strata", [[], ["namespace"], ["namespace", "owner"], ["kind"]])
def test_the_files_alone_give_the_sample(scanned: Assay, home: Path, strata: list[str]) -> None:
    """The independent script draws the same ids from `population.csv`, with strata of owners, too."""
    ran = scanned("sample", "--seed", "2026-Q4", "--n", "12", "--stratify", ",".join(strata), "--out", "s")
    assert 0 == ran.code, ran.stderr
    drawn = draw((home / "s/population.csv").read_bytes(), "2026-Q4", 12, OBJECT, strata)
    assert drawn == [row["id"] for row in rows(home / "s/sample.csv")]
    assert drawn == [item["id"] for item in json.loads((home / "s/sample.json").read_text())["items"]]
    assert 12 == len(drawn)


def test_the_population_of_all_objects_is_that_of_the_format(scanned: Assay, home: Path) -> None:
    """The same bytes as `assay report -o csv-population`."""
    scanned("sample", "--seed", "x", "--out", "s")
    assert scanned("report", "-o", "csv-population").stdout == (home / "s/population.csv").read_bytes()


def test_passes_are_the_objects_without_a_finding_of_the_policy(scanned: Assay, home: Path) -> None:
    """Their lines are those of the whole population."""
    scanned("sample", "--seed", "x", "--of", "passes", "--policy", "named", "--out", "s")
    whole = scanned("report", "-o", "csv-population").stdout.decode().splitlines()
    passes = (home / "s/population.csv").read_text().splitlines()
    assert [line for line in whole if ",bad-" not in line] == passes
    assert 31 == len(passes)


def test_findings_are_those_of_the_policy(scanned: Assay, home: Path) -> None:
    """With the columns of the format `csv`."""
    scanned("sample", "--seed", "x", "--of", "findings", "--policy", "named", "--n", "3", "--out", "s")
    assert ["bad"] * 10 == [row["name"][:3] for row in rows(home / "s/population.csv")]
    assert 3 == len(rows(home / "s/sample.csv"))


def test_days_without_a_run_are_drawn_as_well(scanned: Assay, home: Path) -> None:
    """A day of the period has a line, whether a run began or not."""
    ran = scanned(
        *("sample", "--seed", "x", "--of", "runs", "--n", "2", "--out", "s"),
        *("--since", "2026-02-01", "--until", "2026-02-28"),
    )
    assert 0 == ran.code, ran.stderr
    days = rows(home / "s/population.csv")
    assert (28, "2026-02-01", "2026-02-28") == (len(days), days[0]["day"], days[-1]["day"])
    assert {"0"} == {day["runs"] for day in days}
    scanned("sample", "--seed", "x", "--of", "runs", "--out", "t")
    assert [("1", "1")] == [(day["runs"], day["complete"]) for day in rows(home / "t/population.csv")]


def test_a_size_is_computed_and_its_formula_printed(scanned: Assay) -> None:
    """A population that is small for the formula is named."""
    ran = scanned("sample", "--seed", "x", "--confidence", "90", "--tolerable", "10", "--out", "s")
    assert "n = ceil(ln(1 - 0.9) / ln(1 - 0.1)) = ceil(21.85) = 22" in ran.stdout.decode()
    assert "more than a tenth" in ran.stdout.decode()


def test_a_population_of_an_incomplete_scan_says_so(assay: Assay, write: Write) -> None:
    """A sample claims nothing about objects that were not listed."""
    write("all.yaml", "---\n".join([config_map("a"), bound("p", expression="true"), "kind: [\n"]))
    assert 3 == assay("scan", "-q", "--from", "all.yaml").code
    ran = assay("sample", "--seed", "x", "--out", "s")
    assert "The scan is incomplete" in ran.stdout.decode()


def test_a_list_says_that_it_has_no_objects(scanned: Assay) -> None:
    """Only a packet can be performed again."""
    assert b"It has no objects" in scanned("sample", "--seed", "x", "--out", "s").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "nothing"], "has no such policy. It has named"),
        (["--n", "0"], "--n 0"),
        (["--n", "5", "--confidence", "95", "--tolerable", "5"], "leave out --n"),
        (["--confidence", "95"], "need each other"),
        (["--stratify", "colour"], "--stratify colour"),
        (["--stratify", "namespace", "--n", "2"], "3 strata need a sample of 3 items or more"),
        (["--of", "runs", "--policy", "named"], "leave out --policy"),
        (["--since", "2026-01-01"], "need --of runs"),
        (["--of", "runs", "--since", "2026-02-01", "--until", "2026-01-01"], "is later than"),
        (["--of", "runs", "--since", "1000-02-01"], "more than 36,600"),
        (["--seed", ""], "--seed"),
    ],
)
def test_flags_that_have_no_rule_are_refused(scanned: Assay, home: Path, arguments: list[str], message: str) -> None:
    """The message names the flag, and no folder is made."""
    ran = scanned("sample", "--seed", "x", "--out", "s", *arguments)
    assert 2 == ran.code
    assert message in ran.stderr
    assert not (home / "s").exists()


def test_other_files_are_kept(scanned: Assay, home: Path, write: Write) -> None:
    """A folder of an earlier sample is replaced, any other is not."""
    assert 0 == scanned("sample", "--seed", "x", "--out", "s").code
    assert 0 == scanned("sample", "--seed", "y", "--out", "s").code
    write("mine/text.txt", "mine")
    assert 2 == scanned("sample", "--seed", "x", "--out", "mine").code
    assert "mine" == (home / "mine/text.txt").read_text()
