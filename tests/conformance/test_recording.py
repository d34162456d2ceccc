"""Recording: the same seed makes the same cases, and the audit log is read as the server writes it."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import urllib3

from tests.conformance.recording import expressions, refused
from tests.conformance.recording.audited import AuditLog, of_group
from tests.integration.client import Answer

KEY = "validation.policy.admission.k8s.io/validation_failure"


def line(number: str, *messages: str) -> str:
    """Return an event of the audit log."""
    failures = json.dumps([{"policy": "p", "message": message} for message in messages])
    return json.dumps({"auditID": number, **({"annotations": {KEY: failures}} if messages else {})}) + "\n"


def answer(number: str) -> Answer:
    """Return the answer to the request that has this number in the log."""
    return Answer(201, urllib3.HTTPHeaderDict({"Audit-Id": number}), None)


def test_the_same_seed_makes_the_same_expressions() -> None:
    """Two generators with the same seed agree, and another seed makes other expressions."""
    assert [*islice(expressions.expressions(1), 200)] == [*islice(expressions.expressions(1), 200)]
    assert [*islice(refused.expressions(1), 200)] == [*islice(refused.expressions(1), 200)]
    assert [*islice(refused.expressions(1), 200)] != [*islice(refused.expressions(2), 200)]


def test_the_log_holds_the_failures_of_a_request(tmp_path: Path) -> None:
    """The failures of a request are those of its event; an event without the annotation reports none."""
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_text(line("1", "no") + line("2"))
    assert [["no"], []] == [[failure["message"] for failure in log.failures(answer(number))] for number in "12"]


def test_a_line_that_is_not_complete_is_read_later(tmp_path: Path) -> None:
    """A line without its end is left for the next read, because the server may be writing it."""
    log = AuditLog(tmp_path / "audit.log")
    whole = line("2", "later")
    log.path.write_text(line("1") + whole[:20])
    assert [] == log.failures(answer("1"))
    log.path.write_text(line("1") + whole)
    assert ["later"] == [failure["message"] for failure in log.failures(answer("2"))]


def test_a_policy_of_a_group_keeps_its_conditions() -> None:
    """The condition on the field manager precedes the policy's own conditions."""
    policy = {"spec": {"matchConditions": [{"name": "own", "expression": "true"}]}}
    assert ["recorded", "own"] == [condition["name"] for condition in of_group(policy, "g")["spec"]["matchConditions"]]
