"""Reads the files that a user names: regular files of a limited size, or standard input.

A named pipe or a device would make a command wait, or read without an end. The null device is an empty file, as `KUBECONFIG` may
name it. All faults are an OSError, whose `strerror` continues a sentence: "notes.yaml cannot be read: it is a named pipe".
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import Final

SECRET: Final = 64_000
"""The most bytes of a file with a token or a key."""
SETTINGS: Final = 8 * 1024 * 1024
"""The most bytes of a file that people write."""
OBJECTS: Final = 1024 * 1024 * 1024
"""The most bytes of a file with the objects of a cluster, or with a report about them."""

OR_STDIN: Final = "name a regular file, or give - to read standard input"
_REGULAR: Final = "name a regular file"
_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_file(path: Path, most: int, *, instead: str = _REGULAR) -> bytes:
    """The content of a regular file of at most so many bytes. Raises OSError, which says what to name `instead` of another file."""
    # Without waiting for the other end of a named pipe.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            if stat.S_ISCHR(status.st_mode) and status.st_rdev == Path(os.devnull).stat().st_rdev:
                return b""
            kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "no file")
            raise OSError(errno.EINVAL, f"it is {kind}; {instead}", str(path))
        data = file.read(most + 1) if status.st_size <= most else b""
        if status.st_size > most or len(data) > most:
            raise OSError(errno.EFBIG, f"it has more than {_write_size(most)}", str(path))
        return data


def read_text(path: Path, most: int) -> str:
    """The text of such a file, in UTF-8. Raises OSError, and UnicodeDecodeError."""
    return read_file(path, most).decode("utf-8")


def read_standard_input(most: int) -> bytes:
    """Everything on standard input, at most so many bytes. Raises OSError."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed")
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {_write_size(most)}")
    return data


def _write_size(most: int) -> str:
    return f"{most >> 20} MiB" if most >> 20 else f"{most:,} bytes"
