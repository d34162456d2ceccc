"""`assay check` in the forms for people lists objects with the same answer once; the forms for programs list each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest

from scanner.model.scans.scan import ClusterIdentity
from scanner.preview.verdict import (
    AGREES,
    DIFFERS,
    CheckedObject,
    CheckResult,
    Decision,
    Effect,
    Place,
    ServerAnswer,
    Verdict,
)
from scanner.report.check import json, junit, markdown, sarif, table
from scanner.report.check.document import CheckDocument

LIMITS = Decision(Effect.REFUSES, "containers need limits", "limits", "limits", "ValidatingAdmissionPolicy")
OWNER = replace(LIMITS, message="no owner", policy="owner", binding="owner")


def config_map(number: int, *decisions: Decision) -> CheckedObject:
    """The answer about an object with a number."""
    place = Place(f"app.yaml, document {number}", "app.yaml", number)
    return CheckedObject(place, "v1", "ConfigMap", "shop", f"c-{number}", "CREATE", decisions)


def document_of(*objects: CheckedObject) -> CheckDocument:
    """The document of a check of these objects."""
    return CheckDocument(CheckResult(ClusterIdentity("shop", "", "", ""), "", objects))


def list_refusals(*objects: CheckedObject) -> list[str]:
    """The lines of the table about objects."""
    return [line for line in table.list_lines(document_of(*objects)) if line]


def test_equal_refusals_are_one_entry_with_the_number_and_the_first_names() -> None:
    """The line that decided stands beside each name."""
    assert [
        "refused: 5 objects with the same answer (CREATE)",
        "  ConfigMap shop/c-1  app.yaml:1",
        "  ConfigMap shop/c-2  app.yaml:2",
        "  ConfigMap shop/c-3  app.yaml:3",
        "  and 2 more: -o json lists each",
        "  refused by policy limits: containers need limits",
    ] == list_refusals(*(config_map(number, LIMITS) for number in range(1, 6)))


@pytest.mark.parametrize(
    "other",
    [
        config_map(5, LIMITS, OWNER),
        config_map(5, replace(LIMITS, message="containers need requests")),
        config_map(5, replace(LIMITS, binding="other")),
        config_map(5, replace(LIMITS, effect=Effect.WARNS)),
        replace(config_map(5, LIMITS), operation="UPDATE"),
        replace(config_map(5, LIMITS), server=ServerAnswer(Verdict.ADMITTED, DIFFERS)),
    ],
    ids=["rules", "message", "binding", "effect", "operation", "server"],
)
def test_objects_with_different_answers_are_entries_of_their_own(other: CheckedObject) -> None:
    """No entry has a decision that is not about each of its objects."""
    equal = [config_map(number, LIMITS) for number in range(1, 5)]
    lines = list_refusals(*equal, other)

    assert list_refusals(*equal) + list_refusals(other) == lines


def test_an_answer_of_the_server_that_agrees_is_no_difference() -> None:
    """The last sentence has the number of these answers."""
    asked = [replace(config_map(number, LIMITS), server=ServerAnswer(Verdict.REFUSED, AGREES)) for number in range(5)]

    assert ["refused: 5 objects with the same answer (CREATE)"] == list_refusals(*asked)[:1]


def test_a_few_equal_refusals_are_entries_of_their_own() -> None:
    """Each has the values that decided."""
    lines = list_refusals(*(config_map(number, LIMITS) for number in range(1, 4)))

    assert 3 == sum(line.startswith("refused: ConfigMap shop/c-") for line in lines)


def test_admitted_objects_are_listed_one_by_one() -> None:
    """Without a decision there is nothing that they share."""
    assert [
        "admitted: ConfigMap shop/c-1 (CREATE)  app.yaml, document 1",
        "admitted: ConfigMap shop/c-2 (CREATE)  app.yaml, document 2",
    ] == list_refusals(config_map(1), config_map(2))


def test_markdown_has_one_row_for_equal_refusals() -> None:
    """The place is that of the first object."""
    rows = [
        row
        for row in markdown.render(document_of(*(config_map(n, LIMITS) for n in range(1, 5)))).splitlines()
        if "limits" in row
    ]

    names = "ConfigMap shop/c-1, ConfigMap shop/c-2, ConfigMap shop/c-3 and 1 more"
    why = "refused by policy limits: containers need limits"
    assert [f"| {names} | refused | {why} | app.yaml:1 |"] == rows


@pytest.mark.parametrize("render", [sarif.render, junit.render, json.render], ids=["sarif", "junit", "json"])
def test_programs_get_each_object(render: Callable[[CheckDocument], str]) -> None:
    """A program counts and joins for itself."""
    written = render(document_of(*(config_map(number, LIMITS) for number in range(1, 10))))

    assert all(f"c-{number}" in written for number in range(1, 10))


def test_json_has_the_decisions_of_each_object() -> None:
    """Each object has its own list."""
    objects = orjson.loads(json.render(document_of(config_map(1, LIMITS), config_map(2, LIMITS))))["objects"]

    assert [("c-1", 1), ("c-2", 1)] == [(each["name"], len(each["decisions"])) for each in objects]
