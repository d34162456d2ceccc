"""Checks what a scan builds on before the scan begins, and accepts damage if the user wants it.

A scan reads a part of the base: its newest scan, and the newest rows. `assay db check` reads all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import Connection, Engine, update

from scanner.errors import StoreError
from scanner.store.address import Address
from scanner.store.closing_sums import replace_sums
from scanner.store.engine import reading_at_once
from scanner.store.integrity import UNREADABLE
from scanner.store.integrity_sums import SumCheck
from scanner.store.integrity_texts import COMPRESSED, SHARED_TEXTS, changed_texts

_MOST_ROWS: Final = 20_000
"""The number of findings, and of intervals of objects, that a scan reads."""
_MOST_TEXTS: Final = 1_000
"""The number of shared rows of each table that a scan reads."""
_SHOWN: Final = 5
_TEXTS: Final = tuple(table for table in SHARED_TEXTS if table not in COMPRESSED)


def base_damage(engine: Engine, cluster: int, *, everything: bool = False) -> list[str]:
    """The places of damage in what the next scan of a cluster builds on, or in all of the database. A first scan builds on nothing."""
    with reading_at_once(engine) as connection:
        check = SumCheck(connection)
        if not everything and not check.has_base(cluster):
            return []
        try:
            differences = list(check.everything() if everything else check.base(cluster, _MOST_ROWS))
            texts = list(_changed(connection, None if everything else _MOST_TEXTS))
        except UNREADABLE as error:
            return [f"rows cannot be decoded ({type(error).__name__})"]
        return [*texts, *(f"{each.where} ({each.what})" for each in differences)]


def refusal(address: Address, damage: Sequence[str]) -> StoreError:
    """The error of a scan that would build on damage."""
    return StoreError(
        f"The database {address.shown} is damaged, and a scan would build on the damage: {_shown(damage)}. "
        "Restore the database from a backup, and scan again; without a backup, pass --accept-damage to go on with the rows as they are. "
        "`assay db check` lists every problem."
    )


def acceptance(damage: Sequence[str]) -> str:
    """The note of a scan that accepts damage."""
    return f"the database was damaged before this scan, and --accept-damage accepted the rows as they were: {_shown(damage)}"


def accept(connection: Connection) -> None:
    """Let the digests and the sums be those of the rows that are there. The connection is in a transaction that writes history."""
    for table in _TEXTS:
        for number, now in list(changed_texts(connection, table)):
            if now is not None:
                connection.execute(update(table).where(table.c.id == number).values(digest=now))
    differences = list(SumCheck(connection).everything())
    replace_sums(connection, {each.key: each.now for each in differences if each.key is not None})


def _changed(connection: Connection, newest: int | None) -> Iterator[str]:
    for table in _TEXTS:
        if numbers := [number for number, _ in changed_texts(connection, table, newest)]:
            rows = ", ".join(map(str, numbers[:_SHOWN]))
            yield f"{table.name} {rows} (the content has changed since it was stored)"


def _shown(damage: Sequence[str]) -> str:
    more = len(damage) - _SHOWN
    return "; ".join(damage[:_SHOWN]) + (f"; and {more:,} more" if more > 0 else "")
