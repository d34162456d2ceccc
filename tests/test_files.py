"""Files that a user names: regular ones of a limited size; all others are refused at once, in words."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.files import SECRET, read_file, read_text

MOST = 10


def pipe(path: Path) -> None:
    """Make a named pipe."""
    os.mkfifo(path)


def device(path: Path) -> None:
    """Make a link to a device that never ends."""
    path.symlink_to("/dev/zero")


def unix_socket(path: Path) -> None:
    """Make a socket."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def sparse(path: Path) -> None:
    """Make a file of a terabyte that takes no space."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (pipe, "it is a named pipe; name a regular file"),
        (device, "it is a device; name a regular file"),
        (Path.mkdir, "Is a directory"),
        (sparse, "it has more than 10 bytes"),
        (lambda path: path.write_bytes(b"a" * 11), "it has more than 10 bytes"),
        (unix_socket, "No such device or address"),
    ],
)
def test_what_is_no_small_regular_file_is_refused(tmp_path: Path, make: Callable[[Path], object], fault: str) -> None:
    """Without waiting, and without reading it."""
    place = tmp_path / "file"
    make(place)

    with pytest.raises(OSError, match=fault):
        read_file(place, MOST)


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    """The limit is part of what is allowed."""
    (tmp_path / "file").write_bytes(b"a" * MOST)
    assert b"a" * MOST == read_file(tmp_path / "file", MOST)


def test_a_file_whose_size_is_not_told_is_limited_too() -> None:
    """The kernel tells no size of its own files."""
    with pytest.raises(OSError, match="it has more than 10 bytes"):
        read_file(Path("/proc/self/status"), MOST)


def test_the_null_device_is_an_empty_file() -> None:
    """KUBECONFIG may name it."""
    assert read_text(Path(os.devnull), SECRET) == ""
