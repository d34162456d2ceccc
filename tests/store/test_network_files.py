"""A SQLite database is not made on a network file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.errors import StoreError
from scanner.store import network_files, open_store, upgrade
from scanner.store.network_files import reject_network

MOUNTS = """\
22 1 0:1 / / rw,relatime - overlay overlay rw
30 22 0:5 / /proc rw,nosuid - proc proc rw
31 22 0:6 / /data rw,relatime shared:1 - ext4 /dev/sdb rw
32 31 0:7 / /data/shared rw,relatime shared:2 master:3 - nfs4 10.0.0.1:/export rw
33 22 0:8 / /with\\040blank rw - cifs //server/share rw
34 22 0:9 / /over rw - nfs server:/a rw
35 34 0:10 / /over rw - tmpfs tmpfs rw
36 22 0:11 / /bucket rw - fuse.s3fs s3fs rw
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    """The mounts of a container with local and remote volumes."""
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/shared/assay.db", "nfs4"),
        ("/data/shared/deep/er/assay.db", "nfs4"),
        ("/data/local/../shared/assay.db", "nfs4"),
        ("/with blank/assay.db", "cifs"),
        ("/bucket/assay.db", "fuse.s3fs"),
    ],
)
def test_a_network_file_system_is_refused(mounts: Path, path: str, kind: str) -> None:
    """The message has the type of the file system and the remedy."""
    with pytest.raises(StoreError, match=rf"on a network file system \({kind}\).*--db, or a PostgreSQL database"):
        reject_network(Path(path), mounts)


@pytest.mark.parametrize(
    "path", ["/data/assay.db", "/data/sharedfolder/assay.db", "/over/assay.db", "/home/me/assay.db"]
)
def test_a_local_file_system_is_accepted(mounts: Path, path: str) -> None:
    """The deepest mount decides, and of two mounts at one place the later one."""
    reject_network(Path(path), mounts)


def test_unknown_mounts_are_accepted(tmp_path: Path) -> None:
    """Other systems than Linux have no list of mounts."""
    reject_network(Path("/data/shared/assay.db"), tmp_path / "none")


def test_this_machine_is_accepted(tmp_path: Path) -> None:
    """The list of mounts of the kernel can be read."""
    reject_network(tmp_path / "assay.db")


def test_no_file_is_created_on_a_network_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan and an upgrade end before they create the file. No network file system can be mounted here, so every type counts as one."""
    monkeypatch.setattr(network_files, "_NETWORK", EveryType())
    for begin in (open_store, upgrade):
        with pytest.raises(StoreError, match="on a network file system"):
            begin(str(tmp_path / "folder" / "assay.db"))
    assert [] == list(tmp_path.iterdir())


class EveryType:
    """The types of network file systems, if all types are."""

    def __contains__(self, _kind: object) -> bool:
        """Whether it is one: always."""
        return True
