"""Several hundred expressions and what Kubernetes' own CEL said about each: values, errors and refusals, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import client, ours
from tests.oracle.client import Oracle
from tests.oracle.compare import first_difference
from tests.oracle.record import OBJECTS, answered, recorded_answers, request, variables_of

ENTRIES = recorded_answers()
BATCHES = [ENTRIES[start : start + 25] for start in range(0, len(ENTRIES), 25)]


@pytest.mark.parametrize(
    "batch", BATCHES, ids=lambda batch: str(batch[0]["expression"][:30].encode("ascii", "replace"))
)
def test_an_expression_means_what_it_means_to_kubernetes(batch: list[dict[str, Any]]) -> None:
    """Every value, error and refusal is upstream's, on an object, on null and on an odd object."""
    for entry in batch:
        mine = ours.reply(entry["expression"], variables_of(entry), OBJECTS)
        assert first_difference(entry["answer"], _without_cost(mine), texts=True) is None, entry["expression"]


def test_the_answers_are_still_those_of_kubernetes() -> None:
    """The file says what the oracle says, where there is one; maps may be walked in another order."""
    path = client.program()
    if path is None:
        pytest.skip("Kubernetes' CEL is not built: make oracle")
    with Oracle(path) as oracle:
        replies = oracle.ask(request(entry["expression"], variables_of(entry)) for entry in ENTRIES)
    changed = [
        entry["expression"]
        for entry, reply in zip(ENTRIES, replies, strict=True)
        if first_difference(entry["answer"], answered(reply), texts=True) is not None
    ]
    assert [] == changed


def _without_cost(reply: Any) -> Any:
    return reply if "refused" in reply or "panic" in reply else answered(reply)
