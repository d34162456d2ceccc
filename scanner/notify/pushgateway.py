"""Sends metrics to a Pushgateway, for those who scan from a job and run no server.

`prometheus_client` writes the metrics and the address of their group; the request has the limits of this module.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Thread
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

from prometheus_client import push_to_gateway, pushadd_to_gateway
from prometheus_client.registry import Collector

from scanner.errors import UsageError
from scanner.notify.requests import FAILURES, describe_status, reason_of, send

SECONDS: Final = 10.0
"""The time limit of a push, the look-up of the host included."""
_SCHEMES: Final = ("http", "https")
_TOKEN: Final = re.compile(r"[!-~]+")
_FAULTS: Final = {
    400: "it rejects the metrics",
    401: "it rejects the credentials",
    403: "it denies access",
    404: "it has no Pushgateway at this address",
    413: "the metrics are too large for it",
}

Headers: TypeAlias = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Gateway:
    """A Pushgateway: its URL without credentials, and the header `Authorization`, which may be empty."""

    url: str
    authorization: str = field(default="", repr=False)


def gateway_of(url: str, token: str = "", *, name: str = "--push-metrics") -> Gateway:
    """The Pushgateway at a URL, which may have a user and a password; or else with a bearer token. Raises UsageError.

    No message repeats the URL, which may have a secret.
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise UsageError(f"{name} is no URL: write one such as https://pushgateway.example.com:9091") from error
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise UsageError(f"{name} must be an http or https URL such as https://pushgateway.example.com:9091")
    if parts.query or parts.fragment or "/metrics/job" in parts.path:
        raise UsageError(f"{name} must be the address of the Pushgateway alone: job and cluster are added to it")
    user = parts.username is not None or parts.password is not None
    if user and token:
        raise UsageError(f"{name} has a user, and there is a token: leave one of them out")
    if token and not _TOKEN.fullmatch(token):
        raise UsageError("The token for the Pushgateway has spaces or other characters that no token has")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown = f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"
    if token:
        return Gateway(shown, f"Bearer {token}")
    basic = b64encode(f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()).decode()
    return Gateway(shown, f"Basic {basic}" if user else "")


def push(gateway: Gateway, cluster: str, metrics: Collector, *, replace: bool, seconds: float = SECONDS) -> str:
    """Send the metrics of a cluster; return the reason why they did not arrive, or an empty text.

    With `replace`, metrics of the cluster that are not among these are deleted; else they stay.
    """
    answers: list[str] = []

    def handler(url: str, method: str, timeout: float, headers: Headers, data: bytes) -> Callable[[], None]:
        all_headers = [*headers, ("User-Agent", "assay")]
        if gateway.authorization:
            all_headers.append(("Authorization", gateway.authorization))
        return lambda: answers.append(_send(method, url, data, headers=dict(all_headers), seconds=timeout))

    # A look-up of a host has no time limit, nor has a response that arrives byte by byte.
    sender = Thread(
        target=push_to_gateway if replace else pushadd_to_gateway,
        args=(gateway.url, "assay", metrics, _group(cluster), seconds, handler),
        daemon=True,
    )
    sender.start()
    sender.join(seconds)
    return answers[0] if answers else f"no response within {seconds:g} seconds"


def _group(cluster: str) -> dict[str, str]:
    """The label of the group of a cluster; in base64 where a path of this name would be another path, which the library overlooks."""
    if cluster in {".", ".."}:
        return {"cluster@base64": b64encode(cluster.encode()).decode()}
    return {"cluster": cluster}


def _send(method: str, url: str, data: bytes, *, headers: dict[str, str], seconds: float) -> str:
    try:
        status = send(method, url, data, headers=headers, seconds=seconds)
    except FAILURES as error:
        return reason_of(error, seconds)
    return describe_status(status, _FAULTS, moved="and credentials are not sent there")
