"""Makes the settings of a connection without the official client, whose import takes 0.43 seconds.

Source of truth: the official client's own loader, which a test compares this with. Only unambiguous settings are made here: those
of entries with a token or certificate files, or of a pod's service account, without proxies. `credentials` finds the entries, and leaves
all others to the official client, which reports all errors in them.
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from scanner.files import SECRET, read_text
from scanner.model.json import Json, JsonObject, as_object, as_text, dig

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
_USER: Final = frozenset({"token", "client-certificate", "client-key", "as", "as-groups"})
_CLUSTER: Final = frozenset(
    {
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "insecure-skip-tls-verify",
        "tls-server-name",
        "disable-compression",
        "extensions",
    }
)
_FLAGS: Final = ("insecure-skip-tls-verify", "disable-compression")
_STALE: Final = 60.0


@dataclass(slots=True)
class ClientSettings:
    """The settings of the official client's Configuration under its names, and `ca_cert_data`."""

    host: str
    verify_ssl: bool = True
    ssl_ca_cert: str | None = None
    ca_cert_data: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    tls_server_name: str | None = None
    proxy: str | None = None
    no_proxy: str | None = None
    api_key: dict[str, str] = field(default_factory=dict)
    refresh_api_key_hook: Callable[[Any], None] | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a kubeconfig that a context names."""

    context: Json
    cluster: Json
    user: Json


def read_simple_settings(entries: Entries) -> ClientSettings | None:
    """The settings of entries whose files have absolute paths and were read before, or None if the official client must read them."""
    cluster, user = as_object(dig(entries.cluster, "cluster")), as_object(dig(entries.user, "user"))
    if any(map(os.environ.get, _PROXIES)) or not (
        _has_supported_fields(cluster, _CLUSTER, _FLAGS) and _has_supported_fields(user, _USER, ())
    ):
        return None
    host, authority = as_text(cluster.get("server")).rstrip("/"), _decode(cluster.get("certificate-authority-data"))
    token, certificate, key = (as_text(user.get(name)) for name in ("token", "client-certificate", "client-key"))
    files = certificate or as_text(cluster.get("certificate-authority"))
    sound = host.startswith("https://") or (host.startswith("http://") and not files and not authority)
    if not sound or authority is None or bool(certificate) != bool(key):
        return None
    return ClientSettings(
        host=host,
        verify_ssl=not cluster.get("insecure-skip-tls-verify", False),
        ssl_ca_cert=None if authority else as_text(cluster.get("certificate-authority")) or None,
        ca_cert_data=authority or None,
        cert_file=certificate or None,
        key_file=key or None,
        tls_server_name=as_text(cluster.get("tls-server-name")) or None,
        api_key={"BearerToken": f"Bearer {token}"} if token else {},
    )


def read_service_account(folder: Path = SERVICE_ACCOUNT) -> ClientSettings | None:
    """The settings of a pod's service account, or None if the official client must report an error."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    authority, token = folder / "ca.crt", folder / "token"
    if not (host and port and _read_content(authority) and _read_content(token)) or any(map(os.environ.get, _PROXIES)):
        return None
    host_text = f"[{host}]" if ":" in host or "%" in host else host
    return ClientSettings(
        host=f"https://{host_text}:{port}",
        ssl_ca_cert=str(authority),
        api_key={"BearerToken": f"Bearer {_read_content(token)}"},
        refresh_api_key_hook=make_token_hook(token),
    )


def make_token_hook(token: Path, clock: Callable[[], float] = time.monotonic) -> Callable[[Any], None]:
    """A hook that reads the token file of a pod again every 60 seconds, because tokens are rotated."""
    read_at = clock()

    def refresh(settings: ClientSettings) -> None:
        nonlocal read_at
        if clock() - read_at > _STALE and (content := _read_content(token)):
            settings.api_key["BearerToken"] = f"Bearer {content}"
            read_at = clock()

    return refresh


def _has_supported_fields(section: JsonObject, supported: frozenset[str], flags: tuple[str, ...]) -> bool:
    """Return whether an entry has supported fields only, with their types."""
    if not section or not supported >= section.keys():
        return False
    texts = (value for key, value in section.items() if key not in (*flags, "extensions", "as-groups"))
    return all(isinstance(value, str) and value for value in texts) and all(
        isinstance(section.get(flag, False), bool) for flag in flags
    )


def _decode(data: Json) -> str | None:
    try:
        return base64.b64decode(as_text(data), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None


def _read_content(path: Path) -> str:
    try:
        return read_text(path, SECRET).strip()
    except (OSError, ValueError):
        return ""
