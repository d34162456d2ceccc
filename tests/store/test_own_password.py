"""A server of PostgreSQL, or a proxy before one, that repeats the password gets it into no message."""

from __future__ import annotations

import socket
import struct
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from scanner.errors import StoreError, UsageError
from scanner.store import open_store
from scanner.store.database.address import address_of
from tests.requirements import POSTGRES

PASSWORD = "hunter2-of/the@database"
_NO_ENCRYPTION = (80877103, 80877104)


def _packet(connection: socket.socket) -> bytes:
    length = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))[0]
    return connection.recv(length - 4, socket.MSG_WAITALL)


def _serve(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        while struct.unpack("!I", (start := _packet(connection))[:4])[0] in _NO_ENCRYPTION:
            connection.sendall(b"N")
        connection.sendall(b"R" + struct.pack("!II", 8, 3))
        connection.recv(1)
        password = _packet(connection).rstrip(b"\0")
        told = b"no pool for %b, %b, %b, %b" % (
            password,
            b64encode(b"me:" + password),
            quote(password).encode(),
            start[4:].replace(b"\0", b" "),
        )
        body = b"SFATAL\0C28P01\0M" + told + b"\0\0"
        connection.sendall(b"E" + struct.pack("!I", len(body) + 4) + body)


@contextmanager
def repeating() -> Iterator[int]:
    """A server that asks for the password in clear text, and repeats all that it gets in its error. Yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=_serve, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


@pytest.mark.parametrize("way", ["URL", "option", "variable", "file", "named file"])
def test_no_message_has_the_password_that_the_server_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Wherever the driver has it from; the reason stays."""
    POSTGRES.require()
    for name in ("PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".pgpass"
    user, query = "me", "sslmode=disable&connect_timeout=5"
    with repeating() as port:
        match way:
            case "URL":
                user = f"me:{quote(PASSWORD, safe='')}"
            case "option":
                query += f"&password={quote(PASSWORD, safe='')}"
            case "variable":
                monkeypatch.setenv("PGPASSWORD", PASSWORD)
            case _:
                path.write_text(f"# one line for each server\n127.0.0.1:{port}:*:me:{PASSWORD}\n")
                path.chmod(0o600)
                query += f"&passfile={path}" if way == "named file" else ""
                monkeypatch.setenv("PGPASSFILE", str(path))
        with pytest.raises(StoreError) as refused:
            open_store(f"postgresql://{user}@127.0.0.1:{port}/assay?{query}")
    message = str(refused.value)
    assert (
        "no pool for [redacted], [redacted], [redacted], user me database assay" in message,
        "hunter2" in message,
    ) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    "query",
    [
        "options=-c%20app.token%3Dhunter2",
        "sslpassword=hunter2",
        "PASSWORD=hunter2",
        "oauth_client_secret=hunter2",
        "x=hunter2",
    ],
)
def test_an_option_that_is_not_known_to_be_harmless_is_not_shown(query: str) -> None:
    """Neither in messages, nor if the server repeats it."""
    address = address_of(f"postgresql://me@host/x?{query}&sslmode=require")
    assert ("postgresql://me@host/x?sslmode=require", False) == (address.text, address.is_shown_whole)
    assert "hunter2" not in address.mask("invalid value: hunter2, -c app.token=hunter2")


@pytest.mark.parametrize("url", ["postgresql://me:hunter@2@host/x", "postgresql://me:hunter@2/host/x@y/z"])
def test_a_password_with_an_at_sign_is_refused_without_being_shown(url: str) -> None:
    """What follows the first @ would be taken for the host."""
    with pytest.raises(UsageError, match="write an @ of the password as %40") as refused:
        address_of(url)
    assert "hunter" not in str(refused.value)
