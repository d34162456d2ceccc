"""A server with a certificate of its own."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import httpx2
import pytest

from scanner.errors import AssayError
from tests.certificates import self_signed
from tests.web.access.running import Running, access, running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a certificate for 127.0.0.1 and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


def test_a_server_has_a_certificate_of_its_own(certificate: Path) -> None:
    """Its address begins with https."""
    trusted = ssl.create_default_context(cafile=str(certificate))
    with running(access(), certificate=certificate) as server, httpx2.Client(verify=trusted, trust_env=False) as client:
        assert server.url.startswith("https://127.0.0.1:")
        assert 200 == client.get(server.url).status_code


def test_a_file_without_a_certificate_is_an_error(tmp_path: Path) -> None:
    """With the flags to check."""
    path = tmp_path / "empty.pem"
    path.touch()
    with (
        pytest.raises(
            AssayError, match=r"the certificate .*empty\.pem cannot be used .*: check --tls-cert and --tls-key"
        ),
        running(access(), certificate=path),
    ):
        pass


def wait_for(server: Running, words: str) -> None:
    """Wait for an event with some words."""
    end = time.monotonic() + 20
    while not any(words in message for _, message in server.events):
        assert time.monotonic() < end, server.events
        time.sleep(0.02)


def test_a_certificate_that_was_replaced_is_used(tmp_path: Path) -> None:
    """As cert-manager replaces that of a Secret, without a restart; a broken one in between changes nothing."""
    first, second = (tmp_path / name for name in ("first", "second"))
    first.mkdir()
    second.mkdir()
    path, renewed = self_signed(first), self_signed(second)
    trusted = ssl.create_default_context(cafile=str(renewed))
    with running(access(), certificate=path, certificate_seconds=0.05) as server:
        path.write_text("no certificate")
        wait_for(server, "cannot be used")
        path.write_bytes(renewed.read_bytes())
        wait_for(server, "was read again")
        with httpx2.Client(verify=trusted, trust_env=False) as client:
            assert 200 == client.get(server.url).status_code
