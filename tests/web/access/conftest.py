"""Servers that several tests ask."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from scanner.model.access_token import AccessToken
from scanner.web.access.tokens import PREFIX, digest_of
from tests.web.access.provider import Provider, provided
from tests.web.access.running import Running, access, running

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
    """A server on loopback that needs no credentials."""
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
