"""The installed command, in a process of its own or in this one, with nothing of this machine's environment."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from scanner.cli import main
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


def assay_here(*arguments: str | Path, home: Path, variables: Mapping[str, str] | None = None) -> Ran:
    """Run `assay` to its end in `home` and in this process, which saves the time in which a process starts."""
    printed, messages = io.BytesIO(), io.BytesIO()
    with (
        chdir(home),
        _only(environment(home, variables)),
        redirect_stdout(io.TextIOWrapper(printed, encoding="utf-8", write_through=True)) as out,
        redirect_stderr(io.TextIOWrapper(messages, encoding="utf-8", write_through=True)) as err,
        pytest.raises(SystemExit) as end,
    ):
        main([str(argument) for argument in arguments])
    out.flush()
    err.flush()
    assert isinstance(end.value.code, int)
    return Ran(end.value.code, printed.getvalue(), messages.getvalue().decode())


@contextmanager
def _only(variables: Mapping[str, str]) -> Iterator[None]:
    """A block with these variables as the whole environment."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
