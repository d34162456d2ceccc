"""The texts of policies and params that pages of findings show once, below the findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from scanner.model.outcome import Check, Finding
from scanner.model.policy import PolicyKey
from scanner.model.rule import RuleType
from scanner.report.by_policy import PolicySection
from scanner.report.definition import yaml_of
from scanner.report.marked_texts import MarkedText, marked_text
from scanner.report.site import Site
from scanner.report.words import param_name

_PROSE: Final = 600
_DESCRIBED: Final = 4_000
"""The characters of a text beside which a page has room for the description of its policy, too."""


class PlaceTexts:
    """The texts to which the findings of a report refer, by number. Each is rendered once, as HTML."""

    def __init__(self, site: Site, marked: dict[int, MarkedText] | None = None) -> None:
        """`marked` remembers texts of policies for later calls about the same report."""
        macros: Any = site.templates.get_template("places.html").module
        self._site: Final = site
        self._policy_macro, self._param_macro = macros.policy_text, macros.param_text
        self._sections: Final = site.document.policies
        self._numbers: Final = {section.key: number for number, section in enumerate(self._sections)}
        params = [rule for rule in site.document.rules if rule.type is RuleType.PARAM and rule.document is not None]
        self._params: Final = params
        self._param_numbers: Final = {kind_and_name(rule.name): number for number, rule in enumerate(params)}
        self._marked: Final[dict[int, MarkedText]] = {} if marked is None else marked
        self._policies: Final[dict[tuple[int, frozenset[int], int], str]] = {}
        self._rendered_params: Final[dict[int, str]] = {}

    def number(self, policy: PolicyKey) -> int:
        """The number of a policy. Raises ValueError for one whose findings were not counted."""
        if policy not in self._numbers:
            raise ValueError(f"findings of {policy[1]} were not counted")
        return self._numbers[policy]

    def section(self, number: int) -> PolicySection:
        """The policy with a number."""
        return self._sections[number]

    def check_number(self, number: int, check: Check) -> int:
        """The number of a check of a policy, or -1 for one without counts."""
        checks = (each.check for each in self._sections[number].checks)
        return next((place for place, each in enumerate(checks) if each == check), -1)

    def lines(self, number: int, check: Check) -> range | None:
        """The lines of a check in the text of its policy, or None if they are not known."""
        return self._text(number).places.get(check)

    def param_number(self, section: PolicySection, finding: Finding) -> int:
        """The number of a finding's param, or -1 if the report does not have its content."""
        kind = section.param_kind.partition(" ")[0]
        return self._param_numbers.get((kind, param_name(finding.param_namespace, finding.param_name)), -1)

    def policy_html(self, number: int, checks: Iterable[int], longest: int) -> str:
        """The text of a policy, with the lines of some of its checks marked; if it is longer, the lines around these."""
        key = number, frozenset(checks), longest
        if key not in self._policies:
            self._policies[key] = self._policy(*key)
        return self._policies[key]

    def param_html(self, number: int) -> str:
        """The content of a param."""
        if number not in self._rendered_params:
            rule = self._params[number]
            text = yaml_of(rule.document) if rule.document else ""
            self._rendered_params[number] = str(self._param_macro(number, rule.name, rule.masked, text))
        return self._rendered_params[number]

    def _policy(self, number: int, checks: frozenset[int], longest: int) -> str:
        section = self._sections[number]
        own = [section.checks[place].check for place in sorted(checks) if place >= 0]
        return str(
            self._policy_macro(
                number,
                _cut(section.title),
                _cut(self._site.document.title(section.key)),
                self._site.policy_path(section.key),
                str(section.severity),
                _cut(section.description) if longest >= _DESCRIBED else "",
                _cut(section.remediation),
                self._text(number).marking(own),
                longest,
            )
        )

    def _text(self, number: int) -> MarkedText:
        if number not in self._marked:
            section = self._sections[number]
            self._marked[number] = marked_text(section, [each.check for each in section.checks])
        return self._marked[number]


def _cut(text: str) -> str:
    return text if len(text) <= _PROSE else f"{text[:_PROSE]}…"


def kind_and_name(name: str) -> tuple[str, str]:
    """Kind and name of a param, as `ConfigMap shop/limits` or `example.com/Limits shop/limits` names it."""
    kind, _, rest = name.partition(" ")
    return kind.rpartition("/")[2], rest
