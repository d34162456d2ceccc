"""A server with a certificate of its own."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from scanner.errors import AssayError
from tests.web.access.running import access, running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "assay")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


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
