"""A fleet on one machine: a process for each cluster, and what becomes of clusters that cannot be reached."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Assay

Write = Callable[[str, str], Path]
FLEET = "clusters: [{name: one, kubeconfig: a}, {name: two, kubeconfig: b, schedule: '@daily'}]"


def runs(assay: Assay) -> list[tuple[str, str]]:
    """The clusters and states of the recorded runs."""
    listed = assay("runs", "-o", "json").stdout
    entries = json.loads(listed)["runs"] if listed else []
    return sorted((entry["run"]["name"], entry["state"]) for entry in entries)


def test_every_cluster_that_cannot_be_reached_is_a_failed_run(assay: Assay, write: Write, home: Path) -> None:
    """It has a line with its error on stdout, and its messages have its name."""
    write("fleets/fleet.yaml", FLEET)
    ran = assay("scan", "--fleet", "fleets/fleet.yaml", "--parallel", "2")
    error = f"there is no kubeconfig {home}/fleets/{{}}: check the path given with --kubeconfig"

    assert 4 == ran.code
    assert [
        "CLUSTER  EXIT  VERDICT",
        f"one      4     {error.format('a')}",
        f"two      4     {error.format('b')}",
    ] == ran.stdout.decode().splitlines()
    assert [f"one: assay: {error.format('a')}", f"two: assay: {error.format('b')}"] == sorted(ran.stderr.splitlines())
    assert [("one", "failed"), ("two", "failed")] == runs(assay)


def test_messages_for_machines_name_their_cluster(assay: Assay, write: Write) -> None:
    """Each line is an object, and the last one is the verdict of the fleet."""
    write("fleet.yaml", FLEET)
    ran = assay("scan", "--fleet", "fleet.yaml", "--parallel=1", "--log-format", "json", "--termination-log", "message")
    *messages, last = [json.loads(line) for line in ran.stderr.splitlines()]

    assert [("one", "error"), ("two", "error")] == [(each["cluster"], each["level"]) for each in messages]
    assert (2, 2, 4) == (last["clusters"], last["failed"], last["exitCode"])
    assert f"{last['message']}\n" == Path("message").read_text()


def test_an_index_names_one_cluster(assay: Assay, write: Write) -> None:
    """The first index is 0, as an Indexed Job counts."""
    write("fleet.yaml", FLEET)
    codes = [assay("scan", "--fleet", "fleet.yaml", "--index", index).code for index in ("0", "1", "2")]

    assert [4, 4, 2] == codes
    assert [("one", "failed"), ("two", "failed")] == runs(assay)


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("--fleet", "fleet.yaml"), "--fleet needs --index N for one cluster, or --parallel N for all of them"),
        (("--index", "0"), "--index needs --fleet"),
        (("--fleet", "fleet.yaml", "--index", "0", "--parallel", "2"), "--index cannot be combined with --parallel"),
        (
            ("--fleet", "fleet.yaml", "--index", "0", "--kubeconfig", "x"),
            "--fleet cannot be combined with --kubeconfig",
        ),
        (("--fleet", "fleet.yaml", "--parallel", "2", "-o", "json"), "leave out -o"),
        (("--fleet", "fleet.yaml", "--parallel", "2", "--html", "x"), "leave out --html"),
        (("--fleet", "fleet.yaml", "--index", "7"), "--index 7: fleet.yaml has 2 clusters"),
        (("--fleet", "other.yaml", "--index", "0"), "there is no file or folder other.yaml"),
    ],
)
def test_flags_that_do_not_fit_are_refused(assay: Assay, write: Write, flags: tuple[str, ...], error: str) -> None:
    """Nothing runs, and no run is recorded."""
    write("fleet.yaml", FLEET)
    ran = assay("scan", *flags)

    assert 2 == ran.code
    assert error in ran.stderr
    assert [] == runs(assay)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{}", "line 1, column 1: the field clusters is missing"),
        ("clusters: []", "clusters: must have at least one cluster"),
        ("clusters: [{kubeconfig: a}]", "the field name is missing"),
        ("clusters: [{name: a}, {name: a}]", "this is the name of the cluster at"),
        ("clusters: [{name: a, kubeconf: b}]", "unknown field"),
        ("clusters: [{name: a, schedule: '60 * * * *'}]", "schedule '60 * * * *'"),
        ("clusters: [{name: a, timeZone: UTC}]", "belongs to a schedule"),
        ("clusters: [{name: a, schedule: '@daily', timeZone: Mars}]", "must be a time zone"),
        ('clusters: [{name: "a\\e[1m"}]', "must be a name"),
    ],
)
def test_an_error_in_the_file_is_named_with_its_place(assay: Assay, write: Write, text: str, error: str) -> None:
    """The file is checked as a whole before any scan begins."""
    write("fleet.yaml", text)
    ran = assay("scan", "--fleet", "fleet.yaml", "--index", "0")

    assert 2 == ran.code
    assert "fleet.yaml, line 1" in ran.stderr
    assert error in ran.stderr
