"""The page about SQL: every query runs, on the databases for which it is written, and every column of a view is described."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
import yaml
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ProgrammingError

from scanner.store import open_store
from tests.docs.pages import ROOT
from tests.store.databases import KINDS, Rows, execute, prepared_database, rows
from tests.store.made import clock
from tests.store.test_views import COLUMNS, fill

PAGE = (ROOT / "docs" / "sql.md").read_text()
BLOCKS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
[METADATA] = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
[[NAME, DATASETTE]] = yaml.safe_load(METADATA)["databases"].items()
TIMES = {"__from": "1767225600000", "__to": "1798761600000"}
"""The year 2026, in milliseconds."""
GRANTS = [block for block in BLOCKS if "GRANT" in block]
EMPTY = {"v_coverage", "v_policy_health"}
"""Views of which the scans of the test have no row for the question of the page."""


def queries(kind: str) -> list[str]:
    """The queries of the page for a kind of database."""
    names = {"-- SQLite": "sqlite", "-- PostgreSQL": "postgresql"}
    chosen = [block for block in BLOCKS if names.get(block.splitlines()[0], kind) == kind and block not in GRANTS]
    canned = [query["sql"] for query in DATASETTE["queries"].values()] if kind == "sqlite" else []
    return chosen + canned


def without_macros(query: str) -> str:
    """The query as Grafana sends it, without the cast with two colons that SQLAlchemy would take for a parameter."""
    query = re.sub(r"\$__timeFilter\((.*?)\)", r"\1 BETWEEN '2026-01-01T00:00:00Z' AND '2026-12-31T00:00:00Z'", query)
    query = re.sub(r"\$(__from|__to)", lambda found: TIMES[found[1]], query)
    return re.sub(r"([\w]+(?:\([^()]*\))?)::timestamptz", r"CAST(\1 AS timestamptz)", query)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The URL of a database of each kind, with scans."""
    with ExitStack() as kept:
        yield _Filled(kept, tmp_path_factory)


class _Filled(dict[str, str]):
    def __init__(self, kept: ExitStack, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self.kept = kept
        self.folders = folders

    def __missing__(self, kind: str) -> str:
        url = self[kind] = self.kept.enter_context(prepared_database(kind, self.folders.mktemp("sql")))
        with open_store(url, clock) as store:
            fill(store)
        return url


def answers(url: str, query: str) -> Rows:
    """The rows of a query; parameters have the namespace of the scans."""
    return rows(url, without_macros(query).replace(":namespace", "'shop'"))


@pytest.mark.parametrize(("kind", "query"), [(kind, query) for kind in KINDS for query in queries(kind)])
def test_a_query_of_the_page_runs(filled: dict[str, str], kind: str, query: str) -> None:
    """And finds rows, so a condition that never holds is noticed."""
    found = answers(filled[kind], query)
    assert found or any(view in query for view in EMPTY) or "HAVING" in query


@pytest.mark.parametrize("query", [query for query in queries("sqlite") if query in queries("postgresql")])
def test_both_databases_answer_the_same(filled: dict[str, str], query: str) -> None:
    """Queries without a database of their own are the same for both."""
    first, second = (answers(filled[kind], query) for kind in KINDS)
    plain = partial(
        map, lambda row: {name: float(value) if name == "percent" else value for name, value in row.items()}
    )
    assert list(plain(first)) == list(plain(second))


def test_the_page_has_queries_for_both_databases() -> None:
    """For Grafana each, and Datasette for SQLite."""
    assert 1 == len(GRANTS)
    assert {view for view in COLUMNS if not any(view in query for query in queries("postgresql"))} == set()
    assert "copy" == NAME
    assert 3 == len(DATASETTE["queries"])


def test_a_role_with_the_rights_of_the_page_reads_views_alone(filled: dict[str, str]) -> None:
    """Not the tables behind them."""
    url, name = filled["postgresql"], f"reader_{uuid.uuid4().hex}"
    [schema] = rows(url, "SELECT current_schema() AS name")
    password = uuid.uuid4().hex
    execute(url, f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
    try:
        execute(url, GRANTS[0].replace("grafana", name).replace("public", schema["name"]))
        reader = make_url(url).set(username=name, password=password).render_as_string(hide_password=False)
        assert all(rows(reader, f"SELECT * FROM {view}") for view in COLUMNS)
        with pytest.raises(ProgrammingError, match="permission denied"):
            rows(reader, "SELECT * FROM findings")
    finally:
        execute(url, f"DROP OWNED BY {name}; DROP ROLE {name}")


@pytest.mark.parametrize("view", COLUMNS)
def test_the_page_describes_every_column(view: str) -> None:
    """In the section of the view, or above for all views."""
    common = PAGE.split("\n## Columns of all views\n")[1].split("\n## ")[0]
    section = PAGE.split(f"\n## {view}\n")[1].split("\n## ")[0]
    described = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]+) \|", common + section, re.MULTILINE)))
    assert set(COLUMNS[view].split()) == set(described)


def test_a_database_can_be_read_without_writing(filled: dict[str, str]) -> None:
    """As the page opens it."""
    path = make_url(filled["sqlite"]).database
    engine = create_engine(f"sqlite:///file:{path}?mode=ro&uri=true")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT policy, count(*) FROM v_findings_open GROUP BY policy")).all()
    engine.dispose()
