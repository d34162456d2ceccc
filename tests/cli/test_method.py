"""A scan records how it was made, and no secret of the command line."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.cli.method import command_line
from scanner.model.json import as_list, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]


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
    ("argument", "expected"),
    [
        ("postgresql://bob:hunter2@db/assay", "postgresql://bob:[redacted]@db/assay"),
        ("--db=postgresql://bob:hun/ter@2@db/assay", "--db=postgresql://bob:[redacted]@db/assay"),
        ('--db=postgresql://bob:hun"t/er@2@db/assay', "--db=postgresql://bob:[redacted]@db/assay"),
        ("postgresql://bob@db:5432/assay", "postgresql://bob@db:5432/assay"),
        ("--server=https://host:6443/x@y", "--server=https://host:6443/x@y"),
        ("postgresql://bob@db/assay?password=hunter2", "postgresql://bob@db/assay?password=[redacted]"),
        ("https://hunter2@registry.example.com", "https://[redacted]@registry.example.com"),
        ("--password=hunter2", "--password=[redacted]"),
        ("--as=system:serviceaccount:audit:assay", "--as=system:serviceaccount:audit:assay"),
    ],
)
def test_a_command_line_has_no_passwords(argument: str, expected: str) -> None:
    """Users, paths and addresses stay readable."""
    assert ("assay", "scan", expected) == command_line(["scan", argument])


def test_the_value_of_a_flag_that_is_called_a_secret_is_withheld() -> None:
    """The argument after such a flag is its value."""
    assert ("assay", "scan", "--token", "[redacted]", "-n", "shop") == command_line(
        ["scan", "--token", "hunter2", "-n", "shop"]
    )
