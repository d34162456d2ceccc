"""The clusters of a database: which history a scan continues, and which names are refused.

A cluster is identified by the name that the user gives, else by the UID of its kube-system namespace, else by the CA and
URL of its API server; files by their path. A name must never join the histories of two clusters: a scan of one would
resolve the findings of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Final, NamedTuple

from sqlalchemy import Connection, insert, select, update

from scanner.errors import NoScans, UsageError
from scanner.model.scans.scan import STDIN, ClusterIdentity, Scan
from scanner.model.texts import clean
from scanner.store.rows.interning import reserve_ids
from scanner.store.rows.tables import CLUSTERS, SCANS

_GIVEN: Final = "name:"
_DELETED: Final = "deleted:"
"""Begins the identity of a cluster whose rows are being deleted: see `deletion`. A history has no such identity."""
_SEPARATOR: Final = "\n"


class StoredCluster(NamedTuple):
    """A row of `clusters`. `observed` has the marks of the cluster's latest scan; empty if an older version did not keep them."""

    id: int
    identity: str
    name: str
    observed: str

    @property
    def has_given_name(self) -> bool:
        """Return whether the user gave the name."""
        return self.identity.startswith(_GIVEN)

    @property
    def marks(self) -> Mapping[str, str]:
        """The values of the marks, by the kind of mark."""
        return _parse_marks(self.observed.split(_SEPARATOR))


@dataclass(frozen=True, slots=True)
class Registered:
    """The row of a scan's cluster, and what the user should know when its history begins; else an empty text."""

    id: int
    note: str = ""


def register(connection: Connection, cluster: ClusterIdentity, *, restored: bool = False) -> Registered:
    """The row of a cluster, which is added for its first scan. The connection is in a transaction that writes shared rows.

    With `restored`, a name goes on for a cluster that was restored or built anew. Raises UsageError for a name of another
    cluster.
    """
    marks = tuple(map(clean, cluster.marks))
    key, name = clean(cluster.key), clean(cluster.name)
    stored = read_clusters(connection)
    alike = [row for row in stored if row.name == name and row.identity != key]
    present = next((row for row in stored if row.identity == key), None) or _find_same_cluster(alike, marks, cluster)
    if present is None and restored and len(alike) == 1:
        present = alike[0]
    if cluster.given_name and present is None and alike:
        raise _name_taken_error(name, alike)
    if not cluster.given_name:
        _reject_given_name(name, [row for row in alike if row is not present], marks)
    if present is None:
        return Registered(
            _insert_cluster(connection, key, name, marks), _note_new_history(cluster, key, alike, stored, marks)
        )
    if present.has_given_name and not restored:
        _reject_other(present, marks)
    values = _parse_marks(marks) if restored else {**present.marks, **_parse_marks(marks)}
    identity = key if cluster.given_name else present.identity
    update_cluster(connection, present, StoredCluster(present.id, identity, name, _join_marks(values)))
    return Registered(present.id)


def key_of_given_name(name: str) -> str:
    """The identity of a history with a given name."""
    return f"{_GIVEN}{name}"


def are_alike(first: StoredCluster, second: StoredCluster) -> bool:
    """Return whether two histories may be of one cluster: the marks agree, both are of files, or marks are not known."""
    if not first.observed or not second.observed or _agree(first.marks, second.marks):
        return True
    return _are_files(first.marks) and _are_files(second.marks)


def find_cluster(connection: Connection, text: str) -> StoredCluster | None:
    """The cluster with a given name, a shown name, a UID, a folder or an identity; None if there is none.

    Raises UsageError with the identities of the clusters if there are several.
    """
    chosen = match_clusters(read_clusters(connection), text)
    if len(chosen) > 1:
        identities = ", ".join(row.identity for row in chosen)
        raise UsageError(
            f"--cluster-name {text} is ambiguous: the database has several such clusters. Name one of: {identities}"
        )
    return chosen[0] if chosen else None


