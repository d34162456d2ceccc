"""Finds findings, problems, checks and scans by the beginning of an id.

Fingerprints and ids of scans are read from their indexes. The number of a problem has none, which would need twenty bytes for each
finding: the rows of findings are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, func, select

from scanner.posture.check_names import CheckKey
from scanner.posture.problems import problem_id
from scanner.store.check_names import key_digest
from scanner.store.clusters import StoredCluster
from scanner.store.findings import SHORT, FindingRow, select_findings
from scanner.store.search_hits import CheckHit, FindingHit, Hits, ProblemHit, ScanHit, cut
from scanner.store.tables import CHECK_NAMES, CHECKS, FINDINGS, OPEN, SCANS

FEWEST: Final = 4
"""The number of characters, or of digits after `p-` and `c-`, below which no id is looked up."""
_DIGITS: Final = 12
_FINGERPRINT: Final = re.compile(rf"[0-9a-f]{{{FEWEST},64}}")
_NUMBER: Final = re.compile(rf"[0-9a-f]{{{FEWEST},{_DIGITS}}}")
_AFTER: Final = "\x7f"
"""Follows every character of an id."""
_ORDINALS: Final = 4
"""The number of equal expressions of a policy whose checks are told apart."""

Clusters: TypeAlias = Mapping[int, StoredCluster]


class _Policy(NamedTuple):
    language: str = ""
    name: str = ""


def findings_with(connection: Connection, clusters: Clusters, begin: str, limit: int) -> Hits[FindingHit]:
    """The findings whose fingerprints begin so."""
    if not _FINGERPRINT.fullmatch(begin):
        return Hits()
    low, high = bytes.fromhex(begin.ljust(64, "0")), bytes.fromhex(begin.ljust(64, "f"))
    own = FINDINGS.c
    wanted = select_findings().where(own.fingerprint.between(low, high), own.superseded.is_(None))
    ordered = wanted.order_by(own.fingerprint, own.cluster).limit(limit + 1)
    rows = map(FindingRow.of, connection.execute(ordered))
    return cut([_finding(row, clusters) for row in rows], limit)


def _finding(row: FindingRow, clusters: Clusters) -> FindingHit:
    return FindingHit(
        bytes(row.history.fingerprint).hex()[:SHORT],
        clusters[row.history.cluster],
        row.check.language,
        row.check.policy,
        row.kind.api_version,
        row.kind.kind,
        row.identity.namespace,
        row.identity.name,
        row.history.until == OPEN,
    )


def problems_with(connection: Connection, clusters: Clusters, begin: str, limit: int) -> Hits[ProblemHit]:
    """The problems whose ids begin so."""
    digits = _digits("p-", begin)
    if not digits:
        return Hits()
    own = FINDINGS.c
    low, high = int(digits.ljust(_DIGITS, "0"), 16), int(digits.ljust(_DIGITS, "f"), 16)
    columns = own.problem, own.cluster, func.max(own.until).label("until"), func.min(own.check).label("check")
    wanted = select(*columns).where(own.problem.between(low, high)).group_by(own.problem, own.cluster)
    rows = connection.execute(wanted.order_by(own.problem, own.cluster).limit(limit + 1)).all()
    policies = _policies_of(connection, {row.check for row in rows})
    return cut(
        [
            ProblemHit(problem_id(row.problem), clusters[row.cluster], *policies[row.check], row.until == OPEN)
            for row in rows
        ],
        limit,
    )


def _policies_of(connection: Connection, checks: set[int]) -> dict[int, _Policy]:
    own = CHECKS.c
    wanted = select(own.id, own.language, own.policy).where(own.id.in_(sorted(checks)))
    return {row.id: _Policy(row.language, row.policy) for row in connection.execute(wanted)}


def checks_with(connection: Connection, clusters: Clusters, begin: str, limit: int) -> Hits[CheckHit]:
    """The checks whose ids begin so, in each cluster."""
    digits = _digits("c-", begin)
    if not digits:
        return Hits()
    own = CHECK_NAMES.c
    low, high = f"c-{digits.ljust(_DIGITS, '0')}", f"c-{digits.ljust(_DIGITS, 'f')}"
    wanted = select(own.name, own.cluster, own.digest).where(own.name >= low, own.name <= high)
    ordered = connection.execute(wanted.order_by(own.name, own.cluster, own.since)).all()
    digests = {(row.name, row.cluster): bytes(row.digest) for row in ordered}
    policies = _policies_by_digest(connection) if digests else {}
    return cut(
        [
            CheckHit(name, clusters[cluster], *policies.get(digest, _Policy()))
            for (name, cluster), digest in digests.items()
        ],
        limit,
    )


def _policies_by_digest(connection: Connection) -> dict[bytes, _Policy]:
    """The policies of the checks that findings and tallies have, by the digest in `check_names`."""
    own = CHECKS.c
    wanted = select(own.language, own.policy, own.kind, own.expression).distinct()
    return {
        key_digest(CheckKey(row.language, row.policy, row.kind, row.expression.strip(), ordinal)): _Policy(
            row.language, row.policy
        )
        for row in connection.execute(wanted)
        for ordinal in range(_ORDINALS)
    }


def scans_with(connection: Connection, clusters: Clusters, begin: str, limit: int) -> Hits[ScanHit]:
    """The scans whose ids begin so, the newest first."""
    if len(begin) < FEWEST:
        return Hits()
    own = SCANS.c
    columns = own.id, own.cluster, own.started_at, own.state
    wanted = select(*columns).where(own.id >= begin, own.id < begin + _AFTER).order_by(own.number.desc())
    rows = connection.execute(wanted.limit(limit + 1))
    return cut([ScanHit(row.id, clusters[row.cluster], row.started_at, row.state) for row in rows], limit)


def _digits(sign: str, begin: str) -> str:
    """The hex digits of the beginning of an id; empty if it is none."""
    digits = begin.removeprefix(sign)
    return digits if begin.startswith(sign) and _NUMBER.fullmatch(digits) else ""
