"""promtool and the Pushgateway, as `.ci/promtool` builds them."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import urllib3

from tests.requirements import PROMETHEUS

_SECONDS = 30


def program(name: str) -> Path:
    """The path of a program; without it the test is skipped with the remedy."""
    return Path(PROMETHEUS.require()) / name


def check(text: str) -> str:
    """The problems that promtool finds in metrics, empty if there are none."""
    ran = subprocess.run(
        [program("promtool"), "check", "metrics"],
        check=False,
        capture_output=True,
        input=text.encode(),
        timeout=_SECONDS,
    )
    output = (ran.stdout + ran.stderr).decode()
    return output if ran.returncode else ""


@contextmanager
def pushgateway(folder: Path) -> Iterator[str]:
    """The URL of a running Pushgateway, which logs into the folder."""
    path = program("pushgateway")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (folder / "pushgateway.log").open("wb") as log:
        process = subprocess.Popen([path, f"--web.listen-address={address}"], stdout=log, stderr=log)
        try:
            _wait(f"http://{address}/-/ready", process)
            yield f"http://{address}"
        finally:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _SECONDS
    while True:
        try:
            urllib3.request("GET", url, timeout=1, retries=False)
        except urllib3.exceptions.HTTPError:
            assert process.poll() is None, "the Pushgateway ended; its log has the reason"
            assert time.monotonic() < end, "the Pushgateway does not answer"
            time.sleep(0.05)
        else:
            return
