"""Finds the scan with which another one is compared: the newest earlier one of the same scope, operation, requester and mode.

A preview, which is a scan with assumed bindings, is compared with such a scan like any other, and is itself no baseline of a later one:
differences, gates and the banner *the rules changed* compare what is in force. See ADR 7.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, select

from scanner.model.method import Method
from scanner.model.scan import Scope
from scanner.store import codec
from scanner.store.scans import USABLE
from scanner.store.tables import SCANS


def newest_comparable(
    connection: Connection,
    number: int,
    before: int,
    *,
    with_report: bool = False,
    previews: bool = False,
) -> int | None:
    """The highest revision below `before` whose scan is comparable with the scan of a number; None if there is none.

    The scan may be incomplete: what it did not check stays open in its history. `with_report` leaves out pruned scans, and
    `previews` includes previews.
    """
    own = SCANS.c
    same = own.cluster, own.source, own.scope, own.requester, own.method
    *wanted, method = connection.execute(select(*same).where(own.number == number)).one()
    earlier = (
        select(own.revision, own.method)
        .where(own.state.in_(USABLE), own.revision < before)
        .where(*(column == value for column, value in zip(same, wanted, strict=False)))
        .where(*([own.pruned_at.is_(None)] if with_report else []), *([] if previews else [~own.preview]))
        .order_by(own.revision.desc())
        .execution_options(yield_per=1)
    )
    with connection.execute(earlier) as rows:
        return next((row.revision for row in rows if mode_of(row.method) == mode_of(method)), None)


def newest_pair(connection: Connection, cluster: int) -> tuple[int, int] | None:
    """The revisions of the two newest comparable scans of a cluster that have a report, neither of them a preview; None without two."""
    own = SCANS.c
    of_cluster = own.cluster == cluster, own.state.in_(USABLE), own.pruned_at.is_(None), ~own.preview
    newest = select(own.number, own.revision).where(*of_cluster).order_by(own.revision.desc())
    for number, revision in connection.execute(newest).all():
        earlier = newest_comparable(connection, number, revision, with_report=True)
        if earlier is not None:
            return earlier, revision
    return None


def incomparable_parts(connection: Connection, before: int, now: int) -> tuple[str, ...]:
    """The parts in which two scans, by their numbers, would be equal if they were comparable; empty if they are."""
    own = SCANS.c
    wanted = select(own.source, own.scope, own.requester, own.method)
    earlier, later = (connection.execute(wanted.where(own.number == number)).one() for number in (before, now))
    scopes = [codec.from_text(Scope, row.scope) for row in (earlier, later)]
    differ = {
        "source": earlier.source != later.source,
        "scope": replace(scopes[0], operation="") != replace(scopes[1], operation=""),
        "operation": scopes[0].operation != scopes[1].operation,
        "requester": earlier.requester != later.requester,
        "mode": mode_of(earlier.method) != mode_of(later.method),
    }
    return tuple(part for part, differs in differ.items() if differs)


def mode_of(text: str) -> tuple[object, ...]:
    """The part of the method of a scan, given as stored, that its verdicts can depend on."""
    method = codec.from_text(Method, text) if text else Method()
    sources = bool(method.policy_files), method.without_cluster_policies
    return method.kyverno_compat, method.network, method.network_to, sources
