"""`assay serve` with a role of PostgreSQL that may only read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from scanner.store.upkeep.reading_rights import TABLES_OF_PAGES
from scanner.web.api.routes import ENDPOINTS
from scanner.web.server.health import Readiness, health_routes
from scanner.web.server.metrics import ClusterMetrics, metrics_routes
from tests.store.databases import database, execute
from tests.store.roles import USE_SCHEMA, Role, role
from tests.web.fleets import NOW, fill
from tests.web.served import Served, served

_READ = f"GRANT SELECT ON {', '.join(TABLES_OF_PAGES)} TO {{role}}"
_LINK = re.compile(r'href="(/[^"#]*)')
_PAGE = re.compile(r'href="([\w/-]+\.html(?:\?[^"#]*)?)')
_EACH = 2
"""The pages of one form that are opened."""
_FINE = {200, 302, 303, 307, 404}
"""A scan that failed has no pages."""


@pytest.fixture(scope="module")
def fleet_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL database with several clusters."""
    with database("postgresql", tmp_path_factory.mktemp("role")) as url:
        fill(url)
        yield url


@pytest.fixture(scope="module")
def reader(fleet_database: str) -> Iterator[Role]:
    """A role that reads no other tables than `TABLES_OF_PAGES`."""
    with role(fleet_database, USE_SCHEMA, _READ) as made:
        yield made


@pytest.fixture(scope="module")
def site(reader: Role) -> Iterator[Served]:
    """The application for that role."""
    with served(reader.url, clock=lambda: NOW) as opened:
        yield opened


def answer(site: Served, path: str) -> tuple[int, str]:
    """The answer of a probe, or of `/metrics`."""
    routes = [
        *health_routes(Readiness(site.library.database, log=lambda _: None)),
        *metrics_routes(ClusterMetrics(site.library.database, site.library.settings, clock=lambda: NOW)),
    ]
    got = TestClient(Starlette(routes=routes)).get(path)
    return got.status_code, got.text


def test_the_tables_of_pages_suffice_for_every_page(site: Served) -> None:
    """Every form of a link is opened, beginning with the first page and a search: none of them reads a further table."""
    sample = f"{site.cluster}/latest/sample.html?seed=x&n=1000&owner=1"
    waiting, opened = ["/", "/search?q=web", "/search?q=replicas", sample], dict[str, int]()
    forms: Counter[str] = Counter()
    while waiting:
        link = waiting.pop().replace("&amp;", "&")
        form = re.sub(r"[0-9a-f]{3,}|\d+", "#", re.sub(r"=[^&]*", "=", link) if "/objects/" in link else link)
        if link in opened or forms[form] >= _EACH:
            continue
        forms[form] += 1
        got = site.get(link)
        opened[link] = got.status
        waiting += _LINK.findall(got.text)
        waiting += [f"{link.rpartition('/')[0]}/{page}" for page in _PAGE.findall(got.text)]
    assert 40 < len(opened)
    assert 200 == opened[sample]
    assert {} == {link: status for link, status in opened.items() if status not in _FINE}


def test_the_tables_of_pages_suffice_for_the_api_and_the_metrics(site: Served) -> None:
    """Every endpoint that needs no more than a cluster."""
    cluster = site.library.key(site.library.clusters()[0])
    paths = [each.path.replace("{cluster}", cluster) for each in ENDPOINTS]
    asked = [f"/api/v1{path}" for path in paths if "{" not in path]
    assert 8 < len(asked)
    assert {} == {path: status for path in asked if (status := site.get(path).status) not in {200, 400}}
    assert 200 == answer(site, "/metrics")[0]
    assert 200 == answer(site, "/readyz")[0]


def test_readiness_follows_the_rights_of_the_role(fleet_database: str, reader: Role, site: Served) -> None:
    """A role that lacks the tables of the search is not ready; the sentence names them, without address or user."""
    execute(fleet_database, f"REVOKE SELECT ON words, verdict_uses FROM {reader.name}")
    try:
        lacking, search = answer(site, "/readyz"), site.get("/search?q=web").status
    finally:
        execute(fleet_database, f"GRANT SELECT ON words, verdict_uses TO {reader.name}")

    assert (503, 503) == (lacking[0], search)
    assert (
        "not ready: the user of the database may not read the tables verdict_uses, words. "
        "Run `assay db upgrade --grant-select USER` as the owner of the tables\n"
    ) == lacking[1]
    assert 200 == answer(site, "/readyz")[0]
