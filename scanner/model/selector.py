"""Label selectors, which bindings, rules and param references share.

Source of truth: `metav1.LabelSelectorAsSelector` and `labels.Requirement.Matches` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scanner.errors import ConfigurationError
from scanner.model.json import Json, as_list, as_text, dig, text_map, texts

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class Requirement:
    """An item of matchExpressions; an item of matchLabels is `In` with one value."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy this requirement."""
        if self.operator == "In":
            return labels.get(self.key) in self.values
        # An object without the label satisfies NotIn, as upstream.
        if self.operator == "NotIn":
            return labels.get(self.key) not in self.values
        return (self.key in labels) == (self.operator == "Exists")

    def find_fault(self) -> str:
        """The API's error about this requirement, or an empty string."""
        if self.operator not in _OPERATORS:
            return f'"{self.operator}" is not a valid label selector operator'
        if self.operator in ("In", "NotIn") and not self.values:
            return "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        if self.operator in ("Exists", "DoesNotExist") and self.values:
            return "values: Invalid value: values set must be empty for exists and does not exist"
        return ""


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector; without requirements it selects everything."""

    requirements: tuple[Requirement, ...] = ()

    @property
    def empty(self) -> bool:
        """Return whether this is `{}`, which matches everything."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy every requirement.

        Raises ConfigurationError for a selector that the API server cannot parse.
        """
        self.reject_unparsable()
        return all(requirement.matches(labels) for requirement in self.requirements)

    def list_undecided_keys(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """The keys that decide whether the selector matches labels of which only `labels` are known; empty if none does.

        A selector that the API server cannot parse is an error with any labels.
        """
        known = [requirement for requirement in self.requirements if requirement.key in labels]
        if self.find_fault() or not all(requirement.matches(labels) for requirement in known):
            return ()
        return tuple(dict.fromkeys(each.key for each in self.requirements if each.key not in labels))

    def find_fault(self) -> str:
        """The API server's error about the selector, or an empty string."""
        return next((fault for requirement in self.requirements if (fault := requirement.find_fault())), "")

    def reject_unparsable(self) -> None:
        """Raise ConfigurationError for a selector that the API server cannot parse."""
        if fault := self.find_fault():
            raise ConfigurationError(fault)


EVERYTHING = Selector()


def parse_selector(value: Json) -> Selector:
    """Read a LabelSelector from its JSON form."""
    labels = text_map(dig(value, "matchLabels"))
    exact = (Requirement(key, "In", (labels[key],)) for key in sorted(labels))
    expressions = (_parse_requirement(item) for item in as_list(dig(value, "matchExpressions")))
    return Selector((*exact, *expressions))


def _parse_requirement(value: Json) -> Requirement:
    operator = as_text(dig(value, "operator"))
    return Requirement(as_text(dig(value, "key")), operator, texts(dig(value, "values")))
