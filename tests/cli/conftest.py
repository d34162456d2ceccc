"""The command line, called in this process: as fast as a function, with the streams and the exit code of a command."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scanner.cli import main
from tests.command import Ran
from tests.documents import Document
from tests.shop import namespace

EXAMPLES = Path(__file__).parents[2] / "examples"
Assay = Callable[..., Ran]
Check = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home and working directory of a user without any configuration."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("ASSAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def assay(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Assay:
    """Run `assay` with these arguments in `home`."""

    def run(*arguments: str | Path) -> Ran:
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        assert isinstance(end.value.code, int)
        return Ran(end.value.code, out, err.decode())

    return run


@pytest.fixture
def check(assay: Assay, home: Path) -> Check:
    """Check manifests against a cluster of documents; the answer is JSON unless another format is named."""

    def run(cluster: list[Document], *manifests: Document, flags: tuple[str, ...] = (), form: str = "json") -> Ran:
        (home / "cluster.yaml").write_text("\n---\n".join(map(json.dumps, [namespace(), *cluster])))
        (home / "app.yaml").write_text("\n---\n".join(json.dumps(each, indent=1) for each in manifests))
        return assay("check", "-f", "app.yaml", "--against", "cluster.yaml", "-o", form, *flags)

    return run


@pytest.fixture
def write(home: Path) -> Callable[[str, str], Path]:
    """Write a file into `home`, with its folders."""

    def written(path: str, text: str) -> Path:
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
        return Path(path)

    return written


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port without a server that no other process can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
