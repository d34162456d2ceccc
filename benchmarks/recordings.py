"""The recorded files from which benchmarks take expressions and objects: of another folder where there is one, else the repository's."""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.measured import say

_ROOT = Path(__file__).resolve().parents[1]
_OWN = _ROOT / "tests" / "conformance" / "recorded"
_OTHER = _ROOT.parent / "shared" / "conformance"


@cache
def load(name: str) -> Any:
    """Return the content of a recorded file, and print its path; ASSAY_CONFORMANCE names another folder."""
    path = path_of(f"{name}.json.gz")
    say(f"recorded file: {path}")
    with gzip.open(path) as file:
        return json.load(file)


def path_of(name: str) -> Path:
    """Return the path of a file: in the named folder, else beside the checkout, else in the repository."""
    folder = Path(os.environ.get("ASSAY_CONFORMANCE", _OTHER))
    return folder / name if (folder / name).is_file() else _OWN / name
