"""Where the recorded cases are, and what comparing one of them yields."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "conformance"


def folder() -> Path:
    """The folder of recorded verdicts: ASSAY_CONFORMANCE, else `../shared/conformance` beside the checkout."""
    return Path(os.environ.get("ASSAY_CONFORMANCE", DEFAULT))


def load(path: Path) -> Any:
    """A gzipped JSON file."""
    with gzip.open(path) as stream:
        return json.load(stream)


@dataclass(frozen=True, slots=True)
class Result:
    """How one case compares: the right kind of outcome, the right words too; `cost` is None where none is recorded."""

    right: bool
    same_text: bool
    expected: object
    actual: object
    subject: object
    cost: bool | None = None
    skipped: bool = False


Comparison = Callable[[Any], Iterator[Result]]
