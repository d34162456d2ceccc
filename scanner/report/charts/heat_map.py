"""Namespaces and policies by their open problems: the worst of both, and all others together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from scanner.model.policy import PolicyKey

MOST: Final = 20
"""The namespaces and the policies that a heat map shows; the others are one row and one column."""
_SHADES: Final = 6


class HeatCell(NamedTuple):
    """The open problems of a policy in a namespace, and their shade, from 0 for none to 5 for the most."""

    problems: int
    shade: int


class HeatRow(NamedTuple):
    """The cells of a namespace, in the order of the policies, and their sum; None stands for all other namespaces together."""

    namespace: str | None
    cells: tuple[HeatCell, ...]
    total: int


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The open problems of each policy in each namespace. Without a policy a column has all other policies; `other_namespaces` and `other_policies` count these."""

    policies: tuple[PolicyKey | None, ...]
    rows: tuple[HeatRow, ...]
    totals: tuple[int, ...]
    other_namespaces: int
    other_policies: int


def make_heat_map(cells: Mapping[tuple[str, PolicyKey], int]) -> HeatMap | None:
    """The worst namespaces and policies, by their open problems; all others are a row and a column at the end."""
    if not cells:
        return None
    of_namespaces, of_policies = Counter[str](), Counter[PolicyKey]()
    for (namespace, policy), number in cells.items():
        of_namespaces[namespace] += number
        of_policies[policy] += number
    namespaces = sorted(of_namespaces, key=lambda each: (-of_namespaces[each], each))
    policies = sorted(of_policies, key=lambda each: (-of_policies[each], each))
    shown_namespaces, shown_policies = namespaces[:MOST], policies[:MOST]
    sums = Counter[tuple[str | None, PolicyKey | None]]()
    for (namespace, policy), number in cells.items():
        row = namespace if namespace in shown_namespaces else None
        sums[row, policy if policy in shown_policies else None] += number
    rows: list[str | None] = [*shown_namespaces, *([None] if len(namespaces) > MOST else [])]
    columns: list[PolicyKey | None] = [*shown_policies, *([None] if len(policies) > MOST else [])]
    most = max((sums[row, column] for row in shown_namespaces for column in shown_policies), default=0)
    return HeatMap(
        policies=tuple(columns),
        rows=tuple(
            HeatRow(
                row,
                tuple(HeatCell(sums[row, column], _find_shade(sums[row, column], most)) for column in columns),
                sum(sums[row, column] for column in columns),
            )
            for row in rows
        ),
        totals=tuple(sum(sums[row, column] for row in rows) for column in columns),
        other_namespaces=max(0, len(namespaces) - MOST),
        other_policies=max(0, len(policies) - MOST),
    )


def _find_shade(number: int, most: int) -> int:
    """Shades by the share of the highest number: every number above zero has one, and equal numbers have equal ones."""
    return 0 if not number else max(1, min(_SHADES - 1, -(-number * (_SHADES - 1) // max(1, most))))
