"""The installed command, run as people run it: in a process of its own, with nothing of this machine's environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from scanner.model.json import JsonObject, as_object

ASSAY = Path(sys.executable).with_name("assay")
SECONDS = 120


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a command. `stdout` is kept as bytes: it must have nothing but the requested output."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def report(self) -> JsonObject:
        """Standard output as the JSON report that it must be."""
        assert self.stdout, f"exit code {self.code} and no report; on stderr: {self.stderr}"
        return as_object(orjson.loads(self.stdout))


def environment(home: Path, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a user without any configuration, whose home is `home`."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **(variables or {})}


def assay(*arguments: str | Path, home: Path, variables: Mapping[str, str] | None = None, stdin: bytes = b"") -> Ran:
    """Run `assay` to its end, in `home`."""
    ran = subprocess.run(
        [ASSAY, *arguments],
        check=False,
        capture_output=True,
        cwd=home,
        env=environment(home, variables),
        input=stdin,
        timeout=SECONDS,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr.decode())
