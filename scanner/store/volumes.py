"""The file system under a path, as far as SQLite is concerned: its write-ahead log needs memory that processes share.

Upstream: sqlite.org, "Write-Ahead Logging", 1: "WAL does not work over a network filesystem"; proc_pid_mountinfo(5).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

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
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    }
)
_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPES: Final = {r"\040": " ", r"\011": "\t", r"\012": "\n", r"\134": "\\"}


def network_file_system(path: Path, mounts: Path = _MOUNTS) -> str:
    """The type of the network file system on which a path is; empty for a local one, and where `mounts` cannot be read."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    place = path.absolute().resolve()
    kind, depth = "", -1
    for line in lines:
        mounted, _, source = line.partition(" - ")
        point = Path(_unescaped(mounted.split(" ")[4]))
        if place.is_relative_to(point) and len(point.parts) >= depth:
            kind, depth = source.split(" ")[0], len(point.parts)
    return kind if kind in _NETWORK else ""


def _unescaped(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text
