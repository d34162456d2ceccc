"""The tables of the page about Kyverno that name declarations and rules of expressions by release."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from scanner import cel
from scanner.cel import releases
from scanner.model.release import Minor, format_minor, minor_of
from scanner.policies.kyverno.libraries import environment, rules_of
from scanner.policies.kyverno.releases import NEWEST, OLDEST
from scripts.generate_kyverno_declarations import TARGET

PAGE: Final = (Path(__file__).parents[3] / "docs" / "kyverno.md").read_text(encoding="utf-8")
RELEASES: Final[tuple[Minor, ...]] = tuple((1, minor) for minor in range(OLDEST[1], NEWEST[1] + 1))
DECLARED: Final = re.compile(r"^\| (?P<when>since|until) (?P<release>1\.\d+) \| (?P<names>.+) \|$", re.MULTILINE)
NAME: Final = re.compile(r"`([^`]+)`")
RULE: Final = re.compile(
    r"^\| (?P<since>1\.\d+) \| (?P<what>.+?)\. \| (?P<ticks>`+)(?P<example>.+?)(?P=ticks) \| (?P<before>.+) \| (?P<then>.+) \|$",
    re.MULTILINE,
)


def row_name(row: dict[str, Any], variables: dict[str, str]) -> str:
    """A declaration as an expression writes it: a member function has the variable of its receiver, or a dot."""
    if "field" in row:
        return f"request.{row['field']}"
    if not row.get("member"):
        return str(row["name"])
    arguments = row["arguments"]
    receiver = json.dumps(arguments[0]) if isinstance(arguments, list) else ""
    return f"{variables.get(receiver, '')}.{row['name']}"


def differing() -> Iterator[tuple[str, str, str]]:
    """The declarations of some releases alone: since or until, the release, and the name."""
    data = json.loads(TARGET.read_text(encoding="utf-8"))
    variables = {json.dumps(row["type"]): row["name"] for row in data["variables"]}
    known = [format_minor(release) for release in RELEASES]
    for row in (row for part in ("variables", "types", "functions", "macros") for row in data[part]):
        name = row_name(row, variables).removeprefix("__").removesuffix("Compat__")
        if "since" in row:
            yield "since", row["since"], name
        if "before" in row:
            yield "until", known[known.index(row["before"]) - 1], name


def test_the_page_has_every_name_that_not_all_releases_declare() -> None:
    """The rows name the variables, fields and functions that `declarations.json` has for some releases alone, and no others."""
    written = {
        (row["when"], row["release"], name.removesuffix("()").removeprefix("."))
        for row in DECLARED.finditer(PAGE)
        for name in NAME.findall(row["names"])
    }
    assert {(when, release, name.removeprefix(".")) for when, release, name in differing()} == written


@pytest.mark.parametrize("release", RELEASES, ids=format_minor)
def test_no_release_declares_the_function_that_the_page_says_is_none(release: Minor) -> None:
    """The page names `http.Put`."""
    assert "No release declares `http.Put`." in PAGE
    with pytest.raises(cel.CompileError):
        cel.compile("http.Put('https://example.com', {'a': 1}) == null", environment(release, namespaced=False))


RULES: Final = [*RULE.finditer(PAGE)]


def holding(change: releases.ReleaseChange) -> list[Minor]:
    """The releases of Kyverno in which a change of CEL holds."""
    return [release for release in RELEASES if change.holds(rules_of(release))]


def test_the_page_has_every_rule_of_cel_that_not_all_releases_have() -> None:
    """The rows are the changes of CEL that hold in some releases of Kyverno alone."""
    changes = {
        (
            format_minor(holding(change)[0]),
            change.description.rpartition(":")[0] or change.description.removesuffix("."),
        )
        for change in releases.CHANGES
        if 0 < len(holding(change)) < len(RELEASES)
    }
    assert changes == {(row["since"], row["what"]) for row in RULES}


@pytest.mark.parametrize("release", RELEASES, ids=format_minor)
@pytest.mark.parametrize("row", RULES, ids=lambda row: row["example"])
def test_the_example_of_a_rule_has_the_result_of_the_release(row: re.Match[str], release: Minor) -> None:
    """A cell is a value, an error, a compile error or a cost."""
    since = minor_of(row["since"])
    assert since is not None
    cell = row["before"] if release < since else row["then"]
    assert shown(row["example"], release, cell) == cell


def shown(text: str, release: Minor, cell: str) -> str:
    """The result of an example in the form of a cell; of a longer text only the beginning that the cell has."""
    try:
        program = cel.compile(text, environment(release, namespaced=False))
    except cel.CompileError as error:
        _, colon, quoted = cell.partition(": ")
        return f"does not compile{colon}{quoted if quoted in error.detail else error.detail}"
    measured = program.measure({"object": {"a": 1}})
    if cell.startswith("cost "):
        return f"cost {measured.cost}"
    if isinstance(measured.outcome, cel.EvaluationError):
        return f"error: {measured.outcome}"[: len(cell)]
    return f"`{json.dumps(measured.outcome)}`".replace('"', "'")
