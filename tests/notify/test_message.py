"""The body of a notification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from scanner.model.outcome import Gap, GapKind
from scanner.notify.message import message_id, write_body
from scanner.posture.notices import Notice
from tests.posture.test_notices import GAP, POLICY, RESOLVED, difference, noticed, problem, route

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "notification.schema.json").read_text("utf-8"))
HOSTILE = 'x"\\\n\x00\x1b[31m\x7f\u202eé\ud800'


def read(notice: Notice) -> Any:
    """The document of a body, which the schema allows."""
    document = json.loads(write_body(notice))
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).validate(
        document
    )
    return document


def closed(schema: Any) -> Any:
    """The schema without room for properties that it does not describe."""
    if isinstance(schema, dict):
        return {
            key: False if (key, value) == ("additionalProperties", True) else closed(value)
            for key, value in schema.items()
        }
    return [closed(each) for each in schema] if isinstance(schema, list) else schema


def full() -> Notice:
    """A notice with everything."""
    diff = difference([problem("a", owner="pay"), problem("b", RESOLVED)], (POLICY,), complete=False)
    return noticed(diff, route(), gaps=(GAP,))


def test_a_body_has_what_changed() -> None:
    """By owner, with totals, rules, lost coverage, and what was not checked."""
    data = read(full())["data"]

    assert ("all", "prod", "scan-2", "scan-1") == (
        data["route"],
        data["cluster"],
        data["scan"]["id"],
        data["before"]["id"],
    )
    assert {"new": 1, "reopened": 0, "resolved": 1, "resolvedBy": {"fixed": 1}} == data["totals"]
    assert [(None, "b", "fixed"), ("pay", "a", None)] == [
        (owner["owner"], each["workload"]["name"], each["resolution"])
        for owner in data["owners"]
        for each in owner["problems"]
    ]
    assert {"total": 1, "items": [{"kind": "list", "where": "v1/Secret", "why": "forbidden"}]} == data["coverageLost"]
    assert [{"type": "policy", "language": "ValidatingAdmissionPolicy", "name": "hosts", "change": "added"}] == (
        data["rulesChanged"]["items"]
    )
    assert 3 == data["notChecked"]["findings"]


def test_the_schema_describes_every_property() -> None:
    """Of a body with everything."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(closed(SCHEMA)).validate(json.loads(write_body(full())))


def test_a_complete_scan_checked_everything() -> None:
    """Which is not the same as an empty list."""
    assert None is read(noticed(difference([problem("a")]), route()))["data"]["notChecked"]


def test_the_same_scans_give_the_same_body() -> None:
    """So that a second delivery is one of the same notification."""
    assert write_body(full()) == write_body(full())
    assert "20260301T060000Z-ab12cd_payments" == message_id("20260301T060000Z-ab12cd", "payments")


def test_hostile_texts_are_escapes() -> None:
    """The body is ASCII that prints, with every name of a policy."""
    hostile = noticed(
        difference([problem("a", owner=HOSTILE, policy=HOSTILE)]), route(), gaps=(Gap(GapKind.LIST, HOSTILE, HOSTILE),)
    )

    assert write_body(hostile).isascii()
    assert write_body(hostile).decode().isprintable()
    assert HOSTILE == json.loads(write_body(hostile))["data"]["owners"][0]["owner"]


def test_long_texts_are_cut() -> None:
    """A reason can have a page of a server's answer."""
    lost = noticed(difference(), route(), gaps=(Gap(GapKind.LIST, "v1/Secret", "x" * 10_000),))

    assert 500 == len(read(lost)["data"]["coverageLost"]["items"][0]["why"])


def test_many_gaps_are_counted() -> None:
    """And the first hundred are listed."""
    gaps = tuple(Gap(GapKind.OBJECT, f"v1/Pod a/{number:03}", "unreadable") for number in range(150))
    lost = read(noticed(difference(), route(), gaps=gaps))["data"]["coverageLost"]

    assert (150, 100) == (lost["total"], len(lost["items"]))
