"""What the first page of a scan needs is read while the process does something else."""

from __future__ import annotations

from threading import Barrier, BrokenBarrierError, Event

import pytest

from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.posture.triage import Triage
from scanner.report.document.document import document_of, make_document
from scanner.web.views.library import AnswerAhead, CountsAhead, Questions, ScanLibrary

SECONDS = 20.0


def test_an_answer_is_read_before_it_is_needed() -> None:
    """And given once: it can be large, and a view is kept for long."""
    asked: list[int] = []
    read = Event()

    def double(number: int) -> int:
        asked.append(number)
        read.set()
        return 2 * number

    ahead = AnswerAhead(Questions(1).ask(double, 4).result, double, 4)
    assert read.wait(SECONDS)
    assert 8 == ahead(4)
    assert [4] == asked
    assert 8 == ahead(4)
    assert [4, 4] == asked


def test_another_question_is_asked_at_once() -> None:
    """The answer that was read is for its own question alone."""
    ahead = AnswerAhead(lambda: 8, lambda number: 2 * number, 4)
    assert 10 == ahead(5)
    assert 8 == ahead(4)


def test_an_error_is_raised_where_the_answer_is_needed() -> None:
    """Once, too: a database that was away may be back."""
    errors = [OSError("away")]

    def number() -> int:
        if errors:
            raise errors.pop()
        return 1

    ahead = AnswerAhead(Questions(1).ask(number).result, number)
    with pytest.raises(OSError, match="away"):
        ahead()
    assert 1 == ahead()


def test_some_questions_are_asked_at_a_time() -> None:
    """Each has a connection, of which there are not many."""
    questions, meeting = Questions(2), Barrier(3)

    def meet() -> int:
        return meeting.wait(0.3)

    asked = [questions.ask(meet) for _ in range(3)]
    assert any(isinstance(each.exception(SECONDS), BrokenBarrierError) for each in asked)


def test_the_document_is_the_same(examples: str) -> None:
    """As that of a record that is read when it is needed."""
    library = ScanLibrary(examples)
    with library.use_reader() as reader:
        scan = reader.find_newest_scan(library.clusters()[0].id, None)
        assert scan is not None
        record = reader.read_scan(scan.id)
        triage = Triage(DEFAULT_SETTINGS, record)
        now, ahead = (
            document_of(record),
            make_document(record, triage, counts=CountsAhead(Questions(4), record, triage)),
        )
        for name in ("totals", "findings_total", "policies", "namespaces", "severities", "problems", "worst", "score"):
            assert getattr(now, name) == getattr(ahead, name), name
        for name in ("owners", "groups", "problems_by_namespace", "problems_by_owner"):
            assert getattr(now, name) == getattr(ahead, name), name
        assert now.owner_scores() == ahead.owner_scores() == ahead.owner_scores()
    library.close()
