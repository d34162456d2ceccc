"""The results of filters are kept while there is room, and no longer than the view of their scan."""

from __future__ import annotations

import gc

from scanner.web.kept_choices import Chosen, KeptChoices
from scanner.web.problem_list import ListedProblem
from tests.web.served import served

_OK = 200


def test_the_oldest_result_goes_first() -> None:
    """A result that was asked for lately stays."""
    kept, made = KeptChoices(most=2), list[str]()

    def choose(name: str) -> None:
        def choice() -> Chosen:
            made.append(name)
            return Chosen((), 0)

        kept.get(name, choice)

    for name in "abaca":
        choose(name)
    assert list("abc") == made
    choose("b")
    assert list("abcb") == made


def test_results_go_with_the_view_of_their_scan(examples: str) -> None:
    """Its problems are in no other place: a result that stayed would keep them in memory."""
    before = _problems()
    with served(examples) as opened:
        assert opened.get("findings.html?status=open").status == _OK
        assert _problems() > before
    gc.collect()
    assert _problems() == before


def _problems() -> int:
    """The number of problems of lists in memory."""
    return sum(isinstance(each, ListedProblem) for each in gc.get_objects())
