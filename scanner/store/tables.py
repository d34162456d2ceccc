"""The tables, as SQL sees them. `migrations/` builds the same, step by step; a test compares the two.

Texts that repeat (checks, kinds, verdicts) are stored once and named by number, so that a finding is one narrow row.
That row is not one sighting but the whole time over which a finding looked the same: from the revision `since` up to,
and without, the revision `until`. A revision is the place of a merged scan in its cluster's history. A scan that sees
what the one before it saw therefore writes no finding at all, and every old scan can still be read off exactly.
"""

from __future__ import annotations

from datetime import UTC, datetime

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
from sqlalchemy.types import TypeDecorator

OPEN = 2_147_483_647
"""The `until` of a row that is in force: no revision reaches it."""

METADATA = MetaData()

# Order must not depend on the locale of a server.
TEXT = String().with_variant(String(collation="C"), "postgresql")


class UtcTime(TypeDecorator[datetime]):
    """A moment: stored in UTC, and read as such from databases that forget the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """What is handed to the driver."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """What the driver's answer means."""
        if value is None or value.tzinfo is not None:
            return None if value is None else value.astimezone(UTC)
        return value.replace(tzinfo=UTC)


MARK = Table("kube_assay", METADATA, Column("note", TEXT, nullable=False))
"""Marks a database as Assay's by being there; it holds nothing."""


def _id() -> Column[int]:
    """A number that the writer gives out: only one transaction writes history at a time."""
    return Column("id", Integer, primary_key=True, autoincrement=False)


def _scan(*, primary: bool = True) -> Column[int]:
    return Column("scan", Integer, ForeignKey("scans.number"), primary_key=primary, nullable=False)


def _text(name: str) -> Column[str]:
    return Column(name, TEXT, nullable=False)


def _added_text(name: str) -> Column[str]:
    """A column that a migration added: what was there before has the empty text in it."""
    return Column(name, TEXT, nullable=False, server_default=text("''"))


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, default=0)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, default=False)


def _of(lines: str) -> Column[int]:
    """The scan whose lines are this one's too, because nothing has changed; 0 where it has its own."""
    return Column(f"{lines}_of", Integer, nullable=False, server_default=text("0"))


def _position() -> Column[int]:
    return Column("position", Integer, primary_key=True, autoincrement=False)


CLUSTERS = Table(
    "clusters",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("identity", TEXT, nullable=False, unique=True),
    _text("name"),
)

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
    *(_of(lines) for lines in ("policies", "bindings", "health", "outside")),
    _added_text("matched"),
    UniqueConstraint("cluster", "revision"),
)

POLICIES = Table(
    "policies",
    METADATA,
    _id(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    _text("language"),
    _text("name"),
    _text("spec_digest"),
    _text("document"),
)

BINDINGS = Table(
    "bindings",
    METADATA,
    _id(),
    Column("digest", LargeBinary, nullable=False, unique=True),
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

CHECKS = Table(
    "checks",
    METADATA,
    _id(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    _text("policy"),
    _text("binding"),
    _text("param_namespace"),
    _text("param_name"),
    _text("kind"),
    _count("index"),
    _text("expression"),
    _added_text("language"),
)

KINDS = Table(
    "kinds",
    METADATA,
    _id(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    _text("api_version"),
    _text("kind"),
)

VERDICTS = Table(
    "verdicts",
    METADATA,
    _id(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    _text("outcome"),
    _text("message"),
    _text("reason"),
    Column("code", Integer, nullable=False),
    _flag("would_deny"),
    _flag("always"),
    _text("operation"),
    _text("actions"),
    _flag("denies"),
    _added_text("excepted_by"),
)

EVIDENCE = Table(
    "evidence", METADATA, _id(), Column("digest", LargeBinary, nullable=False, unique=True), _text("reasons")
)
"""Why findings are. What an older version found has none."""

FINDINGS = Table(
    "findings",
    METADATA,
    _id(),
    Column("cluster", Integer, ForeignKey("clusters.id"), nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("since", Integer, nullable=False),
    Column("until", Integer, nullable=False),
    Column("superseded", Integer),
    Column("first", Integer, nullable=False),
    _text("event"),
    _count("reopened"),
    Column("last_seen", Integer),
    Column("check", Integer, ForeignKey("checks.id"), nullable=False),
    Column("kind", Integer, ForeignKey("kinds.id"), nullable=False),
    _text("namespace"),
    _text("name"),
    _text("uid"),
    _text("resource_version"),
    Column("verdict", Integer, ForeignKey("verdicts.id"), nullable=False),
    Column("evidence", Integer, ForeignKey("evidence.id")),
)
# A row that is superseded by no other is its fingerprint's last word, open or resolved. Only such rows are ever looked
# up by fingerprint, so this index does not grow with history. (It is partial in PostgreSQL as well; saying so here
# would import that dialect, and asyncio with it, into every run.)
Index(
    "findings_last_word",
    FINDINGS.c.fingerprint,
    FINDINGS.c.cluster,
    unique=True,
    sqlite_where=FINDINGS.c.superseded.is_(None),
)
Index("findings_until", FINDINGS.c.cluster, FINDINGS.c.until)

UNCHECKED = Table("unchecked", METADATA, _scan(), Column("findings", LargeBinary, nullable=False))
"""The findings that stayed open in a scan that did not look at them: a compressed set of row numbers per scan."""

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
)

GAPS = Table("gaps", METADATA, _scan(), _position(), _text("kind"), _text("where"), _text("why"))

OUTSIDE = Table("outside", METADATA, _scan(), _position(), _text("kind"), _text("name"), _text("why"))
"""What decides about requests in the cluster, but is not what a scan evaluates."""

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

TALLIES = Table(
    "tallies",
    METADATA,
    _scan(),
    Column("check", Integer, ForeignKey("checks.id"), primary_key=True),
    Column("kind", Integer, ForeignKey("kinds.id"), primary_key=True),
    Column("namespace", TEXT, primary_key=True),
    Column("outcome", TEXT, primary_key=True),
    _count("count"),
    Column("requester", Boolean, nullable=False, server_default=false()),
)

STAGED_PAGES = Table(
    "staged_pages",
    METADATA,
    Column("id", Integer, primary_key=True),
    _scan(primary=False),
    _text("api_version"),
    _text("kind"),
    _count("number"),
    Column("content", LargeBinary, nullable=False),
)
Index("staged_pages_scan", STAGED_PAGES.c.scan)
