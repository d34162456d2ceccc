"""Explains an unexpected error by damage of the database, if there is any."""

from __future__ import annotations

from scanner.errors import StoreError
from scanner.store.address import Address
from scanner.store.integrity import connection_to_check, problems


def reject_damage(address: Address, error: Exception) -> None:
    """Raise StoreError with the first problem of a database; do nothing if the database has none, so that the error is a bug."""
    with connection_to_check(address) as connection:
        problem = next(iter(problems(connection)), None)
    if problem is not None:
        raise StoreError(
            f"The database {address.shown} is damaged: {problem.where}: {problem.what}. {problem.remedy} "
            "`assay db check` lists every problem."
        ) from error
