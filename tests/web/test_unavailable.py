"""A database that is away: readers learn that it is, and the log learns why."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from scanner.errors import CredentialsRefused
from scanner.store import open_store
from scanner.web.requests.refusals import DatabaseUnavailable
from scanner.web.server.application import application
from scanner.web.server.health import Readiness
from scanner.web.views.library import ScanLibrary
from tests.store.relay import refusing


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


PASSWORD = ("28P01", 'password authentication failed for user "assay"')


@pytest.mark.parametrize("reader", ["page", "probe"])
def test_a_refused_password_is_noticed_by_every_reader(reader: str) -> None:
    """A server without readers is probed, and one without probes is read."""
    refused: list[CredentialsRefused] = []
    with refusing(*PASSWORD) as url:
        library = ScanLibrary(url, refused=refused.append)
        if reader == "page":
            with pytest.raises(DatabaseUnavailable):
                library.clusters()
        else:
            Readiness(library.database, log=lambda _: None, refused=refused.append).trouble()
        library.close()

    assert ["rejects the user or the password"] == [
        "rejects the user or the password" for error in refused if "rejects the user" in str(error)
    ]


@pytest.mark.parametrize("state", ["57P03", "3D000"])
def test_another_error_is_no_refused_password(state: str) -> None:
    """A database that starts, or does not exist, gives no reason to read other credentials."""
    refused: list[CredentialsRefused] = []
    with refusing(state, "the database system is starting up") as url:
        library = ScanLibrary(url, refused=refused.append)
        with pytest.raises(DatabaseUnavailable):
            library.clusters()
        library.close()

    assert [] == refused


def test_the_address_is_read_again_when_the_database_is_opened(tmp_path: Path) -> None:
    """A Secret that is rotated changes its file, and the next reader uses the new address."""
    good = f"sqlite:///{tmp_path / 'assay.db'}"
    open_store(good).close()
    with refusing(*PASSWORD) as old:
        addresses = [old]
        library = ScanLibrary(old, read_url=lambda: addresses[-1])
        with pytest.raises(DatabaseUnavailable):
            library.clusters()
        same = library.renew_address()
        addresses.append(good)
        renewed, clusters = library.renew_address(), library.clusters()
        library.close()

    assert (False, True, ()) == (same, renewed, clusters)
