"""Finds the new findings of a scan that continue others, and joins their rows: see `posture.ladder`.

The database sorts both kinds of findings by problem, so memory holds those of one problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter

from sqlalchemy import Connection, bindparam, case, select, update

from scanner.posture.causes import Comparison, coordinates_of
from scanner.posture.ladder import LadderFinding, Pair, continuations
from scanner.store.engine import among, listed
from scanner.store.interning import CHUNK
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import CHECKS, CONTINUED, FINDINGS, KINDS, OBJECTS


def find_continuations(
    connection: Connection, gone: Sequence[int], come: Sequence[int], since: Callable[[int], Comparison]
) -> Iterator[Pair]:
    """The pairs of a row that ends and the row that continues it, of the rows with these ids.

    `since` returns what changed since the scan that last saw a row that ends.
    """
    if not gone or not come:
        return
    ends = RowIdSet(gone)
    check, of_object = CHECKS.c, OBJECTS.c
    ordered = (
        select(FINDINGS.c.problem, FINDINGS.c.id, FINDINGS.c.object)
        .add_columns(check.kind.label("check_kind"), KINDS.c.api_version, KINDS.c.kind)
        .add_columns(of_object.namespace, of_object.name)
        .add_columns(check.language, check.policy, check.binding, check.param_namespace, check.param_name)
        .join(CHECKS, check.id == FINDINGS.c.check)
        .join(KINDS, KINDS.c.id == FINDINGS.c.kind)
        .join(OBJECTS, of_object.id == FINDINGS.c.object)
        .where(FINDINGS.c.problem.is_not(None), FINDINGS.c.id.in_(listed(connection, chain(gone, come))))
        .order_by(FINDINGS.c.problem, FINDINGS.c.id)
        .execution_options(yield_per=CHUNK)
    )
    with connection.execute(ordered) as rows:
        for _, group in groupby(rows, key=itemgetter(0)):
            findings = [_finding(*row) for _, *row in group]
            before = [finding for finding in findings if finding.number in ends]
            now = [finding for finding in findings if finding.number not in ends]
            yield from continuations(before, now, lambda finding: since(finding.number))


def _finding(
    number: int, object_id: int, check: str, api_version: str, kind: str, namespace: str, name: str, *invocation: str
) -> LadderFinding:
    place = api_version.rpartition("/")[0], kind, namespace, name
    language, policy, binding, param_namespace, param_name = invocation
    invoked = language, policy, binding, param_namespace, param_name
    return LadderFinding(number, object_id, place, coordinates_of(invoked, check, (api_version, *place[1:])))


def join_rows(connection: Connection, pairs: Sequence[tuple[int, int]], now: int) -> None:
    """Let rows continue others at a revision: they have the history of the rows that end, which are not resolved."""
    own = FINDINGS.c
    wanted = select(own.id, own.fingerprint, own.first, own.opened, own.reopened)
    names = "row", "of", "begin", "opening", "times"
    joined = update(FINDINGS).where(own.id == bindparam("row")).values(event=CONTINUED, continues=bindparam("of"))
    # A finding that was known before the one that it continues keeps its first scan.
    first = case((own.first < bindparam("begin"), own.first), else_=bindparam("begin"))
    joined = joined.values(first=first, opened=bindparam("opening"), reopened=bindparam("times"))
    for start in range(0, len(pairs), CHUNK):
        following = dict(pairs[start : start + CHUNK])
        rows = connection.execute(wanted.where(among(connection, own.id, list(following)))).all()
        values = [dict(zip(names, (following[number], *columns), strict=True)) for number, *columns in rows]
        connection.execute(joined, values)
        ended = among(connection, own.id, list(following))
        connection.execute(update(FINDINGS).where(ended).values(until=now, superseded=now))
