"""The texts of the bindings of a policy and of its params, for the page of the policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from scanner.model.rule import RuleType
from scanner.report.batches import weight
from scanner.report.by_policy import PolicySection
from scanner.report.definition import yaml_of
from scanner.report.method import RuleSection
from scanner.report.place_texts import kind_and_name
from scanner.report.words import param_name

_HEAVIEST: Final = 60_000
"""Bytes of HTML: the page has room for the text of the policy, too."""


class RuleText(NamedTuple):
    """The text of a binding or of a param; `masked` if a part of it is withheld."""

    what: str
    name: str
    text: str
    masked: bool = False


class RuleTexts(NamedTuple):
    """The texts for which a page has room, of `total`."""

    shown: tuple[RuleText, ...]
    total: int


def texts_of(policy: PolicySection, rules: Iterable[RuleSection]) -> RuleTexts:
    """The texts of the bindings of a policy, and of those params among `rules` that the bindings used."""
    texts = (*_bindings(policy), *_params(policy, rules))
    return RuleTexts(tuple(_fitting(texts)), len(texts))


def _bindings(policy: PolicySection) -> Iterator[RuleText]:
    for binding in policy.bindings:
        if binding.manifest:
            yield RuleText("Binding", binding.name, yaml_of(binding.written or binding.manifest))


def _params(policy: PolicySection, rules: Iterable[RuleSection]) -> Iterator[RuleText]:
    kind = policy.param_kind.partition(" ")[0]
    used = {param_name(param.namespace, param.name) for binding in policy.bindings for param in binding.params}
    for rule in rules:
        if rule.type is not RuleType.PARAM or not rule.document:
            continue
        own, name = kind_and_name(rule.name)
        if own == kind and name in used:
            yield RuleText("Param", name, yaml_of(rule.document), rule.masked)


def _fitting(texts: Sequence[RuleText]) -> Iterator[RuleText]:
    room = _HEAVIEST
    for text in texts:
        room -= weight(text.name, text.text)
        if room < 0:
            return
        yield text
