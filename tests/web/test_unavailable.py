"""A database that is away: readers learn that it is, and the log learns why."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from scanner.web.server.application import application
from scanner.web.views.library import ScanLibrary


@pytest.mark.parametrize("path", ["/", "/policies", "/search?q=web", "/api/v1/clusters"])
def test_readers_do_not_see_the_address_of_the_database(
    path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The page and the API have a reason; the log has the whole message."""
    place = tmp_path / "secret-place.db"
    place.write_bytes(b"no database at all" * 100)
    library = ScanLibrary(f"sqlite:///{place}")
    with caplog.at_level(logging.WARNING, "assay.web"):
        answer = TestClient(application(library)).get(path)
    library.close()

    assert 503 == answer.status_code
    assert "the database cannot be read: the log of the server has the reason" in answer.text
    assert "secret-place" not in answer.text
    assert "secret-place" in caplog.text
