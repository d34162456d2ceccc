"""Label selectors: how requirements are read and which labels they select."""

from __future__ import annotations

import pytest

from scanner.errors import ConfigurationError
from scanner.model.json import Json
from scanner.model.selector import EVERYTHING, Requirement, Selector, parse_selector


def selector_with(operator: str, *values: str) -> Selector:
    """A selector with one requirement on the label `app`."""
    return Selector((Requirement("app", operator, values),))


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        (EVERYTHING, {}, True),
        (EVERYTHING, {"app": "web"}, True),
        (selector_with("In", "web", "api"), {"app": "web"}, True),
        (selector_with("In", "web", "api"), {"app": "db"}, False),
        (selector_with("In", "web"), {}, False),
        (selector_with("NotIn", "web"), {}, True),
        (selector_with("NotIn", "web"), {"app": "db"}, True),
        (selector_with("NotIn", "web"), {"app": "web"}, False),
        (selector_with("Exists"), {"app": ""}, True),
        (selector_with("Exists"), {}, False),
        (selector_with("DoesNotExist"), {}, True),
        (selector_with("DoesNotExist"), {"app": "web"}, False),
    ],
)
def test_only_negative_operators_select_an_absent_label(
    selector: Selector, labels: dict[str, str], *, selected: bool
) -> None:
    """NotIn and DoesNotExist are true for an absent label; all other operators are false."""
    assert selected == selector.matches(labels)


def test_all_requirements_count() -> None:
    """A selector matches if every requirement of matchLabels and matchExpressions matches."""
    selector = parse_selector({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]})
    assert [True, False, False] == [selector.matches(labels) for labels in ({"a": "1", "b": ""}, {"a": "1"}, {"b": ""})]


@pytest.mark.parametrize("value", [None, {}, {"matchLabels": {}}, {"matchLabels": None, "matchExpressions": []}])
def test_empty_selectors_select_everything(value: Json) -> None:
    """The default of the API is an empty selector."""
    assert parse_selector(value).empty


def test_reading_does_not_depend_on_the_order_of_labels() -> None:
    """Two selectors with the same requirements are equal."""
    assert parse_selector({"matchLabels": {"a": "1", "b": "2"}}) == parse_selector(
        {"matchLabels": {"b": "2", "a": "1"}}
    )


@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        (selector_with("Near"), '"Near" is not a valid label selector operator'),
        (selector_with("In"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (selector_with("NotIn"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (selector_with("Exists", "x"), "values: Invalid value: values set must be empty for exists and does not exist"),
    ],
)
def test_a_selector_that_cannot_be_parsed_is_a_configuration_error(selector: Selector, fault: str) -> None:
    """The error does not depend on the labels of an object."""
    with pytest.raises(ConfigurationError) as caught:
        selector.matches({})
    assert fault == str(caught.value)
