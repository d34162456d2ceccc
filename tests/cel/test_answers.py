"""The outcomes of recorded expressions are those of Kubernetes' own CEL: values, errors and refusals, word for word.

Errors of syntax have Assay's own words, and `test_syntax_errors.py` compares their places.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.oracle import ours
from tests.oracle.client import Oracle
from tests.oracle.compare import first_difference
from tests.oracle.record import OBJECTS, answered, recorded_answers, request, variables_of
from tests.requirements import KUBERNETES_CEL

RECORDED = recorded_answers()
BATCHES = [RECORDED[start : start + 25] for start in range(0, len(RECORDED), 25)]


@pytest.mark.parametrize(
    "batch", BATCHES, ids=lambda batch: str(batch[0]["expression"][:30].encode("ascii", "replace"))
)
def test_an_expression_has_the_outcome_of_kubernetes(batch: list[dict[str, Any]]) -> None:
    """Every value, error and refusal is upstream's, on an object, on null and on an odd object; a syntax error is refused."""
    for recorded in batch:
        mine = ours.reply(recorded["expression"], variables_of(recorded), OBJECTS)
        assert first_difference(recorded["answer"], _without_cost(mine), texts=True) is None, recorded["expression"]


def test_the_answers_are_still_those_of_kubernetes() -> None:
    """The recorded answers are those of the oracle, where it is built; maps may be walked in another order."""
    with Oracle(Path(KUBERNETES_CEL.require())) as oracle:
        replies = oracle.ask(request(recorded["expression"], variables_of(recorded)) for recorded in RECORDED)
    changed = [
        recorded["expression"]
        for recorded, reply in zip(RECORDED, replies, strict=True)
        if first_difference(recorded["answer"], answered(reply), texts=True) is not None
    ]
    assert [] == changed


def _without_cost(reply: Any) -> Any:
    return reply if "refused" in reply or "panic" in reply else answered(reply)
