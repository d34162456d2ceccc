"""Writes the pages of a snapshot without their secrets, in a process of its own where the system has fork.

The scan goes on meanwhile. The process is forked before the scan starts a thread, and reads at most `_AHEAD` pages ahead: memory does not
grow with the cluster. Row 17: without this process a scan with a snapshot takes 1.6 times as long (goal 1.3).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeAlias

import orjson

from scanner.audit.items import decode_item, find_item_fault, may_have_long_numbers, split_items
from scanner.audit.secret_values import is_secret
from scanner.audit.simple_withholding import withhold_simply
from scanner.audit.withholding import withhold
from scanner.cluster.snapshots.archive import SnapshotWriter, partial_path
from scanner.errors import UsageError
from scanner.model.json import Json, as_object
from scanner.model.resource import Kind, Page, resource_of
from scanner.model.withheld import Place
from scanner.scan.documents import is_policy, names_policy_kind
from scanner.scan.workers.cores import FORKS
from scanner.scan.workers.process import delay_interrupts, serve_parent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_AHEAD: Final = 2
_UNREADABLE: Final = b"{}"
"""Stands for an item that cannot be decoded, and so not be redacted; in a replay it is a gap as well."""


class PageWriter(Protocol):
    """Writes a snapshot."""

    def add(self, name: str, content: bytes) -> None:
        """Add a member. Raises UsageError."""
        ...

    def add_page(self, name: str, page: Page, *, metadata_only: bool) -> None:
        """Add a member with a page, without its secrets. Raises UsageError."""
        ...

    def close(self) -> tuple[str, int]:
        """Complete the snapshot; return its SHA-256 in hex, and the number of places that are withheld. Raises UsageError."""
        ...

    def discard(self) -> None:
        """Remove what was written, unless the snapshot is complete."""
        ...


def open_page_writer(path: Path, tool_version: str) -> PageWriter:
    """Begin a snapshot. Raises UsageError for a path that exists or cannot be written."""
    return WriterProcess(path, tool_version) if FORKS else DirectWriter(SnapshotWriter(path, tool_version))


class DirectWriter:
    """Writes a snapshot in this process."""

    def __init__(self, writer: SnapshotWriter) -> None:
        """Write the pages into a snapshot that has begun."""
        self._writer = writer
        self._withheld = 0

    def add(self, name: str, content: bytes) -> None:
        """See PageWriter."""
        self._writer.add(name, content)

    def add_page(self, name: str, page: Page, *, metadata_only: bool) -> None:
        """See PageWriter."""
        data, withheld = redact_page(page, metadata_only=metadata_only)
        self._withheld += withheld
        self._writer.add(name, data)

    def close(self) -> tuple[str, int]:
        """See PageWriter."""
        return self._writer.close(), self._withheld

    def discard(self) -> None:
        """See PageWriter."""
        self._writer.discard()


_Answer: TypeAlias = "tuple[str, int] | str | None"
"""What the process answers: the result, why it failed, or None when the snapshot has begun."""


class WriterProcess:
    """Writes a snapshot in a process of its own, which answers when the snapshot has begun, and when it is complete or has failed."""

    def __init__(self, path: Path, tool_version: str) -> None:
        """Fork the process. Raises UsageError for a path that exists or cannot be written."""
        import multiprocessing

        context = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._connection, path, tool_version), daemon=True)
        with delay_interrupts(), theirs:
            self._process.start()
        self.process_id = self._process.pid or 0
        """The number of the process."""
        self._partial = partial_path(path, self.process_id)
        self._path = path
        self._receive()

    def add(self, name: str, content: bytes) -> None:
        """See PageWriter."""
        self._send((name, None, 0), content)

    def add_page(self, name: str, page: Page, *, metadata_only: bool) -> None:
        """See PageWriter."""
        self._send((name, page.kind, metadata_only), page.data)

    def close(self) -> tuple[str, int]:
        """See PageWriter."""
        self._send(None, b"")
        answer = self._receive()
        self._process.join()
        return answer or ("", 0)

    def discard(self) -> None:
        """See PageWriter."""
        self._connection.close()
        self._process.kill()
        self._process.join()
        self._partial.unlink(missing_ok=True)

    def _send(self, head: object, content: bytes) -> None:
        try:
            self._connection.send(head)
            self._connection.send_bytes(content)
        except OSError:
            self._receive()
            raise UsageError(self._explain_end()) from None

    def _receive(self) -> tuple[str, int] | None:
        try:
            answer: _Answer = self._connection.recv()
        except (EOFError, OSError):
            raise UsageError(self._explain_end()) from None
        if isinstance(answer, str):
            raise UsageError(answer)
        return answer

    def _explain_end(self) -> str:
        return f"--snapshot {self._path} cannot be written: the process that writes it ended"


def _serve(parent: Connection, other: Connection, path: Path, tool_version: str) -> NoReturn:
    """Write what the parent sends. `other` is the parent's end: a process that keeps it open cannot detect the end of the parent."""

    def write() -> None:
        try:
            writer = DirectWriter(SnapshotWriter(path, tool_version))
        except UsageError as error:
            parent.send(str(error))
            return
        parent.send(None)
        try:
            parent.send(_write(parent, writer))
        except UsageError as error:
            parent.send(str(error))
        finally:
            writer.discard()

    serve_parent(write, [other])


