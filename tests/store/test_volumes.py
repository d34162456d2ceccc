"""SQLite is refused on file systems of the network."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.errors import StoreError
from scanner.store import open_store
from scanner.store.database import engine
from scanner.store.database.sqlite_file import find_network_file_system
from tests.store.made import clock

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:40 / /data rw,relatime shared:2 - nfs4 server:/export rw,vers=4.2
41 40 0:41 / /data/local rw - xfs /dev/vdb rw
42 22 0:42 / /with\\040space rw master:3 - cifs //server/share rw
43 22 0:43 / /covered rw - nfs server:/old rw
44 22 0:44 / /covered rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/assay.db", ""),
        ("/data/assay.db", "nfs4"),
        ("/data/deep/er/assay.db", "nfs4"),
        ("/data/local/assay.db", ""),
        ("/database/assay.db", ""),
        ("/with space/assay.db", "cifs"),
        ("/covered/assay.db", ""),
    ],
)
def test_the_innermost_and_last_mount_decides(tmp_path: Path, path: str, kind: str) -> None:
    """As the system itself resolves the path."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)

    assert kind == find_network_file_system(Path(path), mounts)


def test_nothing_is_known_without_the_table_of_mounts(tmp_path: Path) -> None:
    """As on macOS: the file is used."""
    assert "" == find_network_file_system(tmp_path, tmp_path / "missing")


def test_a_database_on_such_a_volume_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the file system and both remedies, and no file is made."""
    monkeypatch.setattr(engine, "find_network_file_system", lambda _: "nfs4")
    path = tmp_path / "assay.db"

    with pytest.raises(StoreError, match=r"network file system \(nfs4\).*local volume.*PostgreSQL"):
        open_store(f"sqlite:///{path}", clock)
    assert not path.exists()
