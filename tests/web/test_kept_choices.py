"""The results of filters are kept while there is room, and no longer than the view of their scan."""

from __future__ import annotations

import gc

from scanner.model.finding_index import FindingIndex
from scanner.web.kept_choices import Chosen, KeptChoices
from scanner.web.problem_list import ListedProblems, ProblemList
from tests.web.served import served

_OK = 200


def test_the_oldest_result_goes_first() -> None:
    """A result that was asked for lately stays."""
    kept, made = KeptChoices(most=2), list[str]()
    empty = ProblemList(FindingIndex(), lambda _: 0, {})

    def choose(name: str) -> None:
        def choice() -> Chosen:
            made.append(name)
            return Chosen(ListedProblems(empty, ()), 0)

        kept.get(name, choice)

    for name in "abaca":
        choose(name)
    assert list("abc") == made
    choose("b")
    assert list("abcb") == made


def test_results_go_with_the_view_of_their_scan(examples: str) -> None:
    """A result refers to the list of its view: one that stayed would keep the list in memory."""
    before = _lists()
    with served(examples) as opened:
        assert opened.get("findings.html?status=open").status == _OK
        assert _lists() > before
    gc.collect()
    assert _lists() == before


def _lists() -> int:
    """The number of lists of problems in memory."""
    return sum(isinstance(each, ProblemList) for each in gc.get_objects())
