"""The time at which the credentials in a kubeconfig expire, as far as the kubeconfig itself has them."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from scanner.cluster.live.cluster import LiveCluster

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LATER = NOW + timedelta(days=400)
SOON = NOW + timedelta(days=100)


def certificate(begin: datetime, end: datetime) -> tuple[str, str]:
    """A certificate with its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "scanner")])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), begin, end).sign(
        key, hashes.SHA256()
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


def token(**claims: object) -> str:
    """A JSON Web Token with some claims."""
    parts = ({"alg": "none"}, claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join((*encoded, "signature"))


def data(begin: datetime, end: datetime, authority: datetime | None = None) -> dict[str, str]:
    """A user with an embedded certificate, with that of an authority behind it if its end is given."""
    own, key = certificate(begin, end)
    chain = own + (certificate(begin, authority)[0] if authority else "")
    texts = {"client-certificate-data": chain, "client-key-data": key}
    return {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}


def expiry(folder: Path, user: dict[str, Any]) -> datetime | None:
    """The time that a cluster with this user names."""
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    until = LiveCluster(kubeconfig=str(path)).valid_until
    return None if until is None else datetime.fromtimestamp(until, UTC)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (data(NOW, LATER), LATER),
        (data(NOW, LATER, authority=SOON), LATER),
        ({"token": token(iat=NOW.timestamp(), exp=LATER.timestamp())}, LATER),
        ({"token": token(exp=LATER.timestamp())}, LATER),
        ({"token": token(iat=NOW.timestamp(), exp=SOON.timestamp()), **data(NOW, LATER)}, SOON),
        ({"token": token(iat=NOW.timestamp())}, None),
        ({"token": "opaque"}, None),
        ({"token": token(iat=NOW.timestamp(), exp=(NOW + timedelta(hours=12)).timestamp())}, None),
        (data(NOW, NOW + timedelta(days=7)), None),
    ],
    ids=["certificate", "chain", "token", "token without iat", "both", "no end", "opaque", "short token", "short"],
)
def test_the_first_end_of_the_embedded_credentials_counts(
    tmp_path: Path, user: dict[str, Any], expected: datetime | None
) -> None:
    """Those that are valid for some days alone are renewed by a program, and no user must know their end."""
    assert expected == expiry(tmp_path, user)


def test_a_certificate_in_a_file_counts(tmp_path: Path) -> None:
    """Its path is relative to the kubeconfig."""
    own, key = certificate(NOW, LATER)
    (tmp_path / "own.pem").write_text(own)
    (tmp_path / "key.pem").write_text(key)

    assert LATER == expiry(tmp_path, {"client-certificate": "own.pem", "client-key": "key.pem"})


def test_a_token_of_a_file_has_no_end(tmp_path: Path) -> None:
    """A program replaces the file."""
    (tmp_path / "token").write_text(token(iat=NOW.timestamp(), exp=LATER.timestamp()))

    assert None is expiry(tmp_path, {"tokenFile": str(tmp_path / "token")})
