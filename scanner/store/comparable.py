"""Finds the scan with which another one is compared: the newest earlier one of the same scope, operation, requester and mode."""

from __future__ import annotations

from sqlalchemy import Connection, select

from scanner.model.method import Method
from scanner.store import codec
from scanner.store.scans import USABLE
from scanner.store.tables import SCANS


def newest_comparable(connection: Connection, number: int, before: int) -> int | None:
    """The highest revision below `before` whose scan is comparable with the scan of a number; None if there is none."""
    own = SCANS.c
    same = own.cluster, own.source, own.scope, own.requester, own.method
    *wanted, method = connection.execute(select(*same).where(own.number == number)).one()
    earlier = (
        select(own.revision, own.method)
        .where(own.state.in_(USABLE), own.revision < before)
        .where(*(column == value for column, value in zip(same, wanted, strict=False)))
        .order_by(own.revision.desc())
        .execution_options(yield_per=1)
    )
    with connection.execute(earlier) as rows:
        return next((row.revision for row in rows if mode_of(row.method) == mode_of(method)), None)


def mode_of(text: str) -> tuple[object, ...]:
    """The part of the method of a scan, given as stored, that its verdicts can depend on."""
    method = codec.from_text(Method, text) if text else Method()
    sources = bool(method.policy_files), method.without_cluster_policies
    return method.kyverno_compat, method.network, method.network_to, sources
