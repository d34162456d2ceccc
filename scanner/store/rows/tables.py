"""The tables in SQL. `migrations/` creates the same tables step by step; a test compares the two.

The columns of a finding are defined in `columns`. Texts that repeat (checks, kinds, verdicts) are stored once, and a finding is a
narrow row that refers to them by id. The row stands for the whole time in which the finding did not change: from the revision
`since` up to, but without, the revision `until`. A revision is the position of a merged scan in its cluster's history. A scan
with the findings of the previous scan therefore writes no finding, and every old scan can still be read exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from scanner.store.rows.columns import (
    CheckColumns,
    EvidenceColumns,
    ExcerptColumns,
    FindingColumns,
    HistoryColumns,
    KindColumns,
    ObjectColumns,
    VerdictColumns,
)


def find_migrations() -> Path:
    """The folder of the migrations: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parents[2]
    installed = package / "_data" / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


HEAD: Final = max(path.name[:4] for path in (find_migrations() / "versions").glob("[0-9]*.py"))
"""The newest migration: the names of the files begin with their numbers."""


OPEN = 2_147_483_647
"""The `until` of an open finding's row: no revision is that high."""

PREVIEW: Final = "preview"
"""The `event` of a row that belongs to one scan alone: a finding of a binding that `--assume-bound` added."""

OUTDATED: Final = "outdated"
"""The `event` of a row that belongs to one scan alone: a scan that began later listed the object later, and has no such finding."""

SINGLE_SCAN_EVENTS: Final = PREVIEW, OUTDATED
"""The events of rows that belong to one scan alone, and are no part of the history."""

CONTINUED: Final = "continued"
"""The `event` of a row that continues another finding: see `endings`."""

METADATA = MetaData()

VERSIONS: Final = "alembic_version"
"""The table of Alembic with the version of the schema, which is no part of `METADATA`."""

# The order must not depend on the locale of a server.
TEXT = String().with_variant(String(collation="C"), "postgresql")


class UtcTime(TypeDecorator[datetime]):
    """A moment, stored in UTC. A moment without a zone, as some databases return it, is UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """The value for the driver."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """The value from the driver, in UTC."""
        if value is None or value.tzinfo is not None:
            return None if value is None else value.astimezone(UTC)
        return value.replace(tzinfo=UTC)


MARK = Table("kube_assay", METADATA, Column("note", TEXT, nullable=False))
"""An empty table that marks a database as Assay's."""


def _id() -> Column[int]:
    """An id that the writer assigns: see `interning`."""
    return Column("id", Integer, primary_key=True, autoincrement=False)


def _scan(*, primary: bool = True) -> Column[int]:
    return Column("scan", Integer, ForeignKey("scans.number"), primary_key=primary, nullable=False)


def _text(name: str) -> Column[str]:
    return Column(name, TEXT, nullable=False)


def _added_text(name: str) -> Column[str]:
    """A column that a migration added: older rows have the empty text in it."""
    return Column(name, TEXT, nullable=False, server_default=text("''"))


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, default=0)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, default=False)


def _shared(rows: str) -> Column[int]:
    """The scan whose equal rows this scan shares; 0 for a scan with rows of its own."""
    return Column(f"{rows}_of", Integer, nullable=False, server_default=text("0"))


def _position() -> Column[int]:
    return Column("position", Integer, primary_key=True, autoincrement=False)


def _digest() -> Column[bytes]:
    return Column("digest", LargeBinary, nullable=False, unique=True)


_REFERENCES = {
    "cluster": "clusters.id",
    "check": "checks.id",
    "kind": "kinds.id",
    "verdict": "verdicts.id",
    "evidence": "evidence.id",
    "excerpt": "excerpts.id",
    "object": "objects.id",
    "workload": "workloads.id",
    "kept": "kept.id",
    "sets": "set_lists.id",
}
_LARGE = frozenset({"problem", "moved_to"})
"""Columns of ints with more than 32 bits."""
_TYPES: dict[object, TypeEngine[Any]] = {str: TEXT, int: Integer(), bool: Boolean(), bytes: LargeBinary()}


