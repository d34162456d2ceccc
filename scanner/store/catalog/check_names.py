"""The ids of the checks of a scan in the history of its cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, select

from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import Policy, PolicyKey
from scanner.model.texts import clean
from scanner.posture.problem_ids import CheckKey, check_id, check_keys, list_expressions, names_of
from scanner.store.database.engine import insert_rows, is_among
from scanner.store.rows import codec
from scanner.store.rows.columns import CheckColumns
from scanner.store.rows.interning import Key, chunks, digest
from scanner.store.rows.shared_rows import read_owners
from scanner.store.rows.tables import CHECK_NAMES, POLICIES, SCAN_POLICIES, SCANS


class CheckNames:
    """The ids of the checks of one scan."""

    def __init__(self, connection: Connection, cluster: int, scan: int, revision: int) -> None:
        """Give ids to the checks of the policies of a scan, which continue those of the newest merged scan.

        `revision` is that of the scan: reports of earlier scans keep the ids that checks had.
        The connection is in a transaction that writes history.
        """
        self._names: dict[tuple[str, str, str, int], str] = {}
        before = {
            policy.key: policy for policy in read_policies_of_scan(connection, _find_newest_scan(connection, cluster))
        }
        now = read_policies_of_scan(connection, scan)
        known = _read_names(connection, cluster, (*before.values(), *now), revision)
        names: dict[CheckKey, str] = {}
        for policy in now:
            names_of_policy = names_of(policy, before.get(policy.key), known)
            names |= names_of_policy
            for (kind, index), key in check_keys(policy).items():
                self._names[clean(policy.language), clean(policy.name), kind, index] = names_of_policy[key]
        _write_names(
            connection, cluster, revision, {key: name for key, name in names.items() if known.get(key) != name}
        )

    def ids_of(self, checks: Sequence[Key]) -> list[str]:
        """The ids of checks, given their `CheckColumns`."""
        return [self._id_of(CheckColumns._make(key)) for key in checks]

    def _id_of(self, check: CheckColumns) -> str:
        name = self._names.get((check.language, check.policy, check.kind, check.index))
        return name or check_id(check.language, check.policy, check.kind, check.expression.strip(), 0)


def read_check_ids(
    connection: Connection, cluster: int, policies: Sequence[Policy], revision: int
) -> Mapping[tuple[PolicyKey, Check], str]:
    """The ids that the checks of policies have in the history of a cluster at a revision."""
    known = _read_names(connection, cluster, policies, revision)
    return {
        (policy.key, Check(CheckKind(kind), index, text)): known[keys[kind, index]]
        for policy in policies
        for keys in (check_keys(policy),)
        for kind, texts in list_expressions(policy)
        for index, text in enumerate(texts)
        if keys[kind, index] in known
    }


def _find_newest_scan(connection: Connection, cluster: int) -> int:
    """The number of the newest merged scan of a cluster, or 0."""
    merged = select(SCANS.c.number).where(SCANS.c.cluster == cluster, SCANS.c.revision.is_not(None))
    return connection.execute(merged.order_by(SCANS.c.revision.desc()).limit(1)).scalar() or 0


def read_policies_of_scan(connection: Connection, scan: int) -> list[Policy]:
    """The policies of a scan by its number; none for 0, and for a pruned scan."""
    if not scan:
        return []
    used = SCAN_POLICIES.c
    wanted = select(POLICIES.c.document).join(SCAN_POLICIES).where(used.scan == read_owners(connection, scan).policies)
    documents = connection.execute(wanted.order_by(used.position)).scalars()
    return [codec.from_text(Policy, document) for document in documents]


def _read_names(connection: Connection, cluster: int, policies: Iterable[Policy], at: int) -> Mapping[CheckKey, str]:
    """The ids that checks of these policies have in the history of a cluster at a revision."""
    keys = {digest_key(key): key for policy in policies for key in check_keys(policy).values()}
    known: dict[CheckKey, str] = {}
    check_name = CHECK_NAMES.c
    for portion in chunks(list(keys)):
        chosen = (
            (check_name.cluster == cluster)
            & (check_name.since <= at)
            & is_among(connection, check_name.digest, portion)
        )
        wanted = select(check_name.digest, check_name.name).where(chosen).order_by(check_name.since)
        known |= {keys[bytes(name_digest)]: name for name_digest, name in connection.execute(wanted)}
    return known


def _write_names(connection: Connection, cluster: int, revision: int, names: Mapping[CheckKey, str]) -> None:
    rows = [(cluster, digest_key(key), revision, name) for key, name in names.items()]
    insert_rows(connection, CHECK_NAMES, ("cluster", "digest", "since", "name"), rows)


def digest_key(key: CheckKey) -> bytes:
    """The digest of a check in `check_names`."""
    return digest(tuple(clean(part) if isinstance(part, str) else part for part in key))
