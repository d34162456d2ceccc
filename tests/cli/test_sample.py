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
    """Only a packet can be performed again, and days of the register have none."""
    assert b"It has no objects" in scanned("sample", "--seed", "x", "--out", "s").stdout
    assert b"It has no objects" not in scanned("sample", "--seed", "x", "--of", "runs", "--out", "s").stdout


def test_days_that_have_not_begun_are_named(scanned: Assay) -> None:
    """No run can be missing on them."""
    days = ("--since", "2099-01-01", "--until", "2099-01-05")
    ran = scanned("sample", "--seed", "x", "--of", "runs", "--n", "2", *days, "--out", "s")
    assert "of which 5 days have not begun: 5 in population.csv" in " ".join(ran.stdout.decode().split())


def test_the_order_of_columns_decides_nothing(scanned: Assay, home: Path) -> None:
    """The rule names the columns in one order, as the form of serve does."""
    for columns, folder in (("owner,namespace", "s"), ("namespace, owner,,owner", "t")):
        assert 0 == scanned("sample", "--seed", "x", "--n", "12", "--stratify", columns, "--out", folder).code
    assert (home / "s/rule.txt").read_text() == (home / "t/rule.txt").read_text()
    assert "with the same namespace and owner" in (home / "s/rule.txt").read_text()


def test_strata_without_a_name_are_strata(assay: Assay, home: Path, write: Write) -> None:
    """Objects of the cluster have no namespace, and some objects no owner; a long list is whole in the file alone."""
    nodes = [f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: ns-{number:02}}}\n" for number in range(30)]
    maps = [some_map(number).replace(f"ns-{number % 3}", f"ns-{number:02}") for number in range(30)]
    rule = bound("named", expression="object.metadata.name != ''").replace("[configmaps]", "[configmaps, namespaces]")
    write("all.yaml", "---\n".join([*nodes, *maps, rule]))
    assay("scan", "-q", "--from", "all.yaml")
    ran = assay("sample", "--seed", "x", "--n", "31", "--stratify", "namespace", "--out", "s")

    assert 0 == ran.code, ran.stderr
    drawn = draw((home / "s/population.csv").read_bytes(), "x", 31, OBJECT, ["namespace"])
    assert drawn == [row["id"] for row in rows(home / "s/sample.csv")]
    assert "          30       1  -" in ran.stdout.decode().splitlines()
    assert "  and 6 more in rule.txt" in ran.stdout.decode().splitlines()
    assert "           1       1  ns-29" in (home / "s/rule.txt").read_text().splitlines()


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
        (["--of", "runs", "--scan", "20260101T000000Z-000000"], "leave out --scan"),
        (["--of", "runs", "--at", "2026-01-01"], "leave out --at"),
        (["--of", "runs", "--waivers", "waivers.yaml"], "leave out --waivers"),
        (["--of", "runs", "--controls", "cis-kubernetes-5"], "leave out --controls"),
        (["--of", "runs", "--since", "2099-01-01"], "the period has no day"),
        (["--of", "runs", "--stratify", "namespace"], "leave it out with --of runs"),
        (["--of", "runs", "--cluster-name", "other"], "There is no run of cluster 'other'"),
        (["--since", "2026-01-01"], "need --of runs"),
        (["--of", "runs", "--since", "2026-02-01", "--until", "2026-01-01"], "is later than"),
        (["--of", "runs", "--since", "1000-02-01"], "more than 36,600"),
        (["--seed", ""], "--seed"),
        (["--seed", "2026-Q4 "], "without spaces around it"),
        (["--confidence", "0", "--tolerable", "5"], "--confidence 0"),
        (["--confidence", "95", "--tolerable", "100"], "--tolerable 100"),
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
