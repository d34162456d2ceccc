"""The example cluster after two scans, in a database of each kind; and servers that several tests ask."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from scanner.model.access_token import AccessToken
from scanner.web.access.tokens import PREFIX, digest_of
from tests.store.databases import KINDS, database
from tests.web.provider import Provider, provided
from tests.web.running import Running, access, running
from tests.web.served import Served, scan_examples, served

TOKEN = f"{PREFIX}{'t' * 43}"
EXPIRED = f"{PREFIX}{'e' * 43}"
UNKNOWN = f"{PREFIX}{'u' * 43}"
TODAY = datetime.now(UTC).date()
TOKENS = (
    AccessToken("grafana", digest_of(TOKEN), TODAY + timedelta(days=1)),
    AccessToken("old", digest_of(EXPIRED), TODAY - timedelta(days=2)),
)


@pytest.fixture(scope="module")
def unauthenticated() -> Iterator[Running]:
    """A server on loopback that asks nobody who they are."""
    with running(access()) as server:
        yield server


@pytest.fixture(scope="module")
def with_tokens() -> Iterator[Running]:
    """A server with two tokens, of which one has expired."""
    with running(access(tokens=TOKENS)) as server:
        yield server


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider of OpenID Connect."""
    with provided() as provider:
        yield provider


@pytest.fixture(scope="session", params=KINDS)
def examples(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database with two scans of the example cluster."""
    home = tmp_path_factory.mktemp("examples")
    with database(request.param, home) as url:
        scan_examples(url, home, "before", "after")
        yield url


@pytest.fixture(scope="session")
def site(examples: str) -> Iterator[Served]:
    """The application over that database."""
    with served(examples) as opened:
        yield opened
