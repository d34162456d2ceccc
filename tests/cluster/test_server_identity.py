"""The identity of clusters whose kube-system namespace may not be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.cluster.requests.session import digest_server
from scanner.cluster.requests.simple_kubeconfig import ClientSettings

SERVER = "https://10.96.0.1:443"
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def test_two_clusters_at_one_address_have_two_digests() -> None:
    """Inside pods, every API server has the same address: the CA is that of the cluster."""
    first, other = (ClientSettings(SERVER, ca_cert_data=text) for text in (CA, CA.replace("MIIB", "MIIC")))
    assert digest_server(first) != digest_server(other)


@pytest.mark.parametrize("host", [f"{SERVER}/", SERVER, "https://me:hunter2@10.96.0.1:443", f"{SERVER}?token=hunter2"])
def test_the_same_server_has_one_digest(tmp_path: Path, host: str) -> None:
    """The CA may be in a file or in the kubeconfig. Passwords are no part of it: a digest of one would let others test guesses."""
    (tmp_path / "ca.crt").write_text(CA)
    assert digest_server(ClientSettings(SERVER, ca_cert_data=CA)) == digest_server(
        ClientSettings(host, ssl_ca_cert=str(tmp_path / "ca.crt"))
    )


def test_a_server_without_a_ca_of_its_own_is_identified_by_its_url() -> None:
    """As one with a public certificate; a CA that cannot be read fails the first request."""
    assert digest_server(ClientSettings(SERVER)) == digest_server(ClientSettings(SERVER, ssl_ca_cert="/nowhere/ca.crt"))
    assert digest_server(ClientSettings(SERVER)) != digest_server(ClientSettings("https://example.com"))
