"""A folder of pages that is replaced in one step, and replaces nothing but an earlier report.

The pages are written to a folder beside the target, which is then renamed. A marker file lists every file of the report
with its digest, and the inode numbers of the folder and of itself. In a copied or cloned folder these numbers differ: only
unchanged files that Assay wrote into that very folder are removed.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, TextIO

import msgspec

from scanner.errors import UsageError

# A report file that is replaced in one step: a reader sees the earlier report or the whole new one.


@contextmanager
def binary_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file beside `path`; at the end it becomes `path`, and after an error it is removed.

    A pipe or a device is written directly. Raises UsageError when the file cannot be written, as on a full disk.
    """
    target = path.expanduser().resolve()
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as device:
                yield device
        else:
            with _open_beside(target) as fresh:
                yield fresh
    except OSError as error:
        raise UsageError(
            f"Cannot write the report to {path}: {error.strerror or error}. Name a file in a writable place with free space."
        ) from error


@contextmanager
def text_file(path: Path) -> Iterator[TextIO]:
    """Yield a new text file in UTF-8 that becomes `path`, as `binary_file` does. Lone surrogates are written as escapes."""
    with binary_file(path) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", errors="backslashreplace", newline="")
        try:
            yield text
            text.flush()
        finally:
            # The buffer may hold text that the full disk refused.
            with suppress(OSError):
                text.detach()


@contextmanager
def _open_beside(target: Path) -> Iterator[BinaryIO]:
    """Yield a hidden file in the folder of `target`, which takes its name at the end."""
    fresh = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}")
    # The mode is that of any new file: the umask decides who may read it.
    number = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with os.fdopen(number, "wb") as file:
            yield file
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


MARKER = ".assay-report"
_NAME_ANOTHER = "Name another folder, or empty this one yourself."


class _Marker(msgspec.Struct, frozen=True):
    """`files` are the paths in the folder, with `/` between their parts, and their SHA-256 in hexadecimal."""

    folder: int
    marker: int
    files: dict[str, str]


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder to write into; at the end it becomes `folder`, in place of an earlier report.

    Raises UsageError when `folder` holds files that are not of an earlier report, or cannot be written.
    """
    target = folder.expanduser().resolve()
    try:
        _reject_foreign(target, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
            fresh = Path(beside) / "new"
            fresh.mkdir()
            yield fresh
            _mark(fresh)
            _swap(fresh, target, Path(beside) / "old")
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"Cannot write the report to {folder}: {error.strerror or error}. "
        "Name a folder in a writable place that is empty, new or holds an earlier report."
    )


def reject_occupied(folder: Path) -> None:
    """Raise UsageError for a file, and for a folder with files that holds no report: the check that needs no file's content."""
    target = folder.expanduser().resolve()
    try:
        _reject_no_report(target, target)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _reject_no_report(folder: Path, target: Path) -> _Marker | None:
    """The marker of an earlier report; None for a folder that is new or empty. Raises UsageError for anything else."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise UsageError(f"Cannot write the report to {target}: it is a file. Name a folder.")
    marker = _marker_of(folder)
    if marker is None and (first := next(_paths(folder), "")):
        raise UsageError(f"Will not replace {target}: {first} in it is not part of an Assay report. {_NAME_ANOTHER}")
    return marker


def _reject_foreign(folder: Path, target: Path) -> None:
    """Raise UsageError for a folder with files that are not of an earlier report. `target` is the name for the message."""
    marker = _reject_no_report(folder, target)
    if marker is None:
        return
    present = {*_paths(folder)}
    if (marker.folder, marker.marker) != (_number(folder), _number(folder / MARKER)):
        raise UsageError(
            f"Will not replace {target}: the report in it is a copy that Assay did not write there. {_NAME_ANOTHER}"
        )
    for path in sorted(present - {MARKER}):
        if path not in marker.files:
            raise UsageError(f"Will not replace {target}: {path} in it is not part of the report. {_NAME_ANOTHER}")
        if not _is_unchanged(folder / path, marker.files[path]):
            raise UsageError(f"Will not replace {target}: {path} in it was changed. {_NAME_ANOTHER}")


def _is_unchanged(file: Path, digest: str) -> bool:
    return not file.is_symlink() and file.is_file() and _digest(file) == digest


def _paths(folder: Path) -> Iterator[str]:
    """The paths of all files and links in a folder, in order of their names in each folder. Links are not followed."""
    # Without `onerror`, os.walk leaves out folders that it cannot read: their files would look like none.
    for place, folders, files in os.walk(folder, onerror=_raise):
        folders.sort()
        here = Path(place)
        links = {name for name in folders if (here / name).is_symlink()}
        yield from ((here / name).relative_to(folder).as_posix() for name in sorted((*files, *links)))


def _raise(error: OSError) -> None:
    raise error


def _marker_of(folder: Path) -> _Marker | None:
    file = folder / MARKER
    if file.is_symlink() or not file.is_file():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Marker)
    except msgspec.DecodeError:
        return None


def _mark(fresh: Path) -> None:
    files = {path: _digest(fresh / path) for path in sorted(_paths(fresh))}
    with (fresh / MARKER).open("wb") as file:
        file.write(msgspec.json.encode(_Marker(_number(fresh), os.fstat(file.fileno()).st_ino, files)))


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def _number(path: Path) -> int:
    return path.stat(follow_symlinks=False).st_ino


def _swap(fresh: Path, target: Path, old: Path) -> None:
    """Move the new folder into its place. Raises UsageError if files were added to the old one meanwhile."""
    if target.exists():
        target.rename(old)
    try:
        _reject_foreign(old, target)
        fresh.rename(target)
    except (OSError, UsageError):
        if old.exists():
            old.rename(target)
        raise
