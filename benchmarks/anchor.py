"""The Go program that the rows about CEL are measured against: built once, then run round by round."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_SOURCES = Path(__file__).with_name("anchor")


class Anchor:
    """cel-go, running on one processor."""

    def __init__(self, cases: Any, objects: Any) -> None:
        """Build the program and give it the corpus."""
        self._folder = tempfile.TemporaryDirectory()
        corpus = Path(self._folder.name) / "corpus.json"
        corpus.write_text(json.dumps({"cases": cases, "objects": objects}))
        self._process = subprocess.Popen(
            [_built(Path(self._folder.name)), corpus],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "GOMAXPROCS": "1"},
        )

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the program and remove it."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def nanoseconds(self, way: str) -> dict[str, float]:
        """Return the nanoseconds of each case in a round: `metered` as kube-apiserver runs CEL, or `unmetered`."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError
        self._process.stdin.write(f"{way}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit("the Go program has stopped; its output is above")
        times: dict[str, float] = json.loads(line)
        return times


def _built(folder: Path) -> Path:
    go = shutil.which("go")
    if go is None:
        sys.exit("skipped: there is no go; the anchor of this benchmark is a Go program (go 1.26, https://go.dev/dl/)")
    target = folder / "anchor"
    command: list[str | Path] = [go, "build", "-trimpath", "-buildvcs=false", "-o", target, "."]
    subprocess.run(command, cwd=_SOURCES, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    return target
