"""Reads simple kubeconfigs without the official client, whose import takes half a second.

Source of truth: the official client's own loader, which a test compares this with. Only unambiguous
settings are read here: one kubeconfig file with a token, a token file or certificate files, or a pod's service account,
without proxies. The official client reads all others, and reports all errors.
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

from scanner.files import SECRET, SETTINGS, read_text
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
_USER: Final = frozenset({"token", "tokenFile", "client-certificate", "client-key", "as", "as-groups"})
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
class Settings:
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


def plain_kubeconfig(path: Path, context: str) -> tuple[Settings, Entries] | None:
    """The settings of a kubeconfig and its entries, or None if the official client must read it."""
    if any(os.environ.get(name) for name in _PROXIES):
        return None
    entries = _entries(_loaded(path), context)
    if entries is None:
        return None
    cluster, user = as_object(dig(entries.cluster, "cluster")), as_object(dig(entries.user, "user"))
    if not (_plain(cluster, _CLUSTER, _FLAGS) and _plain(user, _USER, ())):
        return None
    settings = _settings(cluster, user, path.absolute().parent)
    return None if settings is None else (settings, entries)


def plain_account(folder: Path = _ACCOUNT) -> Settings | None:
    """The settings of a pod's service account, or None if the official client must report an error."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    authority, token = folder / "ca.crt", folder / "token"
    if not (host and port and _content(authority) and _content(token)) or any(map(os.environ.get, _PROXIES)):
        return None
    shown = f"[{host}]" if ":" in host or "%" in host else host
    return Settings(
        host=f"https://{shown}:{port}",
        ssl_ca_cert=str(authority),
        api_key={"BearerToken": f"Bearer {_content(token)}"},
        refresh_api_key_hook=rereading(token),
    )


def rereading(token: Path, clock: Callable[[], float] = time.monotonic) -> Callable[[Any], None]:
    """A hook that reads the token file of a pod again every 60 seconds, because tokens are rotated."""
    read_at = clock()

    def refresh(settings: Settings) -> None:
        nonlocal read_at
        if clock() - read_at > _STALE and (content := _content(token)):
            settings.api_key["BearerToken"] = f"Bearer {content}"
            read_at = clock()

    return refresh


def _loaded(path: Path) -> JsonObject:
    import yaml  # the official client's own parser, imported when it is needed

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return as_object(yaml.load(read_text(path, SETTINGS), Loader=loader))  # noqa: S506 - a safe loader
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        return {}  # a tag such as !!bool before another text is a KeyError


def _entries(config: JsonObject, context: str) -> Entries | None:
    chosen = _named(config, "contexts", context or as_text(config.get("current-context")))
    cluster = _named(config, "clusters", as_text(dig(chosen, "context", "cluster")))
    user = _named(config, "users", as_text(dig(chosen, "context", "user")))
    return Entries(chosen, cluster, user) if chosen and cluster and user else None


def _named(config: JsonObject, section: str, name: str) -> Json:
    named = [item for item in as_list(config.get(section)) if name and dig(item, "name") == name]
    return named[0] if len(named) == 1 else None


def _plain(section: JsonObject, supported: frozenset[str], flags: tuple[str, ...]) -> bool:
    """Return whether an entry has supported fields only, with their types."""
    if not section or not supported >= section.keys():
        return False
    texts = (value for key, value in section.items() if key not in (*flags, "extensions", "as-groups"))
    return all(isinstance(value, str) and value for value in texts) and all(
        isinstance(section.get(flag, False), bool) for flag in flags
    )


def _settings(cluster: JsonObject, user: JsonObject, home: Path) -> Settings | None:
    files = {
        key: str(home / as_text(section[key]))
        for section, key in (
            (cluster, "certificate-authority"),
            (user, "client-certificate"),
            (user, "client-key"),
            (user, "tokenFile"),
        )
        if key in section
    }
    authority = _decoded(as_text(cluster.get("certificate-authority-data")))
    token = as_text(user.get("token")) or _content(Path(files.get("tokenFile", os.devnull)))
    host = as_text(cluster.get("server")).rstrip("/")
    sound = host.startswith("https://") or (host.startswith("http://") and not files and not authority)
    whole = all(map(os.path.isfile, files.values())) and authority is not None
    if (
        not (sound and whole)
        or ("tokenFile" in files and not token)
        or ("client-certificate" in files) != ("client-key" in files)
    ):
        return None
    return Settings(
        host=host,
        verify_ssl=not cluster.get("insecure-skip-tls-verify", False),
        ssl_ca_cert=None if authority else files.get("certificate-authority"),
        ca_cert_data=authority or None,
        cert_file=files.get("client-certificate"),
        key_file=files.get("client-key"),
        tls_server_name=as_text(cluster.get("tls-server-name")) or None,
        api_key={"BearerToken": f"Bearer {token}"} if token else {},
    )


def _decoded(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None


def _content(path: Path) -> str:
    try:
        return read_text(path, SECRET).strip()
    except (OSError, ValueError):
        return ""
