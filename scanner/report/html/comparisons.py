"""The comparisons on the page of changes: with the scan before, and with those a week and a month ago, where such scans exist."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Final, NamedTuple

from scanner.posture.history.scan_diff import ScanDiff
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
    """A comparison: its causes, and the rules that differ and belong to none of these."""

    name: str
    title: str
    diff: ScanDiff
    causes: tuple[ShownCause, ...]
    rules: list[ShownRule]


def list_comparisons(document: Document) -> Iterator[ShownComparison]:
    """The comparisons of a report. Two periods that lead to one scan are one."""
    compare, seen = document.options.compare, set[str]()
    if compare is None:
        return
    for name, title, days in _PERIODS:
        diff = compare(days)
        if diff is None or diff.before.id in seen:
            continue
        seen.add(diff.before.id)
        causes = tuple(list_causes(diff, PROBLEMS))
        yield ShownComparison(name, title, diff, causes, list_rules(diff, besides=causes))
