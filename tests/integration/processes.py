"""One server process that never outlives the test run.

It gets its own process group, which is killed as a whole: what these servers keep is thrown away with their directory,
so there is nothing to wait for. On Linux the kernel also ends it when the test run itself is killed.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_RETURNED: set[int] = set()
"""The ports that `free_port` returned: a server may not listen yet when the next port is asked for."""


class NotStartedError(Exception):
    """A server did not become ready; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running process and the file that its output goes to."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def reject_ended(self) -> None:
        """Raise NotStartedError if the process is gone."""
        if self.process.poll() is not None:
            raise self.trouble(f"ended with exit code {self.process.returncode}")

    def trouble(self, what: str) -> NotStartedError:
        """An error with its cause and the last lines of the log."""
        tail = self.log.read_text(errors="replace").splitlines()[-30:]
        return NotStartedError("\n".join([f"{self.name} {what}; the end of its log:", *tail]))


@contextmanager
def serving(
    command: Sequence[str | Path], log: Path, *, variables: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Run `command` with its output in `log`, until the block is left; `variables` are added to the environment."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*ending_with_parent(), *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(variables or {})},
            start_new_session=True,
        )
    try:
        yield Server(name=Path(command[0]).name, process=process, log=log)
    finally:
        _kill_group(process)


def free_port() -> int:
    """A loopback port that nothing listens on, and that no earlier call returned.

    It lies below the ports that systems give to clients: between this call and the start of the server, no connection of
    another test can take it.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        if port in _RETURNED:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _RETURNED.add(port)
            return port


def ending_with_parent() -> list[str]:
    """The start of a command that the kernel ends with the thread that starts it, where the system can."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
