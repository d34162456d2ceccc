"""The counts of a run as a table, and its differences, each with its simplest example."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from tests.integration.fuzz.case import Made, Outcome, tidied
from tests.integration.fuzz.compare import Compared, difference
from tests.integration.fuzz.run import Tally

_MOST = 300


def report(tally: Tally) -> str:
    """All of it."""
    return "\n".join([*_differences(tally), *_table(tally)])


def _table(tally: Tally) -> Iterator[str]:
    yield f"{'':16}{'comparisons':>12}{'class':>8}{'text':>8}"
    for kind in tally.comparisons:
        yield f"{kind:16}{tally.comparisons[kind]:>12}{tally.wrong[kind]:>8}{tally.texts[kind]:>8}"
    total = (tally.comparisons.total(), tally.wrong.total(), tally.texts.total())
    yield f"{'all':16}{total[0]:>12}{total[1]:>8}{total[2]:>8}"
    for reason, number in tally.explained.most_common():
        yield f"explained {number:>6}  {reason}"


def _differences(tally: Tally) -> Iterator[str]:
    for signature, number in reversed(tally.alike.most_common()):
        yield from _example(number, tally.examples[signature])


def _example(number: int, comparison: Compared) -> Iterator[str]:
    yield f"{number:5} × {'text' if comparison.same_class else 'class'}: {comparison.operation} {comparison.where} {comparison.case.shown}"
    created = comparison.operation == "CREATE"
    if isinstance(comparison.theirs, Made) and isinstance(comparison.ours, Made):
        made, predicted = (
            tidied(outcome.document, created=created) for outcome in (comparison.theirs, comparison.ours)
        )
        for how, path, theirs, ours in difference(made, predicted):
            yield f"        ours {how} {path}: server {_short(theirs)}, ours {_short(ours)}"
        return
    yield f"        server {_described(comparison.theirs)}"
    yield f"        ours   {_described(comparison.ours)}"


def _described(outcome: Outcome) -> str:
    return "takes it" if isinstance(outcome, Made) else f"{outcome.code} {outcome.message}"


def _short(value: object) -> str:
    return orjson.dumps(value).decode()[:_MOST]
