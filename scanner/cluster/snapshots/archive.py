"""The file of a snapshot or a packet: a zip that ends with a trailer, by which each change of a byte is recognised.

`trailer.json` is the last member. Its ledger has, in their order, the name of every other member, the size of its content, and the SHA-256
of its bytes in the archive. The comment of the archive is `sha256:` with the digest of all bytes from the trailer to that comment. A file
without a trailer was cut off. Nothing is unpacked to a disk.

A packet has pages and documents of a snapshot, and parts for readers. Rules: `docs/evidence.md`, `docs/adr/0087-a-snapshot-replays.md`.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final, NoReturn

import orjson
from msgspec import Struct

from scanner.errors import UsageError
from scanner.model.json import Json, as_list, as_text, dig

FORMAT: Final = "format.json"
TRAILER: Final = "trailer.json"
VERSION: Final = 1
_MARK: Final = b"sha256:"
_COMMENT: Final = len(_MARK) + 64
_LARGEST: Final = 256 << 20
"""The most bytes of the content of a member."""
_MOST_MEMBERS: Final = 1_000_000
_BLOCK: Final = 1 << 20
_LEVEL: Final = 1
_STAMP: Final = (1980, 1, 1, 0, 0, 0)
_ENCRYPTED: Final = 1
_MAGIC: Final = b"PK\x03\x04"
_DAMAGED: Final = "take another copy of the file, or make a new snapshot"


class ArchiveForm(Struct, frozen=True):
    """A form of the file: its name in `format.json`, its word, the flag that names a new one, and the names of its members."""

    format: str
    word: str
    flag: str
    names: re.Pattern[str]


SNAPSHOT: Final = ArchiveForm("assay-snapshot", "snapshot", "--snapshot", re.compile(r"[a-z]+(?:/[0-9]{6,10})?\.json"))
PACKET: Final = ArchiveForm(
    "assay-packet", "packet", "--out", re.compile(r"[a-z]+(?:/[0-9]{6,10})?\.(?:json|csv|txt|html)")
)
_USES: Final = {
    SNAPSHOT.word: "repeat its scan with `assay scan --from FILE`",
    PACKET.word: "evaluate its items again with `assay reperform FILE`",
}
_FORMS: Final = {form.format: form for form in (SNAPSHOT, PACKET)}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A member in the ledger: `size` is that of its content, `sha256` covers its bytes in the archive."""

    name: str
    size: int
    sha256: str


def is_snapshot(path: Path) -> bool:
    """Return whether a path names a file that begins like a zip: manifests are texts."""
    with suppress(OSError), path.open("rb") as file:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.read(len(_MAGIC)) == _MAGIC
    return False


def partial_path(path: Path, process: int) -> Path:
    """The file of a snapshot that a process has not completed."""
    return path.with_name(f".{path.name}.{process}.partial")