def _columns(columns: type[tuple[Any, ...]], *, refer: bool = True) -> Iterator[Column[Any]]:
    """The columns of a definition in `columns`: the type of a field is the SQL type, a default makes it an added column.

    With `refer`, ids of other tables are foreign keys.
    """
    added: Mapping[str, Any] = columns._field_defaults  # type: ignore[attr-defined]
    for name, hint in get_type_hints(columns).items():
        [kind, *null] = get_args(hint) or (hint,)
        if name == "id":
            yield _id()
        elif name in added:
            yield _added_text(name)
        else:
            own_type = BigInteger() if name in _LARGE else _TYPES[kind]
            references = [ForeignKey(_REFERENCES[name])] if refer and name in _REFERENCES and kind is int else []
            yield Column(name, own_type, *references, nullable=bool(null))


CLUSTERS = Table(
    "clusters",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("identity", TEXT, nullable=False, unique=True),
    _text("name"),
    _added_text("observed"),
)
"""`identity` is the key of a history, `name` what reports show, `observed` what was seen of the cluster: see `clusters`."""

SCANS = Table(
    "scans",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("id", TEXT, nullable=False, unique=True),
    Column("cluster", Integer, ForeignKey("clusters.id"), nullable=False),
    _text("cluster_name"),
    _text("cluster_uid"),
    _text("server_version"),
    _text("source"),
    Column("started_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    _text("state"),
    _text("scope"),
    _text("tool_version"),
    _count("base"),
    Column("revision", Integer),
    _count("findings"),
    _count("new"),
    _count("reopened"),
    _count("resolved"),
    _count("unchecked"),
    _text("host"),
    Column("process", Integer, nullable=False),
    _text("process_started"),
    Column("heartbeat", UtcTime, nullable=False),
    _added_text("requester"),
    _added_text("opinion"),
    *(_shared(rows) for rows in ("policies", "bindings", "health", "outside", "rules", "uncovered")),
    _added_text("matched"),
    *(_added_text(name) for name in ("policy_set_digest", "description_digest", "method", "notes", "object_counts")),
    Column("silence", Integer, nullable=False, server_default=text("900")),
    Column("pruned_at", UtcTime),
    *(_added_text(name) for name in ("changed_rules", "emptiness")),
    Column("preview", Boolean, nullable=False, server_default=false()),
    Column("tallies", Integer, ForeignKey("tally_sets.id")),
    Column("gaps", Integer, ForeignKey("gap_lists.id")),
    UniqueConstraint("cluster", "revision"),
)
"""A scan with `pruned_at` is a tombstone: see `retention`. `changed_rules` has kinds of causes with commas between them. `preview`
marks a scan with assumed bindings: see `scans`."""

RUNS = Table(
    "runs",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    _text("name"),
    Column("started_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    Column("exit_code", Integer),
    _text("reason"),
    Column("scan", Integer, ForeignKey("scans.number")),
    _text("host"),
    Column("process", Integer, nullable=False, server_default=text("0")),
    *(_added_text(name) for name in ("process_started", "scan_id", "command_line")),
)
"""`scan_id` is the id of the scan that the run makes, from the moment when it is chosen; `process` is 0 if it is not known."""

NOTIFICATIONS = Table(
    "notifications",
    METADATA,
    _scan(),
    Column("route", TEXT, primary_key=True),
    Column("before", Integer, ForeignKey("scans.number")),
    _text("state"),
)
"""The notification of a route about a scan: what changed since the scan `before`, which is empty for the first one. See `notifications`."""

LAST_IDS = Table(
    "last_ids",
    METADATA,
    Column("name", TEXT, primary_key=True),
    Column("id", Integer, nullable=False),
)
"""The highest row id that each table ever had: see `interning`. `words of TABLE` is the highest id in the index of a search, on SQLite."""

POLICIES = Table(
    "policies",
    METADATA,
    _id(),
    _digest(),
    _text("language"),
    _text("name"),
    _text("spec_digest"),
    _text("document"),
)

BINDINGS = Table(
    "bindings",
    METADATA,
    _id(),
    _digest(),
    _text("language"),
    _text("name"),
    _text("policy_name"),
    _text("spec_digest"),
    _text("document"),
)

SCAN_POLICIES = Table(
    "scan_policies",
    METADATA,
    _scan(),
    _position(),
    Column("policy", Integer, ForeignKey("policies.id"), nullable=False),
    _added_text("reading"),
)

SCAN_BINDINGS = Table(
    "scan_bindings",
    METADATA,
    _scan(),
    _position(),
    Column("binding", Integer, ForeignKey("bindings.id"), nullable=False),
)

RULES = Table(
    "rules",
    METADATA,
    _id(),
    _digest(),
    _text("type"),
    _text("name"),
    _text("content_digest"),
    _text("document"),
    _flag("masked"),
)
"""The objects that decide together with policies: params, exceptions, global context entries, namespace labels."""

SCAN_RULES = Table(
    "scan_rules", METADATA, _scan(), _position(), Column("rule", Integer, ForeignKey("rules.id"), nullable=False)
)

CHECKS = Table("checks", METADATA, _id(), _digest(), *_columns(CheckColumns))
KINDS = Table("kinds", METADATA, _id(), _digest(), *_columns(KindColumns))
VERDICTS = Table("verdicts", METADATA, _id(), _digest(), *_columns(VerdictColumns))
EVIDENCE = Table("evidence", METADATA, _id(), _digest(), *_columns(EvidenceColumns))
EXCERPTS = Table("excerpts", METADATA, _id(), _digest(), *_columns(ExcerptColumns))

OBJECTS = Table(
    "objects",
    METADATA,
    _id(),
    Column("cluster", Integer, ForeignKey("clusters.id"), nullable=False),
    Column("kind", Integer, ForeignKey("kinds.id"), nullable=False),
    *_columns(ObjectColumns),
)
"""The objects that scans examined. An object that is gone and comes back is another row."""
# The objects of a list are inserted in this order, so the index costs little. It finds workloads and namespaces by name.
Index("objects_by_name", *(OBJECTS.c[name] for name in ("cluster", "kind", "namespace", "name")))

WORKLOADS = Table(
    "workloads",
    METADATA,
    _id(),
    _digest(),
    _text("api_version"),
    _text("kind"),
    _text("namespace"),
    _text("name"),
    _flag("derived"),
)
KEPT = Table("kept", METADATA, _id(), _digest(), _text("labels"), _text("annotations"))
"""The labels and annotations that are kept of objects: JSON, lists of pairs sorted by key."""

POPULATION = Table(
    "population",
    METADATA,
    Column("object", Integer, ForeignKey("objects.id"), primary_key=True, autoincrement=False),
    Column("since", Integer, primary_key=True, autoincrement=False),
    Column("until", Integer, nullable=False),
    Column("cluster", Integer, ForeignKey("clusters.id"), nullable=False),
    Column("kind", Integer, ForeignKey("kinds.id"), nullable=False),
    Column("workload", Integer, nullable=False),
    Column("kept", Integer, nullable=False),
)
"""The intervals of revisions in which an object existed unchanged. `workload` and `kept` are ids, or 0: the object is its own
workload, or has no kept label."""
# The index is partial, so it does not grow with history (see the index of findings).
Index(
    "population_in_force",
    POPULATION.c.cluster,
    POPULATION.c.kind,
    sqlite_where=POPULATION.c.until == OPEN,
)

# They find the clusters of workloads and of owners that a search names.
for _name in ("workload", "kept"):
    Index(f"population_by_{_name}", POPULATION.c[_name], POPULATION.c.cluster, sqlite_where=POPULATION.c[_name] != 0)

OBJECT_SETS = Table(
    "object_sets", METADATA, _id(), _digest(), _count("count"), Column("data", LargeBinary, nullable=False)
)
"""Sets of ids of `objects`, compressed (see `row_ids`)."""

SET_LISTS = Table("set_lists", METADATA, _id(), _digest(), Column("content", LargeBinary, nullable=False))
"""The sets of one kind: see `evaluated_sets`."""

# Without foreign keys: databases would spend as long on checking them as on inserting the rows.
FINDINGS = Table("findings", METADATA, *_columns(HistoryColumns, refer=False), *_columns(FindingColumns, refer=False))
# A row with `superseded` null is the latest row of its fingerprint, open or resolved. Only such rows are looked up by
# fingerprint, so this index does not grow with history. (The index is partial in PostgreSQL as well; to declare that here
# would import that dialect, and asyncio with it, into every run.)
Index(
    "findings_last_word",
    FINDINGS.c.fingerprint,
    FINDINGS.c.cluster,
    unique=True,
    sqlite_where=FINDINGS.c.superseded.is_(None),
)
Index("findings_until", FINDINGS.c.cluster, FINDINGS.c.until)
Index("findings_continues", FINDINGS.c.continues, sqlite_where=FINDINGS.c.continues.is_not(None))
Index("findings_moved_to", FINDINGS.c.moved_to, sqlite_where=FINDINGS.c.moved_to.is_not(None))

LIST_VERSIONS = Table(
    "list_versions",
    METADATA,
    Column("cluster", Integer, ForeignKey("clusters.id"), primary_key=True, autoincrement=False),
    Column("api_group", TEXT, primary_key=True),
    Column("kind", TEXT, primary_key=True),
    _text("uid"),
    _text("resource_version"),
    Column("revision", Integer, nullable=False),
)
"""The resource version of the last list of each kind of a cluster, the UID of the cluster, and the revision of the list's scan."""

VERDICT_USES = Table(
    "verdict_uses",
    METADATA,
    *(Column(name, Integer, primary_key=True, autoincrement=False) for name in ("verdict", "cluster", "check")),
    sqlite_with_rowid=False,
)
"""The clusters and checks that have findings with a verdict: a search names them with a message."""

UNCHECKED = Table("unchecked", METADATA, _scan(), Column("findings", LargeBinary, nullable=False))
"""The findings that a scan left open without checking them: a compressed set of row ids per scan."""

UNCHECKED_NOW = Table(
    "unchecked_now",
    METADATA,
    Column("cluster", Integer, ForeignKey("clusters.id"), primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("bits", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""The findings that the newest merged scan of a cluster left unchecked, for SQL: the bit `id & 31` of the part `id >> 5`."""

COVERAGE = Table(
    "coverage",
    METADATA,
    _scan(),
    _position(),
    _text("api_version"),
    _text("kind"),
    _text("state"),
    _count("objects"),
    _count("evaluated"),
    _count("pages"),
    Column("bytes", BigInteger, nullable=False, default=0),
    _text("resource_version"),
    _text("note"),
    Column("seconds", Float, nullable=False, server_default=text("0")),
    Column("sets", Integer, ForeignKey("set_lists.id")),
    Column("page_digests", LargeBinary),
)
"""The coverage of the kinds of a scan. `page_digests` are null if an older version recorded the scan."""

GAP_LISTS = Table("gap_lists", METADATA, _id(), _digest(), Column("content", LargeBinary, nullable=False))
"""The gaps of scans: see `gap_lists`."""

OUTSIDE = Table("outside", METADATA, _scan(), _position(), _text("kind"), _text("name"), _text("why"))
"""Objects of the cluster that also decide about requests, but that a scan does not evaluate."""

UNCOVERED = Table("uncovered", METADATA, _scan(), _position(), _text("api_version"), _text("kind"))
"""The kinds that the cluster serves and that no bound policy covers."""

HEALTH = Table(
    "health",
    METADATA,
    _scan(),
    _position(),
    _text("kind"),
    _text("policy"),
    _text("binding"),
    _text("detail"),
    _added_text("language"),
)

TALLY_LISTS = Table("tally_lists", METADATA, _id(), _digest(), Column("content", LargeBinary, nullable=False))
"""The tallies of a namespace, compressed: see `tally_lists`."""

TALLY_SETS = Table("tally_sets", METADATA, _id(), _digest(), Column("lists", LargeBinary, nullable=False))
"""The tallies of scans: sets of ids of `tally_lists`, compressed (see `row_ids`)."""

CAUSES = Table("causes", METADATA, _id(), _digest(), _text("kind"), _text("also"))
"""The causes of what scans changed in history: see `posture.history.causes`. `also` has kinds with commas between them."""

FIXES = Table(
    "fixes",
    METADATA,
    Column("cluster", Integer, ForeignKey("clusters.id"), primary_key=True, autoincrement=False),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    *(Column(name, TEXT, primary_key=True) for name in ("language", "policy")),
    Column("opened", Integer, primary_key=True, autoincrement=False),
    _count("problems"),
)
"""The number of problems that the scan of `revision` saw fixed, by the revision that opened them. They stay when scans are pruned."""

CHECK_NAMES = Table(
    "check_names",
    METADATA,
    Column("cluster", Integer, ForeignKey("clusters.id"), primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, primary_key=True),
    Column("since", Integer, primary_key=True, autoincrement=False),
    _text("name"),
)
"""The id of each check in a cluster's history, since a revision; later versions of the check carry it on: see `check_names`."""

MERGED_PAGES = Table(
    "merged_pages",
    METADATA,
    Column("cluster", Integer, ForeignKey("clusters.id"), primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, primary_key=True),
    Column("findings", LargeBinary, nullable=False),
)
"""The ids of the findings of each page of the newest merged scan of a cluster: see `merge`."""

STAGED_PAGES = Table(
    "staged_pages",
    METADATA,
    Column("id", Integer, primary_key=True),
    _scan(primary=False),
    _text("api_version"),
    _text("kind"),
    _count("number"),
    Column("content", LargeBinary),
    Column("objects", LargeBinary, nullable=False),
    Column("sets", LargeBinary),
)
"""Pages of running scans. A page without content was read for the workloads of other objects alone."""
Index("staged_pages_scan", STAGED_PAGES.c.scan)

DAYS = Table(
    "days",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("cluster", Integer, ForeignKey("clusters.id"), nullable=False),
    _text("day"),
    Column("scan", Integer, ForeignKey("scans.number"), nullable=False),
    Column("tallies", Integer, ForeignKey("daily_sets.id")),
    UniqueConstraint("cluster", "day"),
)
"""The last complete scan of each day of a cluster; `day` is a date in UTC, such as 2026-03-31."""

DAILY_KEYS = Table(
    "daily_keys",
    METADATA,
    _id(),
    _digest(),
    *(_text(name) for name in ("language", "policy", "namespace", "outcome")),
    _flag("requester"),
)

DAILY_LISTS = Table("daily_lists", METADATA, _id(), _digest(), _text("content"))
"""The tallies of a namespace on a day: a JSON object of the counts by the id of the key, which the views read."""

DAILY_SETS = Table("daily_sets", METADATA, _id(), _digest(), _text("lists"))
"""The tallies of days, which stay when their scans are pruned: JSON lists of ids of `daily_lists`. See `daily`."""

WAIVERS = Table("waivers", METADATA, _id(), _digest(), _text("name"), _text("document"))
"""The bodies of waivers: see `waivers`."""
WAIVER_SETS = Table("waiver_sets", METADATA, _id(), _digest(), _text("content"))
"""Sets of waivers: JSON with their ids, and with the sentences about documents that could not be read."""
SCAN_WAIVERS = Table(
    "scan_waivers", METADATA, _scan(), Column("waivers", Integer, ForeignKey("waiver_sets.id"), nullable=False)
)
"""The set of waivers that a scan read. A scan without a row read none."""
WAIVED_CHECKS = Table(
    "waived_checks",
    METADATA,
    Column("cluster", Integer, ForeignKey("clusters.id"), primary_key=True, autoincrement=False),
    *(Column(name, LargeBinary, primary_key=True) for name in ("waiver", "form")),
    _text("question"),
    Column("since", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""The checks that waivers name, in each form that a scan had, since the revision of that scan: see `waivers`."""

PLACES = Table("places", METADATA, _id(), _digest(), Column("content", LargeBinary, nullable=False))
"""The places of the objects of scans of files: see `places`."""
SCAN_PLACES = Table(
    "scan_places", METADATA, _scan(), Column("places", Integer, ForeignKey("places.id"), nullable=False)
)
"""The places of a scan. A scan of a cluster has no row."""

CLOSING_SUMS = Table(
    "closing_sums",
    METADATA,
    Column("part", TEXT, primary_key=True),
    Column("block", Integer, primary_key=True, autoincrement=False),
    Column("scan", Integer, ForeignKey("scans.number"), primary_key=True, autoincrement=False),
    Column("rows", Integer, nullable=False),
    Column("sum", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""The sums over what a scan wrote: see `closing_sums`. A scan of an older version has none."""

DELETED_CLUSTERS = Table(
    "deleted_clusters",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("began_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("oldest_scan", UtcTime),
    Column("newest_scan", UtcTime),
    *(Column(name, Integer, nullable=False) for name in ("scans", "runs", "objects", "findings")),
    _text("scans_digest"),
    _text("tool_version"),
)
"""The tombstones of deleted clusters, without names: see `deletion`. `ended_at` is null while rows of the cluster are left."""

WRITER_TABLES: Final = (MARK, LAST_IDS, LIST_VERSIONS, MERGED_PAGES, STAGED_PAGES, CLOSING_SUMS)
"""The tables that no page, report or metric reads. A new table is not among them, unless its author adds it."""
