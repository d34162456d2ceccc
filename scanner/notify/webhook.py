"""Sends signed webhooks: to a receiver that may be slow, refuse, or fail in the middle of its answer.

Source of truth: the Standard Webhooks specification (github.com/standard-webhooks/standard-webhooks), whose libraries verify these
requests. The signature is HMAC-SHA256 over `webhook-id`, `webhook-timestamp` and the body, with points between them; a secret is
`whsec_` and 24 to 64 bytes in base64.
"""

from __future__ import annotations

import binascii
import hmac
import time
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final
from urllib.parse import urlsplit

from urllib3.exceptions import SSLError

from scanner.errors import UsageError
from scanner.notify.requests import FAILURES, describe_status, reason_of, send

SECONDS: Final = 20.0
"""The time limit of a delivery, with all its attempts."""
_ATTEMPT: Final = 10.0
_PAUSES: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""The seconds before each attempt."""
_PREFIX: Final = "whsec_"
_KEY_BYTES: Final = range(24, 65)
_LATER: Final = frozenset({408, 425, 429, *range(500, 600)})
"""The statuses after which another attempt may succeed."""
_FAULTS: Final = {
    400: "it rejects the notification",
    401: "it rejects the signature",
    403: "it denies access",
    404: "it has no receiver at this address",
    408: "it waited too long for the notification",
    410: "its receiver is gone",
    413: "the notification is too large for it",
    429: "it receives too many requests",
}


@dataclass(frozen=True, slots=True)
class Webhook:
    """The URL of a receiver, and the key that it shares with Assay. Neither is in messages: the path of a URL can be a secret."""

    url: str = field(repr=False)
    key: bytes = field(repr=False)

    @property
    def origin(self) -> str:
        """The scheme and the host of the URL."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification for a receiver. `id` is the same for each attempt, also in a later process."""

    webhook: Webhook
    id: str
    body: bytes


def key_of(text: str) -> bytes:
    """The key in a secret. Raises UsageError, without the text."""
    try:
        key = b64decode(text.strip().removeprefix(_PREFIX).encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) not in _KEY_BYTES:
        raise UsageError(
            f"the key must be {_PREFIX} and {_KEY_BYTES[0]} to {_KEY_BYTES[-1]} bytes in base64: "
            f"echo {_PREFIX}$(openssl rand -base64 32) prints one"
        )
    return key


def sign(key: bytes, message_id: str, timestamp: int, content: bytes) -> str:
    """The header `webhook-signature`: its version, and the signature in base64."""
    signed = f"{message_id}.{timestamp}.".encode() + content
    return f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def deliver(
    deliveries: Sequence[Delivery], *, seconds: float = SECONDS, pauses: Sequence[float] = _PAUSES
) -> list[str]:
    """Send notifications at the same time; return for each the reason why it did not arrive, or an empty text.

    An answer that arrives after the limit of time does not count. Raises KeyboardInterrupt.
    """
    end = time.monotonic() + seconds
    stopped = Event()
    answers: dict[int, str] = {}

    def attempt(number: int) -> None:
        answers[number] = _send(deliveries[number], end, pauses, stopped)

    # A look-up of a host has no time limit, nor has a response that arrives byte by byte.
    threads = [Thread(target=attempt, args=(number,), daemon=True) for number in range(len(deliveries))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
    finally:
        stopped.set()
    return [answers.get(number, f"no response within {seconds:g} seconds") for number in range(len(deliveries))]


def _send(delivery: Delivery, end: float, pauses: Sequence[float], stopped: Event) -> str:
    trouble = "no time was left"
    for attempt, pause in enumerate(pauses, 1):
        if time.monotonic() + pause >= end or stopped.wait(pause):
            break
        trouble, again = _attempt(delivery, min(_ATTEMPT, end - time.monotonic()))
        if not again:
            return trouble
        trouble += f", after {attempt} attempts" if attempt > 1 else ""
    return trouble


def _attempt(delivery: Delivery, seconds: float) -> tuple[str, bool]:
    """The reason of a failure, empty for none, and whether another attempt may succeed."""
    now = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "assay",
        "webhook-id": delivery.id,
        "webhook-timestamp": str(now),
        "webhook-signature": sign(delivery.webhook.key, delivery.id, now, delivery.body),
    }
    try:
        status = send("POST", delivery.webhook.url, delivery.body, headers=headers, seconds=max(seconds, 0.001))
    except FAILURES as error:
        return reason_of(error, seconds), not isinstance(error, SSLError)
    return describe_status(status, _FAULTS, moved="which Assay does not follow"), status in _LATER
