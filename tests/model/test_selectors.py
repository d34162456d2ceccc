"""Label selectors: how requirements are read and what they select."""

from __future__ import annotations

import pytest

from scanner.errors import ConfigurationError
from scanner.model.json import Json
from scanner.model.selector import EVERYTHING, Requirement, Selector, selector_of


def one(operator: str, *values: str) -> Selector:
    """A selector with one requirement on the label `app`."""
    return Selector((Requirement("app", operator, values),))


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        (EVERYTHING, {}, True),
        (EVERYTHING, {"app": "web"}, True),
        (one("In", "web", "api"), {"app": "web"}, True),
        (one("In", "web", "api"), {"app": "db"}, False),
        (one("In", "web"), {}, False),
        (one("NotIn", "web"), {}, True),
        (one("NotIn", "web"), {"app": "db"}, True),
        (one("NotIn", "web"), {"app": "web"}, False),
        (one("Exists"), {"app": ""}, True),
        (one("Exists"), {}, False),
        (one("DoesNotExist"), {}, True),
        (one("DoesNotExist"), {"app": "web"}, False),
    ],
)
def test_operators(selector: Selector, labels: dict[str, str], *, selected: bool) -> None:
    """An absent label satisfies NotIn and DoesNotExist, and nothing else."""
    assert selected == selector.matches(labels)


def test_all_requirements_count() -> None:
    """What matchLabels and matchExpressions ask is joined by and."""
    selector = selector_of({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]})
    assert [True, False, False] == [selector.matches(labels) for labels in ({"a": "1", "b": ""}, {"a": "1"}, {"b": ""})]


@pytest.mark.parametrize("value", [None, {}, {"matchLabels": {}}, {"matchLabels": None, "matchExpressions": []}])
def test_empty_selectors_select_everything(value: Json) -> None:
    """An absent selector is an empty one: the API's default."""
    assert selector_of(value).empty


def test_reading_does_not_depend_on_the_order_of_labels() -> None:
    """Two selectors that say the same are equal."""
    assert selector_of({"matchLabels": {"a": "1", "b": "2"}}) == selector_of({"matchLabels": {"b": "2", "a": "1"}})


@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        (one("Near"), '"Near" is not a valid label selector operator'),
        (one("In"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (one("NotIn"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (one("Exists", "x"), "values: Invalid value: values set must be empty for exists and does not exist"),
    ],
)
def test_a_selector_that_cannot_be_parsed_is_a_configuration_error(selector: Selector, fault: str) -> None:
    """It is the policy's fault whatever the labels are."""
    with pytest.raises(ConfigurationError) as caught:
        selector.matches({})
    assert fault == str(caught.value)
