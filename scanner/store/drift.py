"""Drift as compact JSON, the text that `verdicts` stores: equal changes have equal texts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, cast

from scanner.model.outcome import Change, WouldChange


def drift_text(outcome: WouldChange) -> str:
    """The text of drift."""
    written = {
        "patch": _written(outcome.patch),
        "converges": outcome.converges,
        "together": _written(outcome.together),
        "orderMatters": outcome.order_matters,
        **({"undone": True} if outcome.undone else {}),
        **({"refused": outcome.refused} if outcome.refused else {}),
    }
    return json.dumps(written, separators=(",", ":"), sort_keys=True)


@lru_cache(maxsize=4096)
def drift_of(text: str) -> WouldChange:
    """The drift of a text from `drift_text`."""
    read: dict[str, Any] = json.loads(text)
    return WouldChange(
        patch=_read(read["patch"]),
        converges=bool(read["converges"]),
        together=_read(read["together"]),
        order_matters=bool(read["orderMatters"]),
        undone=bool(read.get("undone")),
        refused=str(read.get("refused", "")),
    )


def _written(changes: Iterable[Change]) -> list[list[object]]:
    return [[change.op, change.path, change.value, change.was] for change in changes]


def _read(changes: Iterable[list[Any]]) -> tuple[Change, ...]:
    return tuple(Change(op, cast("str", path), value, was=was) for op, path, value, was in changes)
