"""The comparisons on the page of changes: with the scan before, and with those a week and a month ago, where such scans exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Final, NamedTuple, assert_never

from scanner.posture.history.scan_diff import DifferingProblem, ScanDiff
from scanner.report.diff.shown import ShownCause, ShownRule, list_causes, list_rules
from scanner.report.diff.words import (
    also_words,
    change_words,
    count_problems,
    counts_line,
    message_lines,
    rules_sentence,
    workload_words,
)
from scanner.report.document.document import Document

PROBLEMS: Final = 20
"""The problems of each cause that the page shows: the list of findings has all that are open."""
_PERIODS: Final = (
    ("before", "Since the scan before", 0),
    ("week", "Since a week ago", 7),
    ("month", "Since a month ago", 30),
)
WORDS: Final = SimpleNamespace(
    also_words=also_words,
    change_words=change_words,
    count_problems=count_problems,
    counts_line=counts_line,
    message_lines=message_lines,
    rules_sentence=rules_sentence,
    workload_words=workload_words,
)
"""What the template calls."""


class ShownComparison(NamedTuple):
    """A comparison: its causes, and the rules that differ and belong to none of these.

    `above` are the texts that comparisons above it show with the same words: paper has each of these once.
    """

    name: str
    title: str
    diff: ScanDiff
    causes: tuple[ShownCause, ...]
    rules: list[ShownRule]
    above: frozenset[str]

    def is_above(self, item: DifferingProblem | ShownRule) -> bool:
        """Return whether a comparison above shows a problem or a rule with the same words."""
        return _words_of(item) in self.above

    def count_above(self, problems: Iterable[DifferingProblem]) -> int:
        """The number of problems that a comparison above shows with the same words."""
        return sum(map(self.is_above, problems))

    def list_words(self) -> Iterator[str]:
        """The words of every problem and rule of the comparison."""
        for cause in self.causes:
            yield from map(_words_of, cause.problems)
            yield from map(_words_of, cause.rules)
        yield from map(_words_of, self.rules)


def _words_of(item: DifferingProblem | ShownRule) -> str:
    """What a comparison shows of a problem or a rule, as one text to compare."""
    match item:
        case DifferingProblem():
            return repr((item.id, change_words(item), item.cause.also and also_words(item), list(message_lines(item))))
        case ShownRule():
            return repr(item)
        case _ as never:
            assert_never(never)


def list_comparisons(document: Document) -> Iterator[ShownComparison]:
    """The comparisons of a report. Two periods that lead to one scan are one."""
    compare, seen, words = document.options.compare, set[str](), set[str]()
    if compare is None:
        return
    for name, title, days in _PERIODS:
        diff = compare(days)
        if diff is None or diff.before.id in seen:
            continue
        seen.add(diff.before.id)
        causes = tuple(list_causes(diff, PROBLEMS))
        shown = ShownComparison(name, title, diff, causes, list_rules(diff, besides=causes), frozenset(words))
        words.update(shown.list_words())
        yield shown
