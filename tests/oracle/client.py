"""The oracle as a process: requests in, replies out, in the same order (see cmd/oracle/request.go and reply.go)."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Self

from tests.requirements import KUBERNETES_CEL

_ROOT = Path(__file__).resolve().parents[2]
_BATCH = 500


def program() -> Path:
    """Return the path of the oracle, which is built if it is missing."""
    if built := KUBERNETES_CEL.place():
        return Path(built)
    completed = subprocess.run([_ROOT / ".ci" / "oracle"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(completed.stdout.strip())


class Oracle:
    """A running oracle; a context manager."""

    def __init__(self, path: Path, *arguments: str) -> None:
        self._process = subprocess.Popen([path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, requests: Iterable[dict[str, Any]]) -> list[Any]:
        """Return the reply to each request, in order. Raises RuntimeError when the oracle ends."""
        lines = [json.dumps(request).encode() + b"\n" for request in requests]
        return [
            reply for start in range(0, len(lines), _BATCH) for reply in self._exchange(lines[start : start + _BATCH])
        ]

    def _exchange(self, lines: list[bytes]) -> Iterator[Any]:
        # Written from a thread: the oracle answers while it reads, and both pipes are short.
        writer = threading.Thread(target=_write, args=(self._process.stdin, lines))
        writer.start()
        for _ in lines:
            line = self._process.stdout.readline() if self._process.stdout else b""
            if not line:
                raise RuntimeError(f"the oracle ended with exit code {self._process.wait()}")
            yield json.loads(line)
        writer.join()


def _write(stream: IO[bytes] | None, lines: list[bytes]) -> None:
    if stream:
        stream.write(b"".join(lines))
        stream.flush()
