"""A report file that is replaced in one step: a reader sees the earlier report or the whole new one."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from scanner.errors import UsageError


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
            with _beside(target) as fresh:
                yield fresh
    except OSError as error:
        raise UsageError(
            f"Cannot write the report to {path}: {error.strerror or error}. Name a file in a writable place with free space."
        ) from error


@contextmanager
def text_file(path: Path) -> Iterator[TextIO]:
    """The same for text in UTF-8. Lone surrogates are written as escapes."""
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
def _beside(target: Path) -> Iterator[BinaryIO]:
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
