"""The programs that are linked with Kyverno: requests in, replies out, in the same order."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Self

from tests.oracle.client import Oracle
from tests.requirements import KYVERNO

_ROOT = Path(__file__).resolve().parents[3]


def built(release: str) -> Path:
    """Return the path of a release's program, which is built if it is missing."""
    if place := KYVERNO[release].place():
        return Path(place)
    completed = subprocess.run(
        [_ROOT / ".ci" / "kyverno-oracle", release], stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(completed.stdout.strip())


class Program(Oracle):
    """A running program; a context manager."""

    @classmethod
    def of(cls, release: str, command: str) -> Self:
        """Start the program of a release, built if it is missing."""
        return cls(built(release), command)
