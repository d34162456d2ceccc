"""A fake API server for every test that needs one, and clients that send requests without pauses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scanner.cluster.live.cluster import LiveCluster
from tests.cluster.server import FakeApi, serving


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A server with the responses that the test prepares."""
    with serving() as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    """The seconds of each pause that the client would have made."""
    return []


@pytest.fixture
def cluster(api: FakeApi, tmp_path: Path, pauses: list[float]) -> LiveCluster:
    """A client of the server, with a token."""
    return LiveCluster(kubeconfig=api.kubeconfig(tmp_path), chunk_size=2, sleep=pauses.append)


@pytest.fixture
def without_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], None]:
    """An environment without any credentials, in which a test can set variables."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch.setenv