def match_clusters(clusters: Iterable[StoredCluster], text: str) -> list[StoredCluster]:
    """The clusters that a text names: the one with the identity, else all with the name or a value of a mark."""
    rows = [row for row in clusters if text in {row.name, row.identity, *row.marks.values()}]
    return [row for row in rows if row.identity == text] or rows


def choose_cluster(connection: Connection, name: str | None, newest: Scan | None) -> StoredCluster:
    """The cluster that `find_cluster` finds for a name, else that of the newest scan. Raises UsageError if there is none."""
    if name is not None:
        named = find_cluster(connection, name)
        if named is None:
            raise UsageError(f"There is no cluster {name!r} in this database. `assay scans` shows the clusters.")
        return named
    if newest is None:
        raise NoScans("The database has no finished scan. Run: assay scan.")
    number = connection.execute(select(SCANS.c.cluster).where(SCANS.c.id == newest.id)).scalar_one()
    return next(row for row in read_clusters(connection) if row.id == number)


def read_clusters(connection: Connection) -> list[StoredCluster]:
    """The clusters of the database, the oldest first, without those that are being deleted."""
    return [row for row in _read_rows(connection) if not row.identity.startswith(_DELETED)]


def _read_rows(connection: Connection) -> list[StoredCluster]:
    columns = (CLUSTERS.c[name] for name in StoredCluster._fields)
    return [StoredCluster(*row) for row in connection.execute(select(*columns).order_by(CLUSTERS.c.id))]


def mark_deleted(connection: Connection, cluster: StoredCluster, tombstone: int) -> None:
    """Take a cluster out of every list, and free its names, while its rows are deleted."""
    update_cluster(connection, cluster, cluster._replace(identity=f"{_DELETED}{tombstone}:{cluster.identity}"))


def find_deleted(connection: Connection, tombstone: int) -> StoredCluster | None:
    """The cluster with a tombstone, with its former identity, while rows of it are left."""
    begin = f"{_DELETED}{tombstone}:"
    row = next((row for row in _read_rows(connection) if row.identity.startswith(begin)), None)
    return row and row._replace(identity=row.identity.removeprefix(begin))


def read_deleted_ids(connection: Connection) -> frozenset[int]:
    """The ids of the clusters that are being deleted."""
    return frozenset(row.id for row in _read_rows(connection) if row.identity.startswith(_DELETED))


def is_deleted(connection: Connection, number: int) -> bool:
    """Return whether the cluster with an id is being deleted, or is gone."""
    return all(row.id != number for row in read_clusters(connection))


def _find_same_cluster(
    alike: list[StoredCluster], marks: tuple[str, ...], cluster: ClusterIdentity
) -> StoredCluster | None:
    """The cluster's row under the same name, from scans that were given the name while this one is not, or the reverse."""
    rows = [row for row in alike if row.has_given_name is not bool(cluster.given_name)]
    same = [row for row in rows if row.observed and _agree(row.marks, _parse_marks(marks))]
    return same[0] if len(same) == len(rows) == 1 else None


def _agree(stored: Mapping[str, str], marks: Mapping[str, str]) -> bool:
    """Return whether marks are those of one cluster: the surest mark that both have decides. Standard input is no mark."""
    common = next((kind for kind in ("uid", "server", "folder") if kind in stored and kind in marks), None)
    return common is not None and stored[common] == marks[common]


def _reject_other(stored: StoredCluster, marks: tuple[str, ...]) -> None:
    """Raise UsageError if a name was given to another cluster. Files may move from folder to folder."""
    seen = _parse_marks(marks)
    if not stored.observed or not seen or _agree(stored.marks, seen):
        return
    if _are_files(stored.marks) and _are_files(seen):
        return
    raise UsageError(
        f"--cluster-name {stored.name} is the name of another cluster in this database: it was scanned with "
        f"{_describe_marks(stored.marks)}, and this one has {_describe_marks(seen)}. Give this cluster another name; if it is the same cluster, "
        "restored or built anew, add --restored-cluster to continue its history"
    )


