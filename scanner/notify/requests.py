"""Sends one request to a receiver, which may fail in any way, and words a failure without the URL: its path can be a secret."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

import urllib3
from urllib3.exceptions import HTTPError
from urllib3.util import Timeout

FAILURES: Final = (HTTPError, OSError, ValueError)
"""The errors of a request without a response."""
_ACCEPTED: Final = range(200, 300)
_MOVED: Final = range(300, 400)


def send(method: str, url: str, body: bytes, *, headers: Mapping[str, str], seconds: float) -> int:
    """Send a request that follows no redirect, within a time limit; return the status of the response. Raises FAILURES."""
    with urllib3.PoolManager(ssl_context=ssl.create_default_context(), retries=False) as pool:
        response = pool.request(
            method,
            url,
            body=body,
            headers=headers,
            timeout=Timeout(total=seconds),
            redirect=False,
            preload_content=False,
        )
        response.release_conn()
    return response.status


def describe_status(status: int, faults: Mapping[int, str], *, moved: str) -> str:
    """The reason why a response is a failure, empty if it is none; `moved` is the part of the reason for a redirect."""
    if status in _ACCEPTED:
        return ""
    if status in _MOVED:
        return f"the server sends to another address (status {status}), {moved}: correct the URL"
    return f"{faults.get(status, 'the server failed')} (status {status})"


def reason_of(error: Exception, seconds: float) -> str:
    """The reason of one of FAILURES, without the texts of the error, which can have the URL. `seconds` was the time limit."""
    match error:
        case urllib3.exceptions.NameResolutionError():
            return "the host cannot be found"
        case urllib3.exceptions.NewConnectionError():
            return "the connection was refused"
        case urllib3.exceptions.ConnectTimeoutError() | urllib3.exceptions.ReadTimeoutError():
            return f"no response within {seconds:.3g} seconds"
        case urllib3.exceptions.SSLError():
            return "the certificate cannot be verified"
        case _:
            return f"the connection failed ({type(error).__name__})"
