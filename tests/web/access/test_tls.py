"""A server with a certificate of its own."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx2
import pytest

from scanner.errors import AssayError
from tests.certificates import self_signed
from tests.web.access.running import access, running


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
