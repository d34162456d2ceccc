"""Network file systems, on which SQLite databases are damaged.

Upstream: sqlite.org, "Write-Ahead Logging" (all processes must be on the same host, because they share memory) and "How To
Corrupt An SQLite Database File" (locks that network file systems do not keep).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from scanner.errors import StoreError

MOUNTS: Final = Path("/proc/self/mountinfo")
"""The mounts of this process on Linux, one a line (proc_pid_mountinfo(5))."""
_NETWORK: Final = frozenset(
    {
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.ceph",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.sshfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
    }
)
"""The types of file systems that several hosts can mount, and that do not share memory between them."""
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


def reject_network(path: Path, mounts: Path = MOUNTS) -> None:
    """Raise StoreError if a SQLite file would lie on a network file system. Without the list of mounts, do nothing."""
    kind = _type_of(path, mounts)
    if kind in _NETWORK:
        raise StoreError(
            f"The database {path} is on a network file system ({kind}), where SQLite files are damaged. "
            "Name a file on a local disk or a block device with --db, or a PostgreSQL database."
        )


def _type_of(path: Path, mounts: Path) -> str:
    """The type of the file system of a path that need not exist; empty if it is not known."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    place, deepest, kind = Path(os.path.realpath(path)), -1, ""
    for line in lines:
        fields, _, source = line.partition(" - ")
        point = Path(_ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields.split()[4]))
        # Of two mounts at one place, the later one is on top.
        if place.is_relative_to(point) and len(point.parts) >= deepest:
            deepest, kind = len(point.parts), source.split()[0]
    return kind
