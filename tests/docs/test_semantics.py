"""The examples in `docs/semantics` have the results that stand beside them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from scanner import cel
from scanner.cel import (
    AUTHORIZATION,
    Authorizer,
    AuthorizerSubject,
    CompileError,
    Environment,
    EvaluationError,
    Timestamp,
    allow_patches,
)
from scanner.policies.kyverno import libraries as kyverno
from tests.cel.measuring import Refusing

PAGES = Path(__file__).parents[2] / "docs" / "semantics"
_FENCE = re.compile(r"^```cel(?: (?P<mode>\S+))?\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """One line of an example: `mode` is a release such as `1.37`, `patch` for mutations, `kyverno`, or nothing."""

    page: str
    mode: str
    text: str
    expected: str


def _examples() -> list[Example]:
    return [
        Example(page.name, fence["mode"] or "", *(part.strip() for part in line.rsplit("// ", 1)))
        for page in sorted(PAGES.glob("*.md"))
        for fence in _FENCE.finditer(page.read_text())
        for line in fence["lines"].splitlines()
    ]


def _activation() -> dict[str, object]:
    text = (PAGES / "README.md").read_text().split("```yaml\n")[1].split("```")[0]
    decider = Authorizer(Refusing(), AuthorizerSubject("jane", ()))
    check = decider.request_resource(group="apps", resource="deployments", namespace="team-1")
    documents: dict[str, object] = yaml.safe_load(text)
    values = kyverno.library_values(kyverno.NoClusterData(), Timestamp(0))
    return documents | values | {"oldObject": None, "authorizer": decider, "authorizer.requestResource": check}


ACTIVATION = _activation()
ENVIRONMENT = Environment().extend(AUTHORIZATION)
MODES = {
    "": ENVIRONMENT,
    "1.37": Environment(version=(1, 37)).extend(AUTHORIZATION),
    "1.31": Environment(version=(1, 31)).extend(AUTHORIZATION),
    "patch": allow_patches(ENVIRONMENT),
    "kyverno": kyverno.environment(namespaced=False),
}


def result(example: Example) -> object:
    """What the expression comes to, in the form in which the page states it."""
    try:
        measured = cel.compile(example.text, MODES[example.mode]).measure(ACTIVATION)
    except CompileError as error:
        lines = re.findall(r"^ERROR: <input>:[-\d]+:\d+: (.*)$", str(error), re.MULTILINE)
        return f"compile error: {lines[0] if lines else error.detail}"
    if example.expected.startswith("cost "):
        return f"cost {measured.cost}"
    if isinstance(measured.outcome, EvaluationError):
        return f"error: {measured.outcome}"
    return measured.outcome


@pytest.mark.parametrize("example", _examples(), ids=lambda example: f"{example.page}: {example.text}")
def test_an_example_has_the_result_that_the_page_states(example: Example) -> None:
    """Evaluate the expression, and compare its value, cost or error with the comment."""
    if re.match(r"(error|compile error|cost)\b", example.expected):
        assert example.expected == result(example)
        return
    expected = cel.compile(example.expected, ENVIRONMENT).evaluate(ACTIVATION)
    assert (type(expected), expected) == (type(result(example)), result(example))
