"""The form of the messages on stderr."""

from __future__ import annotations

import io
import json
import traceback
import warnings
from datetime import UTC, datetime

import pytest

from scanner.cli.terminal.stderr import JsonLines, log
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_explain import Write

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def lines_of(stream: io.StringIO) -> list[dict[str, object]]:
    """The objects that a stream received."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_each_line_is_an_object_with_a_time() -> None:
    """Text without a line end waits for it."""
    stream = io.StringIO()
    lines = JsonLines(stream, lambda: NOON)

    lines.write("assay: careful\nhalf a ")
    lines.write("line\n")

    time = "2026-03-02T12:00:00.000Z"
    assert [
        {"time": time, "level": "warning", "message": "careful"},
        {"time": time, "level": "info", "message": "half a line"},
    ] == lines_of(stream)


def test_an_event_has_members_of_its_own() -> None:
    """Text has the message alone."""
    machine, text = io.StringIO(), io.StringIO()

    log(JsonLines(machine, lambda: NOON), "listed", {"objects": 3})  # type: ignore[arg-type]
    log(text, "listed", {"objects": 3})

    assert 3 == lines_of(machine)[0]["objects"]
    assert "listed\n" == text.getvalue()


def test_a_scan_logs_json(assay: Assay, write: Write) -> None:
    """Every line of stderr is an object; the kinds have their numbers."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")

    ran = assay("scan", "--from", "all.yaml", "--log-format", "json")

    events = [json.loads(line) for line in ran.stderr.splitlines()]
    assert [1] == [event["objects"] for event in events if event.get("kind") == "ConfigMap"]
    assert {"info"} == {event["level"] for event in events}


def test_the_environment_chooses_json_for_every_command(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message that ends a command is an error."""
    monkeypatch.setenv("ASSAY_LOG_FORMAT", "json")

    ran = assay("report")

    [event] = [json.loads(line) for line in ran.stderr.splitlines()]
    assert (2, "error") == (ran.code, event["level"])
    assert "does not exist" in event["message"]


def test_a_mistyped_flag_is_an_error_for_machines_too(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its level is that of a message about a database."""
    monkeypatch.setenv("ASSAY_LOG_FORMAT", "json")

    ran = assay("report", "--colour")

    usage, *_, error = map(json.loads, ran.stderr.splitlines())
    assert (2, "info", "error") == (ran.code, usage["level"], error["level"])
    assert usage["message"].startswith("Usage: assay report ")
    assert error["message"].startswith("No such option: --colour")


CASES = {
    "scan": ("scan", "--from", "all.yaml", "--db", "a.db"),
    "usage": ("scan", "--colour"),
    "wrong value": ("scan", "--from", "all.yaml", "--workers", "two"),
    "no command": ("nothing",),
    "upgrade": ("db", "upgrade", "--db", "a.db"),
    "prune": ("db", "prune", "--db", "a.db", "--keep-days", "1"),
    "no file": ("rbac", "check", "--kubeconfig", "missing"),
    "document": ("scan", "--from", "all.yaml", "-o", "csv"),
}


@pytest.mark.parametrize("command", CASES.values(), ids=CASES)
def test_the_log_of_a_container_is_json(
    assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """A container has one log for both streams: every line of each is an object with a time, a level and a message."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    monkeypatch.setenv("ASSAY_LOG_FORMAT", "json")
    monkeypatch.setenv("ASSAY_LOG_STDOUT", "1")

    ran = assay(*command)

    events = [json.loads(line) for line in (ran.stdout.decode() + ran.stderr).splitlines()]
    assert [] != events
    assert [] == [event for event in events if not {"time", "level", "message"} <= event.keys()]


def test_standard_output_stays_as_it_is_without_the_variable(
    assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs read documents there."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    monkeypatch.setenv("ASSAY_LOG_FORMAT", "json")

    ran = assay("scan", "--from", "all.yaml")

    assert ran.stdout.startswith(b"Scan ")


def test_tracebacks_and_warnings_are_json() -> None:
    """Each of their lines is a message, and a line that is an object already, such as one of an access log, stays as it is."""
    stream = io.StringIO()
    lines = JsonLines(stream, lambda: NOON)
    traceback.print_exception(ValueError("no number"), file=lines)
    lines.write(warnings.formatwarning("old", DeprecationWarning, "a.py", 1, "x = 1"))
    lines.write('{"status": 200}\n{broken\n')
    *messages, access, broken = lines_of(stream)
    assert {"status": 200} == access
    assert "{broken" == broken["message"]
    assert ["ValueError: no number", "a.py:1: DeprecationWarning: old"] == [
        event["message"] for event in messages if "no number" in str(event["message"]) or "old" in str(event["message"])
    ][-2:]
