"""HTTP/1.1 for clients that may be slow on purpose: uvicorn's protocol with limits for the times that a client may take.

uvicorn limits the pause between two requests alone: a client that sends one byte of a head in a minute, or does not receive its
answer, would keep its connection, and what the answer needs, for ever.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from scanner.web.requests.limits import Limits


def protocol_with(limits: Limits) -> type[H11Protocol]:
    """The class of uvicorn's protocol with these limits."""

    class Protocol(TimedProtocol):
        pass

    Protocol.limits = limits
    return Protocol


class TimedProtocol(H11Protocol):
    """A connection that ends when its client takes too long to send a head, or to receive a part of an answer."""

    limits = Limits()
    _head: asyncio.TimerHandle | None = None
    _receipt: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection, whose first head must arrive in time."""
        super().connection_made(transport)
        self._head = self._later(self.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the limits with the connection."""
        self._head_arrived()
        self._part_received()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        if self._head is None and self.conn.their_state is h11.IDLE:
            self._head = self._later(self.limits.head_seconds)
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._head_arrived()

    def pause_writing(self) -> None:
        """Wait for the client to receive, but not for ever."""
        super().pause_writing()
        self._receipt = self._receipt or self._later(self.limits.send_seconds)

    def resume_writing(self) -> None:
        """Continue to write."""
        self._part_received()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """End an answer: its last part must be received in time, too, if nothing follows."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._later(self.limits.send_seconds)

    def timeout_keep_alive_handler(self) -> None:
        """End a connection without a further request."""
        super().timeout_keep_alive_handler()
        self._later(self.limits.send_seconds)

    def _head_arrived(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _part_received(self) -> None:
        if self._receipt is not None:
            self._receipt.cancel()
            self._receipt = None

    def _later(self, seconds: float) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, self.transport.abort)
