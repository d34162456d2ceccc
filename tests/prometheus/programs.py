"""promtool and the Pushgateway, as `.ci/promtool` builds them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import urllib3

_BUILD = Path(__file__).parents[2] / ".ci" / "promtool"
_SECONDS = 30


@cache
def _folder() -> Path | None:
    """The folder of ASSAY_TEST_PROMETHEUS, or of an earlier build; None if nothing is built."""
    if named := os.environ.get("ASSAY_TEST_PROMETHEUS"):
        return Path(named)
    built = subprocess.run([_BUILD, "--if-built"], check=False, capture_output=True, text=True)
    return Path(built.stdout.strip()) if built.returncode == 0 else None


def program(name: str) -> Path:
    """The path of a program; without it the test is skipped with the remedy."""
    folder = _folder()
    if folder is None:
        needed = "" if shutil.which("go") else "install Go, then "
        pytest.skip(f"no {name}: {needed}export ASSAY_TEST_PROMETHEUS=$(.ci/promtool)")
    return folder / name


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