_Message: TypeAlias = "tuple[tuple[str, Kind | None, bool] | None, bytes]"


def _write(parent: Connection, writer: DirectWriter) -> tuple[str, int]:
    messages: Queue[_Message | None] = Queue(_AHEAD)
    Thread(target=_read, args=(parent, messages), daemon=True).start()
    while message := messages.get():
        head, content = message
        if head is None:
            return writer.close()
        name, kind, metadata_only = head
        if kind is None:
            writer.add(name, content)
        else:
            writer.add_page(name, Page(kind, 0, content), metadata_only=metadata_only)
    raise UsageError("the scan ended")


def _read(parent: Connection, messages: Queue[_Message | None]) -> None:
    """Read ahead until the last message, or until the parent ends."""
    with suppress(EOFError, OSError):
        head: tuple[str, Kind | None, bool] | None = ("", None, False)
        while head is not None:
            head = parent.recv()
            messages.put((head, parent.recv_bytes()))
        return
    messages.put(None)


def redact_page(page: Page, *, metadata_only: bool = False) -> tuple[bytes, int]:
    """A page as a snapshot has it, `{"items": […], "withheld": {…}}`, and the number of its withheld places.

    `withheld` has the places that are withheld of each item, by its index. An item that cannot be decoded is an empty object, and a page
    that cannot be decoded has no list of items.
    """
    try:
        texts = split_items(page)
    except ValueError:
        return b'{"items":0}', 0
    items: list[bytes] = []
    withheld: dict[str, list[Place]] = {}
    read_item = decode_item if may_have_long_numbers(page.data) else orjson.loads
    for index, text in enumerate(texts):
        item, places = _redact_item(page.kind, text, read_item, metadata_only=metadata_only)
        items.append(item)
        if places:
            withheld[str(index)] = places
    number = sum(map(len, withheld.values()))
    return b'{"withheld":%b,"items":[%b]}' % (orjson.dumps(withheld), b",".join(items)), number


def _redact_item(
    kind: Kind, text: memoryview, read_item: Callable[[memoryview], Json], *, metadata_only: bool
) -> tuple[bytes, list[Place]]:
    try:
        item = read_item(text)
    except ValueError:
        return _UNREADABLE, []
    if not isinstance(item, dict) or find_item_fault(kind, item, metadata_only=metadata_only):
        return _UNREADABLE, []
    typed = {"apiVersion": kind.api_version, "kind": kind.kind}
    is_shown = names_policy_kind(kind.kind) and is_policy({**item, **typed})
    resource = resource_of(kind, item)
    if not (is_shown or is_secret(resource)):
        simple = withhold_simply(item)
        if simple:
            return simple
        resource = resource_of(kind, as_object(read_item(text)))
    places = withhold(resource, is_policy=is_shown)
    return orjson.dumps(resource.body), list(places)
