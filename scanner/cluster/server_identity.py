"""What identifies a cluster whose kube-system namespace may not be read: the CA and the URL of its API server.

The URL alone does not: in every cluster with default settings, pods reach the API server at the same address.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from scanner.files import SETTINGS, read_file
from scanner.model.urls import without_password


def server_digest(configuration: Any) -> str:
    """SHA-256, in hex, of the certificates that the server is verified with and of its URL without user, password and query."""
    url = without_password(str(configuration.host)).rstrip("/")
    return hashlib.sha256(_authority(configuration).strip() + b"\0" + url.encode()).hexdigest()


def _authority(configuration: Any) -> bytes:
    """The CA certificates of the configuration in PEM; empty if the system's certificates are used, or none."""
    if data := getattr(configuration, "ca_cert_data", None):
        return str(data).encode()
    if configuration.ssl_ca_cert:
        with suppress(OSError):
            return read_file(Path(configuration.ssl_ca_cert), SETTINGS)
    return b""
