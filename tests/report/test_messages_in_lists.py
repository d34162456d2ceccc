"""Lists say what is wrong with an object: its message on one line, and the check by its name."""

from __future__ import annotations

import pytest

from scanner.model.outcome import Check, CheckKind, Errored, Violated
from scanner.report.html.row_files import ListedRow, RowPlace, mark_workloads
from scanner.report.text.titles import check_title, sentence_of
from tests.report.records import small_record


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("no owner label", "no owner label"),
        ("failed expression: has(object.spec)", "Owners are named"),
        ("two\n  lines", "two; lines"),
    ],
)
def test_a_violation_is_a_sentence(message: str, sentence: str) -> None:
    """Without an expression, for which the title of the policy stands."""
    finding = next(small_record().findings()).finding
    assert sentence == sentence_of(finding._replace(outcome=Violated(message)), "Owners are named")


def test_an_error_has_no_expression() -> None:
    """The end of the message of the API server says what is wrong."""
    finding = next(small_record().findings()).finding
    errored = Errored("expression 'object.spec.replicas < 3' resulted in error: no such key: replicas", would_deny=True)
    assert "evaluation fails: no such key: replicas" == sentence_of(finding._replace(outcome=errored), "")


@pytest.mark.parametrize(
    ("expression", "title"),
    [
        ("hostNamespaces", "hostNamespaces"),
        ("seLinuxOptions", "seLinuxOptions"),
        ("true", "validations[2]"),
        ("object", "validations[2]"),
        ("object.spec.replicas < 3", "validations[2]"),
        ("", "validations[2]"),
    ],
)
def test_a_check_has_a_readable_name(expression: str, title: str) -> None:
    """That of a language without expressions, such as Pod Security; else its place in the policy."""
    assert title == check_title(Check(CheckKind.VALIDATION, 2, expression))


def row(workload: str, problem: str) -> ListedRow:
    """A row of a list."""
    place = RowPlace((0, False, 2, 0), workload, ("ValidatingAdmissionPolicy", "p"), problem)
    return ListedRow(place, f'<tr role="row"><th>{workload}<span class="of"></span></th></tr>')


def test_problems_of_a_workload_stand_together() -> None:
    """The first row has their number, the others have the name of the workload for readers of a screen alone."""
    first, second, alone = mark_workloads([row("shop/web", "p-1"), row("shop/web", "p-2"), row("shop/api", "p-3")])
    assert '<span class="of quiet">2 problems here</span>' in first
    assert second.startswith('<tr role="row" class="same">')
    assert '<tr role="row"><th>shop/api</th></tr>' == alone


def test_several_rows_of_one_problem_are_one_problem() -> None:
    """A problem with many objects has several rows."""
    first, _ = mark_workloads([row("shop/web", "p-1"), row("shop/web", "p-1")])
    assert "problems here" not in first
