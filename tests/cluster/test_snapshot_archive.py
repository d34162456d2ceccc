"""A snapshot that is damaged, cut off or made by hand ends with an error that names the member."""

from __future__ import annotations

import hashlib
import random
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from scanner.cluster.snapshots.archive import FORMAT, TRAILER, VERSION, SnapshotArchive, SnapshotWriter, is_snapshot
from scanner.errors import UsageError

FLIPS = 200


def write(path: Path, seed: int = 1, version: int = VERSION) -> Path:
    """A snapshot with some pages of random content."""
    source = random.Random(seed)
    writer = SnapshotWriter(path, "1.0", version)
    for number in range(1, 6):
        items = [{"metadata": {"name": f"{source.random()}"}} for _ in range(20)]
        writer.add(f"pages/{number:06}.json", orjson.dumps({"items": items}))
    writer.add("cluster.json", b"{}")
    writer.close()
    return path


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A snapshot."""
    return write(tmp_path / "a.snapshot")


def find_error(path: Path) -> str:
    """The error with which a snapshot ends when it is opened; empty if it is used."""
    try:
        SnapshotArchive(path).close()
    except UsageError as error:
        return str(error)
    return ""


def list_extents(path: Path) -> Iterator[tuple[int, str]]:
    """The start and the name of every member, in order."""
    with zipfile.ZipFile(path) as archive:
        yield from sorted((info.header_offset, info.filename) for info in archive.infolist())


def test_a_whole_snapshot_is_read(snapshot: Path) -> None:
    """Every member has the content that was written, and the digest is that of the file."""
    with closing(SnapshotArchive(snapshot)) as archive:
        content = orjson.loads(archive.read("pages/000003.json"))

    assert is_snapshot(snapshot)
    assert 20 == len(content["items"])
    assert hashlib.sha256(snapshot.read_bytes()).hexdigest() == archive.sha256


def test_the_file_is_of_its_owner_alone(snapshot: Path) -> None:
    """No other user may read it, and no other file is left beside it."""
    assert 0o600 == stat.S_IMODE(snapshot.stat().st_mode)
    assert [snapshot] == list(snapshot.parent.iterdir())


def test_each_flipped_bit_is_named(snapshot: Path) -> None:
    """The error has the name of the member in which the bit was flipped."""
    data, extents = snapshot.read_bytes(), list(list_extents(snapshot))
    source = random.Random(47)
    wrong: list[tuple[int, str, str]] = []
    for _ in range(FLIPS):
        place = source.randrange(len(data))
        flipped = bytearray(data)
        flipped[place] ^= 1 << source.randrange(8)
        snapshot.write_bytes(flipped)
        error = find_error(snapshot)
        member = [name for start, name in extents if start <= place][-1]
        # After the members stands the directory, which has the name of each of them.
        if not error or (member != TRAILER and member not in error):
            wrong.append((place, member, error))

    assert [] == wrong


def test_each_shortened_file_is_cut_off(snapshot: Path) -> None:
    """Wherever it ends, the error tells that it was cut off, or names what is damaged."""
    data = snapshot.read_bytes()
    errors: set[str] = set()
    for length in range(0, len(data), 97):
        snapshot.write_bytes(data[:length])
        errors.add(find_error(snapshot))

    assert [] == [error for error in errors if "cut off" not in error]


def rebuild(
    path: Path, change: Callable[[list[tuple[zipfile.ZipInfo, bytes]]], Sequence[tuple[zipfile.ZipInfo, bytes]]]
) -> str:
    """Write the members again, changed, with the comment of the archive, and return the error."""
    with zipfile.ZipFile(path) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
        comment = archive.comment
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in change(members):
            archive.writestr(info, content, compresslevel=1)
        archive.comment = comment
    return find_error(path)


def rename(info: zipfile.ZipInfo, name: str) -> zipfile.ZipInfo:
    """A member of another name."""
    renamed = zipfile.ZipInfo(name, info.date_time)
    renamed.compress_type = zipfile.ZIP_DEFLATED
    return renamed


def test_a_removed_member_is_named(snapshot: Path) -> None:
    """The ledger still has it."""
    error = rebuild(snapshot, lambda members: [each for each in members if each[0].filename != "pages/000002.json"])

    assert "pages/000002.json is missing" in error


def test_an_added_member_is_named(snapshot: Path) -> None:
    """No ledger has it."""
    added = (zipfile.ZipInfo("pages/000009.json"), b"{}")
    error = rebuild(snapshot, lambda members: [members[0], added, *members[1:]])

    assert "pages/000009.json is in no ledger" in error


def test_a_renamed_member_is_named(snapshot: Path) -> None:
    """Both names are in the error."""
    error = rebuild(
        snapshot,
        lambda members: [
            (rename(info, "pages/000009.json") if info.filename == "pages/000002.json" else info, content)
            for info, content in members
        ],
    )

    assert "pages/000009.json stands where trailer.json has pages/000002.json" in error


def test_two_members_that_change_places_are_named(snapshot: Path) -> None:
    """The order of the members is a part of the ledger."""
    error = rebuild(snapshot, lambda members: [members[0], members[2], members[1], *members[3:]])

    assert "pages/000002.json is not in its place" in error


def test_the_trailer_of_another_file_is_recognised(snapshot: Path, tmp_path: Path) -> None:
    """Its ledger has other digests."""
    with zipfile.ZipFile(write(tmp_path / "b.snapshot", seed=2)) as other:
        trailer = other.read(TRAILER)
    error = rebuild(
        snapshot,
        lambda members: [(info, trailer if info.filename == TRAILER else content) for info, content in members],
    )

    assert "pages/000001.json is damaged" in error


def test_a_file_without_its_trailer_was_cut_off(snapshot: Path) -> None:
    """The error tells so."""
    error = rebuild(snapshot, lambda members: members[:-1])

    assert "it has no trailer.json at its end, so it was cut off or changed" in error


@pytest.mark.parametrize(
    "name", ["../escape.json", "/etc/passwd", "pages\\x.json", "PAGES/000001.json", "pages/0\u202e1.json"]
)
def test_a_member_with_another_name_is_refused(snapshot: Path, name: str) -> None:
    """Nothing is unpacked, and no such name is read."""
    error = rebuild(snapshot, lambda members: [members[0], (rename(members[1][0], name), b"{}"), *members[2:]])

    assert "is no name of a member of a snapshot" in error
    assert error.isascii()


def test_a_member_that_is_there_twice_is_named(snapshot: Path) -> None:
    """Programs differ in which of both they read."""
    with pytest.warns(UserWarning, match="Duplicate name"):
        error = rebuild(snapshot, lambda members: [members[0], members[1], members[1], *members[2:]])

    assert "pages/000001.json is in it twice" in error


def test_a_link_is_refused(snapshot: Path) -> None:
    """A member is a file."""

    def link(members: list[tuple[zipfile.ZipInfo, bytes]]) -> list[tuple[zipfile.ZipInfo, bytes]]:
        members[1][0].external_attr = (stat.S_IFLNK | 0o777) << 16
        return members

    assert "pages/000001.json is a link or no file" in rebuild(snapshot, link)


def test_a_bomb_is_refused_before_it_is_unpacked(snapshot: Path) -> None:
    """The size in the directory of the archive is enough."""
    bomb = bytes(257 << 20)
    error = rebuild(snapshot, lambda members: [members[0], (members[1][0], bomb), *members[2:]])

    assert "pages/000001.json has more than 256 MiB" in error


def test_another_version_is_named(tmp_path: Path) -> None:
    """The error tells which version of Assay to use."""
    newer = write(tmp_path / "newer.snapshot", version=VERSION + 1)

    assert f"{FORMAT} has version 2, and this version of Assay reads version 1" in find_error(newer)


@pytest.mark.parametrize("content", [b"", b"kind: List", b"PK\x03\x04", bytes(1000)])
def test_another_file_is_no_snapshot(tmp_path: Path, content: bytes) -> None:
    """It is refused without a traceback."""
    (tmp_path / "x").write_bytes(content)

    assert "was cut off or is no snapshot" in find_error(tmp_path / "x")


def test_a_folder_is_no_snapshot(tmp_path: Path) -> None:
    """It is neither recognised as one nor read."""
    assert not is_snapshot(tmp_path)
    assert "cannot be read" in find_error(tmp_path)


def test_a_path_that_exists_is_not_replaced(snapshot: Path) -> None:
    """Evidence is not overwritten."""
    with pytest.raises(UsageError, match="exists already: name a new file"):
        SnapshotWriter(snapshot, "1.0")


def test_a_snapshot_that_is_not_completed_is_removed(tmp_path: Path) -> None:
    """Nothing stays behind."""
    writer = SnapshotWriter(tmp_path / "a.snapshot", "1.0")
    writer.add("pages/000001.json", b"{}")
    writer.discard()

    assert [] == list(tmp_path.iterdir())


def test_two_snapshots_of_the_same_content_are_equal(snapshot: Path, tmp_path: Path) -> None:
    """Neither the time nor the name of the file is a part of it."""
    assert snapshot.read_bytes() == write(tmp_path / "b.snapshot").read_bytes()
