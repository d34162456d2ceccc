"""How a scan ends for a Job: exit code, last line of the log, termination message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scanner.cli.scanning.conclusion import Conclusion
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_gates import Write

BROKEN = "---\nkind: Broken\n"


def scan(assay: Assay, write: Write, *flags: str, broken: bool = False) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the messages of a scan of one ConfigMap that a policy would refuse."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}{BROKEN if broken else ''}")
    ran = assay("scan", "--from", "all.yaml", "--log-format", "json", *flags)
    return ran.code, [json.loads(line) for line in ran.stderr.splitlines()]


@pytest.mark.parametrize(
    ("broken", "flags", "code"),
    [
        (False, (), 0),
        (True, (), 3),
        (True, ("--exit-zero-on", "incomplete"), 0),
        (True, ("--fail-on", "deny"), 3),
        (True, ("--fail-on", "deny", "--exit-zero-on", "incomplete"), 1),
        (True, ("--fail-on", "errored", "--exit-zero-on", "incomplete"), 0),
        (False, ("--fail-on", "deny", "--exit-zero-on", "incomplete"), 1),
    ],
)
def test_only_the_code_of_an_incomplete_scan_is_taken_away(
    assay: Assay, write: Write, *, broken: bool, flags: tuple[str, ...], code: int
) -> None:
    """A gate that fails keeps its code, and the last message has the code of the process."""
    ended, messages = scan(assay, write, *flags, broken=broken)

    assert (code, code) == (ended, messages[-1]["exitCode"])


def test_the_last_message_is_the_verdict(assay: Assay, write: Write) -> None:
    """One object with the numbers of the verdict line; nothing follows it."""
    _, messages = scan(assay, write, "--fail-on", "deny", broken=True)
    last = messages[-1]

    assert {
        "level": "warning",
        "event": "verdict",
        "state": "incomplete",
        "problems": 1,
        "refused": 1,
        "new": 0,
        "reopened": 0,
        "resolved": 0,
        "gaps": 1,
        "reason": "the scan is incomplete: 1 gaps",
        "exitCode": 3,
    }.items() <= last.items()
    assert "Incomplete: 1 problem would be refused · 1 gap. the scan is incomplete: 1 gaps" == last["message"]
    assert ["verdict"] == [message["event"] for message in messages if "event" in message]


def test_an_error_is_the_last_message(assay: Assay) -> None:
    """It has the exit code, and there is no verdict."""
    ran = assay("scan", "--kubeconfig", "missing", "--log-format", "json", "--termination-log", "message")
    last = json.loads(ran.stderr.splitlines()[-1])

    assert (4, 4, "error") == (ran.code, last["exitCode"], last["level"])
    assert f"{last['message']}\n" == Path("message").read_text()
    assert "event" not in last


def test_the_termination_message_is_the_verdict_line(assay: Assay, write: Write) -> None:
    """`kubectl describe` shows it with the state of the container, in every form of the log."""
    scan(assay, write, "--termination-log", "message")
    in_json = Path("message").read_text()
    assay("scan", "--from", "all.yaml", "--termination-log", "message")

    assert "Complete: 1 problem would be refused\n" == in_json == Path("message").read_text()


def test_an_error_after_the_scan_is_written_below_the_verdict(assay: Assay, write: Write) -> None:
    """Both are known: the scan is stored, and its report could not be written."""
    write("file", "")
    code, messages = scan(assay, write, "--termination-log", "message", "--html", "file/report")

    lines = Path("message").read_text().splitlines()
    assert 0 != code
    assert messages[-1]["message"] == lines[-1]


def test_a_message_that_cannot_be_written_is_a_warning(assay: Assay, write: Write) -> None:
    """The exit code is that of the scan."""
    code, messages = scan(assay, write, "--termination-log", "missing/message")

    assert 0 == code
    assert ["warning"] == [each["level"] for each in messages if "cannot be written" in each["message"]]


def test_a_long_message_is_cut_where_kubernetes_would_cut_it(tmp_path: Path) -> None:
    """At most 4096 bytes, which end with an ellipsis and split no character."""
    path = tmp_path / "message"
    Conclusion(path).conclude("é" * 5000, {})
    written = path.read_bytes()

    assert 4090 < len(written) <= 4096
    assert written.decode().endswith("é…\n")
