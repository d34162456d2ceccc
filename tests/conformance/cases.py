"""The recorded cases: their files, the parts in which they are compared, and the result of comparing a case."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

RECORDED = Path(__file__).parent / "recorded"
"""The verdicts that the repository holds."""
DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "conformance"
PARTS = 4
"""The number of parts of each file, so that workers of pytest-xdist share its cases evenly."""


def folder() -> Path:
    """Return the folder of further verdicts: ASSAY_CONFORMANCE, else `../shared/conformance` beside the checkout."""
    return Path(os.environ.get("ASSAY_CONFORMANCE", DEFAULT))


def absent(names: str, where: Path) -> str:
    """Return the reason why further verdicts are skipped."""
    return f"no further verdicts ({names}) in {where}; name their folder with ASSAY_CONFORMANCE"


def files(*names: str) -> list[Path]:
    """Return the files with these names: those of the repository, then those of the other folder that differ from them."""
    ours = [RECORDED / f"{name}.json.gz" for name in names]
    theirs = [folder() / path.name for path in ours]
    return [
        *(path for path in ours if path.exists()),
        *(path for path, own in zip(theirs, ours, strict=True) if path.exists() and not is_copy(path, own)),
    ]


def parameters(*names: str) -> list[Any]:
    """Return the parameters of a test of these files; files that the other folder lacks are a skipped parameter with its reason."""
    missing = [name for name in names if not (folder() / f"{name}.json.gz").exists()]
    skipped = [pytest.param(folder(), id="further", marks=pytest.mark.skip(absent(", ".join(missing), folder())))]
    return [*(pytest.param(path, id=label(path)) for path in files(*names)), *(skipped if missing else [])]


def is_copy(path: Path, own: Path) -> bool:
    """Return whether a file has the bytes of a file of the repository."""
    return own.exists() and path.read_bytes() == own.read_bytes()


def label(path: Path) -> str:
    """Return the name of a file, with `recorded/` before it when the repository holds it."""
    name = path.name.removesuffix(".json.gz")
    return f"recorded/{name}" if path.parent == RECORDED else name


def load(path: Path) -> Any:
    """Return the content of a gzipped JSON file."""
    with gzip.open(path) as stream:
        return json.load(stream)


def part_of(data: Any, number: int) -> Any:
    """Return the part of a file with this number, from 0: every fourth case, with the results that belong to it."""
    if isinstance(data, list):
        return data[number::PARTS]
    part = {**data, "cases": data["cases"][number::PARTS]}
    if "results" in data:
        names = {case["name"] for case in part["cases"]}
        part["results"] = [result for result in data["results"] if result["case"] in names]
    return part


@dataclass(frozen=True, slots=True)
class Result:
    """The comparison of a case: the right kind of outcome, the right words, too; `cost` is None where none is recorded."""

    right: bool
    same_text: bool
    expected: object
    actual: object
    subject: object
    cost: bool | None = None
    skipped: bool = False


Comparison = Callable[[Any], Iterator[Result]]
