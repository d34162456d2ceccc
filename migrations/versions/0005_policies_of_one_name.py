"""Adds the language of a policy, because policies of two languages may have one name.

Rows of an older version belong to the policy of their name. Where policies of two languages had that name, mutations belong to the
mutating policy and all other rows to the other policy.
"""

from __future__ import annotations

import hashlib

import orjson
import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MUTATING = "MutatingAdmissionPolicy"
KEY = ("policy", "binding", "param_namespace", "param_name", "kind", "index", "expression")


def upgrade() -> None:
    for table in ("checks", "health"):
        op.add_column(table, sa.Column("language", TEXT, nullable=False, server_default=sa.text("''")))
    connection = op.get_bind()
    languages: dict[str, list[str]] = {}
    for name, language in connection.execute(
        sa.text("SELECT DISTINCT name, language FROM policies ORDER BY name, language")
    ):
        languages.setdefault(name, []).append(language)
    _checks(connection, languages)
    for name, candidates in languages.items():
        statement = sa.text("UPDATE health SET language = :language WHERE policy = :policy")
        connection.execute(statement, {"language": _chosen(candidates, mutates=False), "policy": name})


def _checks(connection: sa.Connection, languages: dict[str, list[str]]) -> None:
    """Update the digests of checks, which now include the language."""
    columns: list[sa.ColumnClause[str]] = [sa.column("id"), *(sa.column(name) for name in KEY)]
    changed = sa.text("UPDATE checks SET language = :language, digest = :digest WHERE id = :id")
    for number, *key in connection.execute(sa.select(*columns).select_from(sa.table("checks"))).all():
        if language := _chosen(languages.get(key[0], []), mutates=key[4] == "mutation"):
            digest = hashlib.blake2b(orjson.dumps([*key, language]), digest_size=16).digest()
            connection.execute(changed, {"language": language, "digest": digest, "id": number})


def _chosen(candidates: list[str], *, mutates: bool) -> str:
    fitting = [language for language in candidates if (language == MUTATING) == mutates]
    return (fitting or candidates or [""])[0]
