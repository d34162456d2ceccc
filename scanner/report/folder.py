"""A folder of pages that appears whole or not at all.

The pages are written beside their place and moved there in one step. What was there before is only replaced when it is
an earlier report, recognised by the marker file that lists what belongs to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from scanner.errors import UsageError

MARKER = ".assay-report"
_DESKTOP_LITTER = {".DS_Store", "Thumbs.db", "desktop.ini"}


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Give a new folder to write into; at the end it stands at `folder`, in place of an earlier report.

    Raises UsageError when `folder` holds anything that is not an earlier report, or cannot be written.
    """
    target = folder.expanduser().resolve()
    _reject_foreign(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
            fresh = Path(beside) / "new"
            fresh.mkdir()
            yield fresh
            _mark(fresh)
            _swap(fresh, target, Path(beside) / "old")
    except OSError as error:
        raise UsageError(
            f"Cannot write the report to {folder}: {error.strerror or error}. "
            "Name a folder, inside one that you may write, that holds nothing else or an earlier report."
        ) from error


def _reject_foreign(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError(f"Cannot write the report to {target}: it is a file. Name a folder.")
    present = {entry.name for entry in target.iterdir()} - _DESKTOP_LITTER
    if foreign := sorted(present - _belonging(target)):
        raise UsageError(
            f"Will not replace {target}: {foreign[0]} in it is not part of an Assay report. Name another folder."
        )


def _belonging(target: Path) -> set[str]:
    marker = target / MARKER
    return set(marker.read_text("utf-8").splitlines()) if marker.is_file() else set()


def _mark(fresh: Path) -> None:
    names = sorted({MARKER, *(entry.name for entry in fresh.iterdir())})
    (fresh / MARKER).write_text("\n".join(names) + "\n", "utf-8")


def _swap(fresh: Path, target: Path, old: Path) -> None:
    if target.exists():
        target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
