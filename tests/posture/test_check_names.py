"""A check keeps its id from one version of its policy to the next, unless it may be another check."""

from __future__ import annotations

import pytest

from scanner.model.json import JsonObject
from scanner.model.policy import VALIDATING, Policy, Validation
from scanner.posture.problem_ids import (
    CheckKey,
    check_id,
    check_keys,
    names_of,
    problem_id,
    problem_number,
    workload_key,
)


def policy(*expressions: str, name: str = "replicas") -> Policy:
    """A policy with these validations."""
    manifest: JsonObject = {"metadata": {"name": name}, "spec": {}}
    checks = tuple(Validation(expression, "", "", "") for expression in expressions)
    return Policy(VALIDATING, name, None, None, (), (), checks, (), "Fail", manifest, "digest")


def ids(made: Policy, names: dict[CheckKey, str]) -> list[str]:
    """The ids of the validations, in their order."""
    return [names[key] for (kind, _), key in check_keys(made).items() if kind == "validation"]


def continued(before: list[str], now: list[str]) -> list[int | None]:
    """For each expression of a new version, the position of the earlier check whose id it has; None for a new check."""
    first = policy(*before)
    known = names_of(first, None, {})
    earlier = ids(first, known)
    second = policy(*now)
    names = ids(second, names_of(second, first, known))
    assert len(set(names)) == len(names)
    return [earlier.index(name) if name in earlier else None for name in names]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(["a", "b"], ["a", "b"], [0, 1], id="unchanged"),
        pytest.param(["a", "b"], ["b", "a"], [1, 0], id="moved"),
        pytest.param(["a", "b"], ["x", "a", "b"], [None, 0, 1], id="one inserted before"),
        pytest.param(["a", "b"], ["a", "x", "b"], [0, None, 1], id="one inserted between"),
        pytest.param(["a", "b"], ["b"], [1], id="one removed"),
        pytest.param(["a == 1"], ["a  ==\n  1 // one"], [0], id="reformatted"),
        pytest.param(["a == 1", "b"], ["c", "a==1"], [None, 0], id="reformatted and moved, the other replaced"),
        pytest.param(["a"], ["x"], [0], id="the only check edited"),
        pytest.param(["a", "b", "c"], ["a", "x", "c"], [0, 1, 2], id="one edited between others"),
        pytest.param(["a", "b", "c"], ["a", "x", "y", "c"], [0, None, None, 2], id="one replaced by two"),
        pytest.param(["a", "b", "c", "d"], ["a", "x", "y", "d"], [0, None, None, 3], id="two edited beside each other"),
        pytest.param(["a", "b", "c"], ["x", "b", "y"], [0, 1, 2], id="two edited apart"),
        pytest.param(["a", "a"], ["a"], [0], id="one of two equal checks removed"),
        pytest.param(["a"], ["a", "a"], [0, None], id="an equal check added"),
        pytest.param(["'"], ["'"], [0], id="text that is no expression"),
    ],
)
def test_a_check_is_carried_on(before: list[str], now: list[str], expected: list[int | None]) -> None:
    """Ambiguous cases stay separate."""
    assert expected == continued(before, now)


def test_a_check_that_returns_has_its_id_again() -> None:
    """The id of an expression is known from an earlier version than the last."""
    first, second = policy("a", "b"), policy("b")
    known = names_of(first, None, {})
    later = known | names_of(second, first, known)
    assert ids(first, known) == ids(first, names_of(first, second, later))


def test_an_old_expression_takes_no_id_that_another_check_has() -> None:
    """The expression was edited to another one, which carries on its id, and then written again beside it."""
    first, second, third = policy("a"), policy("x"), policy("x", "a")
    known = names_of(first, None, {})
    later = known | names_of(second, first, known)
    [edited, again] = ids(third, names_of(third, second, later))
    assert ids(first, known) == [edited]
    assert again != edited


def test_checks_of_two_policies_differ() -> None:
    """The name of the policy is part of the id."""
    one, other = policy("a"), policy("a", name="other")
    assert ids(one, names_of(one, None, {})) != ids(other, names_of(other, None, {}))


def test_ids_follow_from_names_alone() -> None:
    """Two databases agree: the ids are the same for ever."""
    check = check_id("ValidatingAdmissionPolicy", "replicas", "validation", "object.spec.replicas <= 5", 0)
    assert check == "c-f87d5a623836"
    number = problem_number(check, workload_key("apps", "Deployment", "shop", "web"))
    assert problem_id(number) == "p-5e31332e0014"


def test_a_problem_has_twelve_digits() -> None:
    """Leading zeros are kept."""
    assert problem_id(255) == "p-0000000000ff"
