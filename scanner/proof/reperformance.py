"""Compares the verdicts of a packet with those of its replay: what is equal, what the redaction prevents, and what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scanner.model.json import Json, as_list, as_text, dig
from scanner.model.outcome import SkipReason
from scanner.model.policy import PolicyKey
from scanner.proof.verdicts import CheckName, ObjectName, Replay, Verdict, read_verdict

_FIELDS = ("apiVersion", "kind", "namespace", "name", "uid")
_MASK: Final = re.compile(r"\[redacted(?:: [a-zA-Z ]+)?\]")
"""What a message has in place of a secret (`audit.redact`)."""


class ItemState(StrEnum):
    """The result of an item. `redacted`: the redaction prevents some of its checks, and the others are equal."""

    REPRODUCED = "reproduced"
    REDACTED = "redacted"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class ExpectedItem:
    """An item of a packet: its id in the sample, its object, and the verdicts that the scan recorded."""

    id: str
    object: ObjectName
    verdicts: tuple[Verdict, ...]

    def to_json(self) -> dict[str, Json]:
        """The item as a JSON object."""
        names: dict[str, Json] = dict(zip(_FIELDS, self.object, strict=True))
        return {"id": self.id, "object": names, "verdicts": [verdict.to_json() for verdict in self.verdicts]}


def read_items(value: Json) -> tuple[ExpectedItem, ...]:
    """The items that `to_json` wrote. Raises ValueError for another document."""
    return tuple(
        ExpectedItem(
            as_text(dig(item, "id")),
            ObjectName(*(as_text(dig(item, "object", field)) for field in _FIELDS)),
            tuple(map(read_verdict, as_list(dig(item, "verdicts")))),
        )
        for item in as_list(value)
    )


@dataclass(frozen=True, slots=True)
class ItemResult:
    """The result of an item, with the checks that the redaction prevents, and a sentence for each difference."""

    item: ExpectedItem
    state: ItemState
    redacted: tuple[CheckName, ...] = ()
    differences: tuple[str, ...] = ()


def compare(
    items: Sequence[ExpectedItem], replay: Replay, policies: frozenset[PolicyKey] | None
) -> tuple[ItemResult, ...]:
    """The results of the items. Each item has all verdicts of these policies about its object, or of every policy for None."""
    return tuple(_compare_item(item, replay, policies) for item in items)


def _compare_item(item: ExpectedItem, replay: Replay, policies: frozenset[PolicyKey] | None) -> ItemResult:
    evaluated = replay.items.get(item.object)
    if evaluated is None:
        return ItemResult(item, ItemState.DIFFERS, differences=("the object was not evaluated",))
    made = {verdict.check: verdict for verdict in evaluated.verdicts}
    expected = {verdict.check: verdict for verdict in item.verdicts}
    hidden_policies = {check.policy_key for check, verdict in made.items() if _is_redacted(verdict)}
    redacted = [
        check
        for check, verdict in expected.items()
        if not _is_same(verdict, made.get(check))
        and (
            _is_redacted(made[check])
            if check in made
            else check.policy_key in hidden_policies or replay.is_hidden(check)
        )
    ]
    differences = [
        f"{check}: the scan has {verdict}; evaluated again: {made.get(check, 'no verdict')}"
        for check, verdict in expected.items()
        if not _is_same(verdict, made.get(check)) and check not in redacted
    ]
    differences += [
        f"{check}: the scan has no verdict; evaluated again: {verdict}"
        for check, verdict in made.items()
        if check not in expected and not _is_redacted(verdict) and (policies is None or check.policy_key in policies)
    ]
    state = ItemState.DIFFERS if differences else ItemState.REDACTED if redacted else ItemState.REPRODUCED
    return ItemResult(item, state, tuple(redacted), tuple(differences))


def _is_same(verdict: Verdict, made: Verdict | None) -> bool:
    """Return whether two verdicts are equal. Masked parts of the message are left out.

    A scan masks each part of a message that is equal to a secret of the object, such as a name that a variable has, too. A packet
    does not have the secret, so what is made of it has that part unmasked.
    """
    if made is None or made._replace(detail=verdict.detail) != verdict:
        return False
    return made.detail == verdict.detail or _fits(verdict.detail, made.detail)


def _fits(masked: str, text: str) -> bool:
    """Return whether a text is a masked one with any text in place of each mask."""
    first, *others = _MASK.split(masked)
    if not others or not text.startswith(first):
        return False
    place, end = len(first), len(text) - len(others[-1])
    for part in others[:-1]:
        place = text.find(part, place, max(end, 0))
        if place < 0:
            return False
        place += len(part)
    return place <= end and text.endswith(others[-1])


def _is_redacted(verdict: Verdict) -> bool:
    return verdict.outcome == "skipped" and verdict.detail == SkipReason.REDACTED.value


def count_states(results: Sequence[ItemResult]) -> dict[ItemState, int]:
    """The number of items by state."""
    return {state: sum(result.state is state for result in results) for state in ItemState}


def describe(results: Sequence[ItemResult]) -> Iterator[str]:
    """The results in lines: the number of items that are equal, then those that are not, with the reasons."""
    counts = count_states(results)
    yield f"{counts[ItemState.REPRODUCED]} of {len(results)} reproduced."
    if counts[ItemState.REDACTED]:
        checks = sum(len(result.redacted) for result in results)
        yield (
            f"{counts[ItemState.REDACTED]} of {len(results)} in part: the redaction prevents {checks} of their checks, "
            "and all others are equal."
        )
    if counts[ItemState.DIFFERS]:
        yield f"{counts[ItemState.DIFFERS]} of {len(results)} differ."
    for result in results:
        if result.state is not ItemState.REPRODUCED:
            yield f"  {result.state}: {result.item.id}"
            yield from (f"    {check}" for check in result.redacted)
            yield from (f"    {difference}" for difference in result.differences)
