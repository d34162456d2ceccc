"""TLS and proxies: the settings of the pool of connections."""

from __future__ import annotations

import ssl

import pytest
import urllib3
from kubernetes.client import Configuration

from scanner.cluster.requests.credentials import Credentials
from scanner.cluster.requests.transport import choose_encoding, make_pool, make_timeout
from scanner.errors import ClusterError


def credentials(*, own_proxy: bool = False, **settings: object) -> Credentials:
    """Credentials with some settings of the official client."""
    configuration = Configuration(host="https://cluster.example:6443")
    configuration.proxy = None
    for name, value in settings.items():
        setattr(configuration, name, value)
    return Credentials("shop", configuration, own_proxy=own_proxy)


def test_the_kubeconfigs_certificates_are_used() -> None:
    """Every connection has the authority, the client certificate and the server's name."""
    pool = make_pool(credentials(ssl_ca_cert="/ca", cert_file="/cert", key_file="/key", tls_server_name="api.internal"))
    settings = pool.connection_pool_kw
    assert ("/ca", "/cert", "/key") == (settings["ca_certs"], settings["cert_file"], settings["key_file"])
    assert ("api.internal", ssl.CERT_REQUIRED) == (settings["server_hostname"], settings["cert_reqs"])


def test_verification_can_be_switched_off() -> None:
    """Only insecure-skip-tls-verify disables verification."""
    settings = make_pool(credentials(verify_ssl=False)).connection_pool_kw
    assert (ssl.CERT_NONE, False) == (settings["cert_reqs"], settings["assert_hostname"])


@pytest.mark.parametrize(
    ("no_proxy", "own", "used"),
    [
        ("", False, True),
        ("other.example", False, True),
        ("cluster.example", False, False),
        ("cluster.example", True, True),
    ],
)
def test_no_proxy_stops_the_environments_proxy_only(no_proxy: str, own: bool, used: bool) -> None:  # noqa: FBT001
    """A proxy in the kubeconfig applies to its cluster."""
    pool = make_pool(credentials(own_proxy=own, proxy="http://proxy.example:3128", no_proxy=no_proxy))
    assert used == isinstance(pool, urllib3.ProxyManager)


def test_a_proxys_password_is_sent_to_it() -> None:
    """The password is in the URL, as for kubectl."""
    pool = make_pool(credentials(own_proxy=True, proxy="http://me:secret@proxy.example:3128"))
    assert isinstance(pool, urllib3.ProxyManager)
    assert {"proxy-authorization": "Basic bWU6c2VjcmV0"} == pool.proxy_headers


def test_an_unusable_proxy_is_an_error() -> None:
    """The message does not show the password in its URL."""
    with pytest.raises(ClusterError, match=r"^cannot use the proxy ftp://proxy\.example before") as refused:
        make_pool(credentials(own_proxy=True, proxy="ftp://me:secret@proxy.example"))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("wish", "total", "read"), [(None, None, 75.0), (0, None, 75.0), (3.0, 3.0, 3.0)])
def test_requests_end_in_time(wish: float | None, total: float | None, read: float) -> None:
    """The limit is the user's, else a little longer than the server's own."""
    timeout = make_timeout(wish)
    assert (total, read) == (timeout.total, timeout.clone().read_timeout if total is None else read)


@pytest.mark.parametrize(
    ("host", "uncompressed", "encoding"),
    [
        ("https://cluster.example:6443", False, "gzip"),
        ("https://cluster.example:6443", True, "identity"),
        ("https://127.0.0.1:6443", False, "identity"),
    ],
)
def test_compression_is_requested_except_on_loopback(host: str, uncompressed: bool, encoding: str) -> None:  # noqa: FBT001
    """Compression follows kubectl and the kubeconfig; over loopback it would only cost the server time."""
    configuration = Configuration(host=host)
    assert encoding == choose_encoding(Credentials("shop", configuration, uncompressed=uncompressed))
