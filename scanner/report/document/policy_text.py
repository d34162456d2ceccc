"""The texts of policies: manifests as YAML with expressions as blocks, numbered lines, and the lines at which checks stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias, assert_never

import yaml

from scanner.model.json import Json
from scanner.model.outcome import Check, CheckKind
from scanner.report.document.by_policy import PolicySection
from scanner.report.text.numbers import plural

_WIDE = 10_000
_SHORT_ITEM, _SHORT_LIST = 40, 70
"""The most characters of an item, and of all items, of a list that stands on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, short lists of words on one line, and no aliases."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Repeat equal values: the author wrote no anchors."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def _list(dumper: yaml.SafeDumper, items: list[object]) -> yaml.SequenceNode:
    words = [str(item) for item in items if not isinstance(item, (dict, list))]
    is_short = len(words) == len(items) and sum(map(len, words)) <= _SHORT_LIST
    is_short = is_short and all(len(word) <= _SHORT_ITEM and "\n" not in word for word in words)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def definition_of(section: PolicySection) -> str:
    """The manifest of a policy as YAML, as its author wrote it where that is known; an empty text if the scan did not record it."""
    manifest = section.written or section.manifest
    return yaml_of(manifest) if manifest else ""


def yaml_of(document: Json) -> str:
    """A document as YAML, with texts of several lines as blocks and short lists of words, as of verbs, on one line."""
    return yaml.dump(_make_plain(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDE)


def _make_plain(value: Json) -> object:
    if isinstance(value, Mapping):
        return {key: _make_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_make_plain(item) for item in value]
    return value


_Lines: TypeAlias = range
_CONTEXT: Final = 3
_LINE: Final = 1_000
_MOST: Final = 60
_READABLE: Final = 200_000
"""The characters of a text in which checks are searched: an object of Kubernetes may be longer, but no policy is read by people then."""

_SHORT: Final = 20_000
"""The characters of a text that is remembered."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a text; `number` is 0 for the mark of lines that are left out."""

    number: int
    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class MarkedText:
    """The text of a policy as lines. `places` has the lines of each check of which the place is known, from 1."""

    lines: tuple[str, ...]
    places: dict[Check, _Lines] = field(default_factory=dict)

    def mark_only(self, checks: Iterable[Check]) -> MarkedText:
        """Return the text with the lines of some checks alone marked."""
        return MarkedText(self.lines, {check: self.places[check] for check in checks if check in self.places})

    def list_lines(self, longest: int) -> Iterator[TextLine]:
        """The text, or if it has more characters than `longest` only the lines around the checks."""
        marked = {number for place in self.places.values() for number in place}
        numbers: Sequence[int] = range(1, len(self.lines) + 1)
        if sum(map(len, self.lines)) > longest:
            near = {
                line for number in sorted(marked)[:_MOST] for line in range(number - _CONTEXT, number + _CONTEXT + 1)
            }
            numbers = sorted((near or {*range(1, _MOST)}).intersection(numbers))
        before = 0
        for number in numbers:
            if number > before + 1:
                yield TextLine(0, _write_left_out(number - before - 1))
            text = self.lines[number - 1]
            yield TextLine(number, text if len(text) <= _LINE else f"{text[:_LINE]}…", number in marked)
            before = number
        if before < len(self.lines):
            yield TextLine(0, _write_left_out(len(self.lines) - before))


def _write_left_out(number: int) -> str:
    return f"… {plural(number, 'line')} left out"


def mark_checks(section: PolicySection, checks: Sequence[Check]) -> MarkedText:
    """The text of a policy with the lines of some of its checks in this scan; no lines if the scan did not record the policy."""
    text = definition_of(section)
    if not text or len(text) > _READABLE:
        return MarkedText(tuple(text.splitlines()))
    make = _mark_once if len(text) <= _SHORT else _mark
    return make(text, tuple(checks))


def _mark(text: str, checks: tuple[Check, ...]) -> MarkedText:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    places = {check: lines for check in checks if (lines := _place(root, check)) is not None}
    return MarkedText(tuple(text.splitlines()), places)


_mark_once: Final = lru_cache(maxsize=256)(_mark)
"""Scans of all dates have the same policies, and a text takes long to parse."""


def _place(root: yaml.Node | None, check: Check) -> _Lines | None:
    """The lines of a check: where the policy's form has it, else where its expression stands.

    An expression that the text does not have is derived from the one at the place of the check, as Kyverno derives rules for
    the controllers of pods.
    """
    expected = _find_node(root, *_path(check))
    expression = check.expression.strip()
    if expected is not None and (not expression or _has(expected, expression)):
        node = next((each for each in _scalars(expected) if each.value.strip() == expression), expected)
        return _lines(node)
    scalar = next((each for each in _scalars(root) if each.value.strip() == expression), None) if expression else None
    derived = scalar or _find_node(expected, "expression") or expected
    return None if derived is None else _lines(derived)


def _path(check: Check) -> tuple[str | int, ...]:
    match check.kind:
        case CheckKind.VALIDATION:
            return "spec", "validations", check.index
        case CheckKind.AUDIT_ANNOTATION:
            return "spec", "auditAnnotations", check.index
        case CheckKind.MUTATION:
            return "spec", "mutations", check.index
        case CheckKind.CONDITIONS:
            return "spec", "matchConditions"
        case CheckKind.CONFIGURATION:
            return "spec", "paramKind"
        case _ as never:
            assert_never(never)


def _find_node(node: yaml.Node | None, *path: str | int) -> yaml.Node | None:
    for step in path:
        match node, step:
            case yaml.MappingNode(), str():
                node = next((value for key, value in node.value if key.value == step), None)
            case yaml.SequenceNode(), int() if step < len(node.value):
                node = node.value[step]
            case _:
                return None
    return node


def _has(node: yaml.Node, text: str) -> bool:
    return any(each.value.strip() == text for each in _scalars(node))


def _scalars(node: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    match node:
        case yaml.ScalarNode():
            yield node
        case yaml.SequenceNode():
            for item in node.value:
                yield from _scalars(item)
        case yaml.MappingNode():
            for _, value in node.value:
                yield from _scalars(value)


def _lines(node: yaml.Node) -> _Lines:
    """The lines of a node, from 1; a block ends at the beginning of the line after it."""
    first, end = node.start_mark.line + 1, node.end_mark
    last = end.line if end.column == 0 else end.line + 1
    return range(first, max(first, last) + 1)