def _name_taken_error(name: str, alike: list[StoredCluster]) -> UsageError:
    histories = ", ".join(row.identity for row in alike)
    return UsageError(
        f"--cluster-name {name}: this database shows another cluster as {name}, without a given name; its history is under "
        f"{histories}. Give this cluster another name; if it is the same cluster, restored or built anew, add "
        "--restored-cluster to continue its history"
    )


def _reject_given_name(name: str, alike: list[StoredCluster], marks: tuple[str, ...]) -> None:
    """Raise UsageError if the shown name of a cluster is one that was given: this scan would begin a second history of it."""
    for row in alike:
        if row.has_given_name and row.observed and _agree(row.marks, _parse_marks(marks)):
            raise UsageError(
                f"earlier scans of this cluster had --cluster-name {name}: add it to continue their history, or give another name"
            )
        if row.has_given_name and row.observed:
            raise UsageError(
                f"the name {name} was given to another cluster in this database: it was scanned with --cluster-name {name} and "
                f"{_describe_marks(row.marks)}. Name this cluster otherwise with --cluster-name"
            )


def _note_new_history(
    cluster: ClusterIdentity, key: str, alike: list[StoredCluster], stored: list[StoredCluster], marks: tuple[str, ...]
) -> str:
    """A note for the user about earlier scans that this new history does not continue."""
    earlier = [row for row in alike if row.has_given_name and not row.observed]
    others = [row for row in alike if row not in earlier]
    itself = [row for row in stored if row.observed and _agree(row.marks, _parse_marks(marks))]
    begins = f"the history of {cluster.name} begins with this scan, under {key}"
    if earlier and not cluster.given_name:
        return f"{begins}; the history of earlier scans is under --cluster-name {earlier[0].name}"
    if itself:
        return f"{begins}; earlier scans of this cluster are under {_join_identities(itself)}. {_describe_continuation(cluster, itself[-1], stored)}"
    if others:
        return f"{begins}; {_join_identities(others)} is another cluster that is shown as {cluster.name}"
    return ""


def _join_identities(rows: Iterable[StoredCluster]) -> str:
    return ", ".join(row.identity for row in rows)


def _describe_continuation(cluster: ClusterIdentity, earlier: StoredCluster, stored: list[StoredCluster]) -> str:
    """The command that carries an earlier history over to a given name, or the flag that continues the history."""
    if not cluster.given_name:
        return f"To continue these, end this scan and add --cluster-name {quote(earlier.name)}"
    alone = sum(row.name == earlier.name for row in stored) == 1
    names = quote(earlier.name if alone else earlier.identity), quote(cluster.given_name)
    return f"To continue these under the new name, end this scan and run: assay db rename-cluster {' '.join(names)}"


def _insert_cluster(connection: Connection, key: str, name: str, marks: tuple[str, ...]) -> int:
    [number] = reserve_ids(connection, CLUSTERS, 1)
    values = {"id": number, "identity": key, "name": name, "observed": _join_marks(_parse_marks(marks))}
    connection.execute(insert(CLUSTERS).values(values))
    return number


def update_cluster(connection: Connection, stored: StoredCluster, wanted: StoredCluster) -> None:
    """Write a row that differs from the stored one."""
    if stored != wanted:
        values = {"identity": wanted.identity, "name": wanted.name, "observed": wanted.observed}
        connection.execute(update(CLUSTERS).where(CLUSTERS.c.id == stored.id).values(values))


def _parse_marks(marks: Iterable[str]) -> dict[str, str]:
    return {kind: value for kind, _, value in (mark.partition(":") for mark in marks) if kind}


def _join_marks(values: Mapping[str, str]) -> str:
    return _SEPARATOR.join(STDIN if kind == STDIN else f"{kind}:{value}" for kind, value in values.items())


def _are_files(marks: Mapping[str, str]) -> bool:
    return "folder" in marks or STDIN in marks


def _describe_marks(marks: Mapping[str, str]) -> str:
    """The surest mark in words."""
    names = (("uid", "the kube-system UID"), ("server", "the API server"), ("folder", "the folder"))
    for kind, words in names:
        if kind in marks:
            return f"{words} {marks[kind]}"
    return "standard input"
