"""Creates scans with their policies and counts, and findings with their history."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    create_texts()
    create_scans()
    create_findings()
    create_ledger()


def key(*, given_out: bool = False) -> sa.Column[int]:
    return sa.Column("id", sa.Integer(), primary_key=True, autoincrement=not given_out)


def texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, TEXT, nullable=False) for name in names]


def counts(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer(), nullable=False) for name in names]


def flags(*names: str) -> list[sa.Column[bool]]:
    return [sa.Column(name, sa.Boolean(), nullable=False) for name in names]


def to(table: str, name: str, *, primary_key: bool = False) -> sa.Column[int]:
    target = sa.ForeignKey(f"{table}.{'number' if table == 'scans' else 'id'}")
    return sa.Column(name, sa.Integer(), target, primary_key=primary_key, autoincrement=False, nullable=False)


def digest() -> sa.Column[bytes]:
    return sa.Column("digest", sa.LargeBinary(), nullable=False, unique=True)


def position() -> sa.Column[int]:
    return sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False)


def create_texts() -> None:
    """The content-addressed tables, which store equal rows once."""
    op.create_table("policies", key(given_out=True), digest(), *texts("language", "name", "spec_digest", "document"))
    op.create_table(
        "bindings",
        key(given_out=True),
        digest(),
        *texts("language", "name", "policy_name", "spec_digest", "document"),
    )
    op.create_table(
        "checks",
        key(given_out=True),
        digest(),
        *texts("policy", "binding", "param_namespace", "param_name", "kind"),
        *counts("index"),
        *texts("expression"),
    )
    op.create_table("kinds", key(given_out=True), digest(), *texts("api_version", "kind"))
    op.create_table(
        "verdicts",
        key(given_out=True),
        digest(),
        *texts("outcome", "message", "reason"),
        *counts("code"),
        *flags("would_deny", "always"),
        *texts("operation", "actions"),
        *flags("denies"),
    )


def create_scans() -> None:
    op.create_table("clusters", key(), sa.Column("identity", TEXT, nullable=False, unique=True), *texts("name"))
    op.create_table(
        "scans",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("id", TEXT, nullable=False, unique=True),
        to("clusters", "cluster"),
        *texts("cluster_name", "cluster_uid", "server_version", "source"),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("finished_at", TIME),
        *texts("state", "scope", "tool_version"),
        *counts("base"),
        sa.Column("revision", sa.Integer()),
        *counts("findings", "new", "reopened", "resolved", "unchecked"),
        *texts("host"),
        *counts("process"),
        *texts("process_started"),
        sa.Column("heartbeat", TIME, nullable=False),
        sa.UniqueConstraint("cluster", "revision"),
    )
    op.create_table(
        "scan_policies",
        to("scans", "scan", primary_key=True),
        position(),
        to("policies", "policy"),
        *counts("matched"),
        *flags("evaluated"),
    )
    op.create_table(
        "scan_bindings",
        to("scans", "scan", primary_key=True),
        position(),
        to("bindings", "binding"),
        *counts("matched"),
    )
    op.create_table(
        "staged_pages",
        key(),
        to("scans", "scan"),
        *texts("api_version", "kind"),
        *counts("number"),
        sa.Column("content", sa.LargeBinary(), nullable=False),
    )
    op.create_index("staged_pages_scan", "staged_pages", ["scan"])


def create_findings() -> None:
    op.create_table(
        "findings",
        key(given_out=True),
        to("clusters", "cluster"),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        *counts("since", "until"),
        sa.Column("superseded", sa.Integer()),
        *counts("first"),
        *texts("event"),
        *counts("reopened"),
        sa.Column("last_seen", sa.Integer()),
        to("checks", "check"),
        to("kinds", "kind"),
        *texts("namespace", "name", "uid", "resource_version"),
        to("verdicts", "verdict"),
    )
    last_word = sa.text("superseded IS NULL")
    op.create_index(
        "findings_last_word",
        "findings",
        ["fingerprint", "cluster"],
        unique=True,
        sqlite_where=last_word,
        postgresql_where=last_word,
    )
    op.create_index("findings_until", "findings", ["cluster", "until"])
    op.create_table(
        "unchecked",
        to("scans", "scan", primary_key=True),
        sa.Column("findings", sa.LargeBinary(), nullable=False),
    )


def create_ledger() -> None:
    """The coverage, gaps, health and tallies of a scan."""
    op.create_table(
        "coverage",
        to("scans", "scan", primary_key=True),
        position(),
        *texts("api_version", "kind", "state"),
        *counts("objects", "evaluated", "pages"),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        *texts("resource_version", "note"),
    )
    op.create_table("gaps", to("scans", "scan", primary_key=True), position(), *texts("kind", "where", "why"))
    op.create_table(
        "health", to("scans", "scan", primary_key=True), position(), *texts("kind", "policy", "binding", "detail")
    )
    op.create_table(
        "tallies",
        to("scans", "scan", primary_key=True),
        to("checks", "check", primary_key=True),
        to("kinds", "kind", primary_key=True),
        sa.Column("namespace", TEXT, primary_key=True),
        sa.Column("outcome", TEXT, primary_key=True),
        *counts("count"),
    )