class SnapshotWriter:
    """Writes a snapshot beside its path, and puts it there when it is complete. Only its owner may read it."""

    def __init__(self, path: Path, tool_version: str, version: int = VERSION, form: ArchiveForm = SNAPSHOT) -> None:
        """Begin a file in a version of the format. Raises UsageError for a path that exists or cannot be written."""
        self._path, self._flag = path, form.flag
        self._partial = partial_path(path, os.getpid())
        if path.exists():
            raise UsageError(f"{form.flag} {path} exists already: name a new file")
        try:
            descriptor = os.open(self._partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(f"{form.flag} {path} cannot be written: {error.strerror}") from error
        self._file: IO[bytes] = os.fdopen(descriptor, "w+b")
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self._starts: list[tuple[str, int, int]] = []
        self.add(FORMAT, orjson.dumps({"format": form.format, "version": version, "assay": tool_version}))

    def add(self, name: str, content: bytes) -> None:
        """Add a member. Raises UsageError for a content that is too large, and for a disk that is full."""
        if len(content) > _LARGEST:
            remedy = "scan with a smaller --chunk-size" if self._flag == SNAPSHOT.flag else "draw fewer items"
            raise UsageError(f"{self._flag}: {name} has more than {_LARGEST >> 20} MiB: {remedy}")
        self._starts.append((name, self._zip.start_dir, len(content)))
        info = zipfile.ZipInfo(name, _STAMP)
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
        try:
            self._zip.writestr(info, content, compresslevel=_LEVEL)
        except OSError as error:
            raise UsageError(f"{self._flag} {self._path} cannot be written: {error.strerror}") from error

    def close(self) -> str:
        """Add the trailer, put the file in its place, and return its SHA-256 in hex. Raises UsageError."""
        try:
            end = self._zip.start_dir
            entries = [asdict(entry) for entry in self._digest_members(end)]
            self.add(TRAILER, orjson.dumps({"members": entries}))
            self._zip.comment = _MARK + b"0" * 64
            self._zip.close()
            digest = _digest(self._file, end, -_COMMENT)
            self._file.seek(-64, os.SEEK_END)
            self._file.write(digest.encode())
            self._file.flush()
            os.fsync(self._file.fileno())
            whole = _digest(self._file, 0, 0)
            self._file.close()
            self._partial.replace(self._path)
        except OSError as error:
            raise UsageError(f"{self._flag} {self._path} cannot be written: {error.strerror}") from error
        return whole

    def discard(self) -> None:
        """Remove what was written, unless the snapshot is complete."""
        with suppress(OSError, ValueError):
            self._zip.close()
        with suppress(OSError, ValueError):
            self._file.close()
        self._partial.unlink(missing_ok=True)

    def _digest_members(self, end: int) -> Iterator[_Entry]:
        self._file.flush()
        starts = [start for _, start, _ in self._starts]
        for (name, start, size), stop in zip(self._starts, [*starts[1:], end], strict=True):
            yield _Entry(name, size, _digest(self._file, start, stop))
        self._file.seek(end)


def _digest(file: IO[bytes], start: int, stop: int) -> str:
    """The SHA-256 in hex of the bytes of a file from a place to another one; `stop` counts from the end if it is not positive."""
    if stop <= 0:
        stop += file.seek(0, os.SEEK_END)
    file.seek(start)
    digest, left = hashlib.sha256(), stop - start
    while left > 0 and (block := file.read(min(_BLOCK, left))):
        digest.update(block)
        left -= len(block)
    return digest.hexdigest()


class SnapshotArchive:
    """A snapshot or a packet, opened after every byte of it was compared with its trailer."""

    def __init__(self, path: Path, form: ArchiveForm = SNAPSHOT) -> None:
        """Open and verify. Raises UsageError that names the member which is damaged, missing, added or renamed."""
        self._path, self._form = path, form
        self._opened = ExitStack()
        with ExitStack() as stack:
            self._open(stack)
            self._opened = stack.pop_all()

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def _open(self, stack: ExitStack) -> None:
        try:
            self._file = stack.enter_context(self._path.open("rb"))
            if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                self._fail("it is no regular file")
            self._zip = stack.enter_context(zipfile.ZipFile(self._file))
        except OSError as error:
            self._fail(f"it cannot be read: {error.strerror}")
        except (zipfile.BadZipFile, NotImplementedError, ValueError, UnicodeError):
            self._fail(f"it has no end, so it was cut off or is no {self._form.word}; {_DAMAGED}")
        self._members = {info.filename: info for info in self._zip.infolist()}
        self._verify()
        self.sha256 = _digest(self._file, 0, 0)

    def read(self, name: str) -> bytes:
        """The content of a member. Raises UsageError for a member that is missing or damaged."""
        info = self._members.get(name)
        if info is None:
            self._fail(f"{name} is missing; {_DAMAGED}")
        try:
            return self._zip.read(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError):
            self._fail(f"{name} is damaged; {_DAMAGED}")

    def read_json(self, name: str) -> Json:
        """The document of a member. Raises UsageError for a member that is missing, damaged or no JSON."""
        try:
            document: Json = orjson.loads(self.read(name))
        except orjson.JSONDecodeError:
            self._fail(f"{name} is no JSON document; {_DAMAGED}")
        return document

    def __contains__(self, name: str) -> bool:
        """Return whether the snapshot has a member."""
        return name in self._members

    def fail(self, why: str) -> NoReturn:
        """Raise UsageError for a snapshot whose content is wrong."""
        self._fail(why)

    def _fail(self, why: str) -> NoReturn:
        raise UsageError(f"the {self._form.word} {self._path} cannot be used: {why}")

    def _verify(self) -> None:
        infos = sorted(self._zip.infolist(), key=lambda info: info.header_offset)
        self._reject_unusual(infos)
        if not infos or infos[-1].filename != TRAILER:
            self._fail(f"it has no {TRAILER} at its end, so it was cut off or changed; {_DAMAGED}")
        ledger = self._read_ledger(infos[-1])
        self._compare_names([info.filename for info in infos[:-1]], [entry.name for entry in ledger])
        starts = [info.header_offset for info in infos]
        if starts[0] != 0:
            self._fail(f"{infos[0].filename} does not begin at the beginning of the file; {_DAMAGED}")
        for info, entry, start, stop in zip(infos, ledger, starts, starts[1:], strict=False):
            if info.file_size != entry.size or _digest(self._file, start, stop) != entry.sha256:
                self._fail(f"{entry.name} is damaged: it is not what {TRAILER} has in its ledger; {_DAMAGED}")
        expected = self._zip.comment.removeprefix(_MARK).decode("ascii", "replace")
        if len(self._zip.comment) != _COMMENT:
            self._fail(f"it has no digest after {TRAILER}, so it was cut off, or another program wrote it; {_DAMAGED}")
        if _digest(self._file, starts[-1], -_COMMENT) != expected:
            self._fail(f"{TRAILER} or the directory after it is damaged; {_DAMAGED}")
        self._reject_other_versions()

    def _reject_unusual(self, infos: Sequence[zipfile.ZipInfo]) -> None:
        """Fail for members that no such file has: several of a name, other names, links, encrypted or large ones."""
        names: set[str] = set()
        if len(infos) > _MOST_MEMBERS:
            self._fail(f"it has more than {_MOST_MEMBERS:,} members")
        for info in infos:
            name = ascii(info.filename)[1:-1][:100]
            # Of a file in the other form, the error names the form.
            if not PACKET.names.fullmatch(info.filename):
                self._fail(f"{name} is no name of a member of a {self._form.word}; {_DAMAGED}")
            if info.filename in names:
                self._fail(f"{name} is in it twice; {_DAMAGED}")
            names.add(info.filename)
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                self._fail(f"{name} is a link or no file; {_DAMAGED}")
            if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
                self._fail(f"{name} is encrypted or compressed in another way; {_DAMAGED}")
            if info.file_size > _LARGEST:
                self._fail(f"{name} has more than {_LARGEST >> 20} MiB; {_DAMAGED}")

    def _read_ledger(self, trailer: zipfile.ZipInfo) -> list[_Entry]:
        entries = as_list(dig(self.read_json(trailer.filename), "members"))
        ledger: list[_Entry] = []
        for entry in entries:
            size = dig(entry, "size")
            if not isinstance(size, int):
                self._fail(f"{TRAILER} is damaged; {_DAMAGED}")
            ledger.append(_Entry(as_text(dig(entry, "name")), size, as_text(dig(entry, "sha256"))))
        return ledger

    def _compare_names(self, present: list[str], recorded: list[str]) -> None:
        missing = [name for name in recorded if name not in self._members]
        known = frozenset(recorded)
        added = [name for name in present if name not in known]
        if missing and added:
            self._fail(f"{_name(added)} stands where {TRAILER} has {_name(missing)}; {_DAMAGED}")
        if missing or added:
            what = f"{_name(missing)} is missing" if missing else f"{_name(added)} is in no ledger"
            self._fail(f"{what}: {TRAILER} belongs to another file, or the file was changed; {_DAMAGED}")
        moved = next((name for name, other in zip(present, recorded, strict=True) if name != other), "")
        if moved:
            self._fail(f"{moved} is not in its place; {_DAMAGED}")

    def _reject_other_versions(self) -> None:
        document = self.read_json(FORMAT)
        version, other = dig(document, "version"), _FORMS.get(as_text(dig(document, "format")))
        if other and other is not self._form:
            self._fail(f"it is a {other.word}: {_USES[other.word]}")
        if other is None or version != VERSION:
            self._fail(
                f"{FORMAT} has version {version}, and this version of Assay reads version {VERSION}. Use the version that made it"
            )
        for name in self._members:
            if not self._form.names.fullmatch(name):
                self._fail(f"{name} is no name of a member of a {self._form.word}; {_DAMAGED}")


def _name(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004
