"""A scan records how it was made, and no secret of the command line."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.cli.application import build_commands
from scanner.cli.scanning.command_line import mask_command_line
from scanner.model.json import as_list, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]
CANARY = "hunter2-canary"
PARAMETERS = build_commands().commands["scan"].params  # type: ignore[attr-defined]


def test_the_report_has_the_method(assay: Assay, write: Write) -> None:
    """Command, host, scope, workers and network are in the report of the scan, and in a later one."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    arguments = ("scan", "--from", ".", "--exclude-namespace", "kube-*", "--workers", "1", "-o", "json", "-q")
    scanned, again = assay(*arguments).report, assay("report", "-o", "json").report

    method = scanned["method"]
    assert method == again["method"]
    assert ["assay", *arguments] == dig(method, "commandLine")
    assert (socket.gethostname(), 1, 0, False) == tuple(
        dig(method, name) for name in ("host", "workers", "chunkSize", "network")
    )
    assert ["kube-*"] == dig(method, "scope", "excludeNamespaces")


def test_the_report_has_the_kinds_without_a_policy(assay: Assay, write: Write) -> None:
    """The policy is about ConfigMaps alone."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    report = assay("scan", "--from", ".", "-o", "json", "-q").report

    kinds = [dig(kind, "kind") for kind in as_list(report["kindsWithoutPolicy"])]
    assert (True, False) == ("Deployment" in kinds, "ConfigMap" in kinds)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("https://bob:hunter2@host/x", "https://bob:[redacted]@host/x"),
        ("https://bob:hun/ter@2@host/x", "https://bob:[redacted]@host/x"),
        ('https://bob:hun"t/er@2@host/x', "https://bob:[redacted]@host/x"),
        ("https://host:6443/x@y", "https://host:6443/x@y"),
        ("https://hunter2@registry.example.com", "https://[redacted]@registry.example.com"),
        ("password=hunter2", "password=[redacted]"),
        ("system:serviceaccount:audit:assay", "system:serviceaccount:audit:assay"),
    ],
)
def test_a_value_that_is_shown_has_no_passwords(value: str, expected: str) -> None:
    """Users, paths and addresses stay readable."""
    assert ("assay", "scan", f"--context={expected}") == mask_command_line(["scan", f"--context={value}"], PARAMETERS)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["--db", f"postgresql://bob:{CANARY}@db/x"], ["--db", "postgresql://bob:[redacted]@db/x"]),
        ([f"--db=postgresql://bob:{CANARY}@db/x"], ["--db=postgresql://bob:[redacted]@db/x"]),
        (["--push-metrics", f"https://gateway/{CANARY}"], ["--push-metrics", "https://gateway"]),
        (["--as-user-extra", f"a={CANARY}", "-q"], ["--as-user-extra", "a=[redacted]", "-q"]),
        ([f"--as-user-extra=a={CANARY}"], ["--as-user-extra=a=[redacted]"]),
        (["--as-user-uid", CANARY], ["--as-user-uid", "[redacted]"]),
        (["-n", "shop", "-nteam"], ["-n", "shop", "-nteam"]),
        (["-Aqo", "json", "-ojson"], ["-Aqo", "json", "-ojson"]),
        (["--config", "a.yaml", "--config=b.yaml"], ["--config", "a.yaml", "--config=b.yaml"]),
        (["--fail-on", "new", "--workers", "2"], ["--fail-on", "new", "--workers", "2"]),
        (["--no-such-flag", CANARY], ["[redacted]", "[redacted]"]),
        ([f"--no-such-flag={CANARY}", CANARY, "-", "-z"], ["[redacted]"] * 4),
        (["-q", "--quiet", "--db"], ["-q", "--quiet", "--db"]),
    ],
)
def test_a_command_line_shows_values_by_the_classes_of_their_flags(typed: list[str], shown: list[str]) -> None:
    """What is no known flag and no value of one is withheld."""
    assert ("assay", "scan", *shown) == mask_command_line(["scan", *typed], PARAMETERS)
