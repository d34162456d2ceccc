"""Snapshots that a process of its own writes: the same file as without it, and a clear error when the process cannot go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from scanner.cluster.snapshots.archive import SnapshotArchive, SnapshotWriter
from scanner.cluster.snapshots.page_writer import DirectWriter, PageWriter, WriterProcess
from scanner.errors import UsageError
from scanner.model.resource import Kind, Page

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
POD = b'{"metadata":{"name":"web"},"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"abcdefgh"}]}]}}'
PAGE = Page(PODS, 1, b'{"items":[%b,%b]}' % (POD, POD))


def directly(path: Path) -> PageWriter:
    """Write in this process."""
    return DirectWriter(SnapshotWriter(path, "1.0"))


def in_a_process(path: Path) -> PageWriter:
    """Write in another process."""
    return WriterProcess(path, "1.0")


def write_pages(writer: PageWriter, number: int) -> None:
    """Write the page so often."""
    for index in range(number):
        writer.add_page(f"pages/{index:06}.json", PAGE, metadata_only=False)


@pytest.mark.parametrize("begin", [directly, in_a_process])
def test_a_page_is_written_without_its_secrets(tmp_path: Path, begin: Callable[[Path], PageWriter]) -> None:
    """The digest is that of the file, and the places are counted."""
    path = tmp_path / "one.snapshot"
    writer = begin(path)
    writer.add_page("pages/000001.json", PAGE, metadata_only=False)
    writer.add("scan.json", b"{}")

    digest, withheld = writer.close()
    writer.discard()

    with closing(SnapshotArchive(path)) as archive:
        assert (archive.sha256, 2) == (digest, withheld)
        assert b"abcdefgh" not in archive.read("pages/000001.json")
        assert b"{}" == archive.read("scan.json")


@pytest.mark.parametrize("begin", [directly, in_a_process])
def test_a_file_is_not_written_over(tmp_path: Path, begin: Callable[[Path], PageWriter]) -> None:
    """A snapshot is evidence: the error says to name another file."""
    path = tmp_path / "one.snapshot"
    path.write_text("older")

    with pytest.raises(UsageError, match="exists already"):
        begin(path)
    assert "older" == path.read_text()


def test_a_snapshot_that_is_not_complete_is_removed(tmp_path: Path) -> None:
    """The scan was interrupted."""
    writer = in_a_process(tmp_path / "one.snapshot")
    writer.add_page("pages/000001.json", PAGE, metadata_only=False)

    writer.discard()

    assert [] == [*tmp_path.iterdir()]


def test_a_process_that_ends_is_a_clear_error(tmp_path: Path) -> None:
    """The system may end it for want of memory."""
    writer = WriterProcess(tmp_path / "one.snapshot", "1.0")
    os.kill(writer.process_id, signal.SIGKILL)

    with pytest.raises(UsageError, match="the process that writes it ended"):
        write_pages(writer, 1000)
    writer.discard()
    assert [] == [*tmp_path.iterdir()]


def test_an_error_of_the_process_is_that_of_the_scan(tmp_path: Path) -> None:
    """It is reported with the next page, or when the snapshot is completed."""
    writer = in_a_process(tmp_path / "one.snapshot")
    writer.add("large.json", bytes((256 << 20) + 1))

    with pytest.raises(UsageError, match="more than 256 MiB"):
        writer.close()
    writer.discard()
    assert [] == [*tmp_path.iterdir()]
