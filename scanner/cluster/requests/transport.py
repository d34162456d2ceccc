"""Makes the pool of connections for credentials: TLS, client certificates and proxies.

Source of truth: client-go's transport. The environment's proxies are not used for a loopback address, and NO_PROXY
does not apply to a proxy in the kubeconfig.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

import urllib3
from urllib3.exceptions import InsecureRequestWarning, LocationParseError
from urllib3.util import make_headers, parse_url

from scanner.cluster.requests.credentials import Credentials
from scanner.cluster.requests.exchange import set_connection_classes
from scanner.errors import InvalidKubeconfig
from scanner.model.urls import remove_password

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_UNTIL_CONNECTED: Final = 30.0
_CONNECTIONS: Final = 16
# An API server ends ordinary requests after 60 seconds by itself.
_UNTIL_ANSWERED: Final = 75.0


def make_pool(credentials: Credentials) -> urllib3.PoolManager:
    """The pool of connections to the server of the credentials. Raises ClusterError for certificates or proxies that fail."""
    settings = _make_tls_arguments(credentials.configuration)
    proxy = _find_proxy(credentials)
    try:
        if not proxy:
            return set_connection_classes(urllib3.PoolManager(**settings))
        if proxy.startswith("socks"):
            return _make_socks_pool(proxy, settings)
        auth = parse_url(proxy).auth
        headers = make_headers(proxy_basic_auth=auth) if auth else None
        return set_connection_classes(urllib3.ProxyManager(proxy, proxy_headers=headers, **settings))
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise InvalidKubeconfig(
            f"cannot use the proxy {remove_password(proxy)} before the cluster: correct proxy-url or HTTPS_PROXY"
        ) from error


def choose_encoding(credentials: Credentials) -> str:
    """The value of Accept-Encoding.

    kubectl requests compression unless the kubeconfig has `disable-compression`. So does a scan, except on loopback. Measured on 67 MB of pods: packed they are 6.4 MB, for 0.3 to 1.3 s more of the
    server's time and none of ours; that pays on links of up to about a gigabit a second, and not on loopback.
    """
    near = get_host(str(credentials.configuration.host)) in _LOOPBACK
    return "identity" if credentials.uncompressed or near else "gzip"


def get_host(url: str) -> str:
    """The host of a URL; empty for an invalid URL, which the first request reports."""
    try:
        return parse_url(url).host or ""
    except LocationParseError:
        return ""


def make_timeout(seconds: float | None) -> urllib3.Timeout:
    """The time limit of one request, in seconds; without a user's value, longer than any server needs."""
    if seconds is None or seconds <= 0:
        return urllib3.Timeout(connect=_UNTIL_CONNECTED, read=_UNTIL_ANSWERED)
    return urllib3.Timeout(total=seconds)


def _make_tls_arguments(configuration: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "maxsize": _CONNECTIONS,
        "cert_reqs": ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE,
        "ca_certs": configuration.ssl_ca_cert,
        "cert_file": configuration.cert_file,
        "key_file": configuration.key_file,
    }
    if authority := getattr(configuration, "ca_cert_data", None):
        settings["ca_cert_data"] = authority
    if configuration.tls_server_name:
        settings["server_hostname"] = configuration.tls_server_name
    if not configuration.verify_ssl:
        settings["assert_hostname"] = False
        # The user set insecure-skip-tls-verify, so a warning on every request is not needed.
        urllib3.disable_warnings(InsecureRequestWarning)
    return settings


def _find_proxy(credentials: Credentials) -> str:
    configuration = credentials.configuration
    proxy = str(configuration.proxy or "")
    if not proxy or credentials.own_proxy:
        return proxy
    from kubernetes.client.rest import should_bypass_proxies  # half a second, only needed here

    if get_host(str(configuration.host)) in _LOOPBACK or should_bypass_proxies(
        configuration.host, configuration.no_proxy or ""
    ):
        return ""
    return proxy


def _make_socks_pool(proxy: str, settings: dict[str, Any]) -> urllib3.PoolManager:
    try:
        from urllib3.contrib.socks import SOCKSProxyManager  # needs PySocks, which few have
    except ImportError as error:
        raise InvalidKubeconfig(
            f"the proxy {remove_password(proxy)} needs PySocks: install it with `pip install PySocks`"
        ) from error
    return SOCKSProxyManager(proxy, **settings)
