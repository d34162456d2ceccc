"""A PostgreSQL that tests take away and give back: a relay in front of the real one; and a server that refuses every client."""

from __future__ import annotations

import selectors
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Final

from sqlalchemy.engine import make_url

_BYTES: Final = 65536
_WAIT: Final = 0.05
_PLAIN: Final = {"sslmode": "disable", "gssencmode": "disable"}
"""A client then sends its name at once."""


class Relay:
    """Passes connections on to a database once it is given; otherwise nothing listens, and open connections have ended."""

    def __init__(self, url: str) -> None:
        """Listen to nothing yet. `url` is that of the database, `self.url` the same one behind the relay."""
        self._refused = 0
        self._refusal = b""
        address = make_url(url)
        self._target = (address.host or "127.0.0.1", address.port or 5432)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        behind = address.set(host="127.0.0.1", port=self._port).update_query_dict(_PLAIN)
        self.url = behind.render_as_string(hide_password=False)
        self._thread: Thread | None = None
        self._ends = False

    def give(
        self, *, refused: int = 0, state: str = "57P03", message: str = "the database system is starting up"
    ) -> None:
        """Let the database be there; so many clients are `refused` first, with an SQLSTATE and a message."""
        self._refused, self._refusal = refused, make_refusal(state, message)
        listener = socket.create_server(("127.0.0.1", self._port))
        self._ends = False
        self._thread = Thread(target=self._run, args=(listener,), daemon=True)
        self._thread.start()

    def take(self) -> None:
        """Let it be away."""
        self._ends = True
        if self._thread is not None:
            self._thread.join()

    def _run(self, listener: socket.socket) -> None:
        pairs: dict[socket.socket, socket.socket] = {}
        with listener, selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            while not self._ends:
                for key, _ in selector.select(_WAIT):
                    if key.fileobj is listener:
                        client, _ = listener.accept()
                        if self._refused:
                            self._refused -= 1
                            with client:
                                client.recv(_BYTES)
                                client.sendall(self._refusal)
                            continue
                        server = socket.create_connection(self._target)
                        pairs |= {client: server, server: client}
                        selector.register(client, selectors.EVENT_READ)
                        selector.register(server, selectors.EVENT_READ)
                        continue
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    if source.fileno() < 0:
                        continue  # closed with its other end, which was ready at the same time
                    data = b""
                    with suppress(OSError):
                        data = source.recv(_BYTES)
                        pairs[source].sendall(data)
                    if not data:
                        for end in (source, pairs[source]):
                            with suppress(KeyError):
                                selector.unregister(end)
                            end.close()
            for end in pairs:
                end.close()


def make_refusal(state: str, message: str) -> bytes:
    """The answer with which PostgreSQL refuses a client; see "Message Formats" in its manual: ErrorResponse."""
    texts = ((b"S", "FATAL"), (b"V", "FATAL"), (b"C", state), (b"M", message))
    fields = b"".join(kind + text.encode() + b"\0" for kind, text in texts)
    return b"E" + struct.pack("!I", len(fields) + 5) + fields + b"\0"


@contextmanager
def relayed(url: str) -> Iterator[Relay]:
    """A relay in front of a database, which is away at first."""
    relay = Relay(url)
    try:
        yield relay
    finally:
        relay.take()


@contextmanager
def refusing(state: str, message: str, *, first: int = 1_000) -> Iterator[str]:
    """The URL of a server that refuses the first clients with an SQLSTATE and a message, before any query."""
    answer = make_refusal(state, message)
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with suppress(OSError):
            for _ in range(first):
                client, _ = listener.accept()
                with client:
                    client.recv(_BYTES)
                    client.sendall(answer)

    Thread(target=run, daemon=True).start()
    try:
        yield f"postgresql://assay:old@127.0.0.1:{listener.getsockname()[1]}/assay?sslmode=disable&gssencmode=disable"
    finally:
        listener.close()
