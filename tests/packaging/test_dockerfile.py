"""The image is built from this repository, runs as an unprivileged user, and contains no build tools.

No Docker engine is needed: the file is read as the instructions it consists of.
"""

from __future__ import annotations

import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Instruction(NamedTuple):
    """One instruction, its continuation lines joined."""

    keyword: str
    arguments: str


def instructions() -> list[Instruction]:
    """Read the instructions in order, comments left out."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [Instruction(*line.split(None, 1)) for line in joined.splitlines() if line.strip()]


def final_stage() -> list[Instruction]:
    """Cut off what comes before the last FROM."""
    steps = instructions()
    start = max(index for index, item in enumerate(steps) if item.keyword == "FROM")
    return steps[start:]


def arguments(stage: list[Instruction], keyword: str) -> list[str]:
    """Pick the arguments of every instruction with that keyword."""
    return [item.arguments for item in stage if item.keyword == keyword]


def copied() -> list[str]:
    """Pick the paths that are copied from the repository, not from another stage."""
    taken = [text.split()[:-1] for text in arguments(instructions(), "COPY") if not text.startswith("--from")]
    return [path for paths in taken for path in paths]


def test_bases_are_pinned_to_a_tag_of_a_glibc_distribution() -> None:
    """Every stage starts from the same slim Debian image, named with its Python version and the digest of its index."""
    [base] = {text.split()[0] for text in arguments(instructions(), "FROM")}
    assert re.fullmatch(r"python:3\.13\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", base)


def test_labels_name_the_version_the_commit_and_the_licence() -> None:
    """In the words of the Open Container Initiative; the licence is in the image, too."""
    [labels] = arguments(final_stage(), "LABEL")
    names = set(re.findall(r"org\.opencontainers\.image\.([\w.]+)=", labels))
    assert {"title", "description", "licenses", "version", "revision", "base.name"} == names
    assert 'base.name="docker.io/library/python:3.13' in labels
    assert "LICENSE /usr/share/doc/kube-assay/LICENSE" in arguments(final_stage(), "COPY")


def test_the_user_is_a_number_and_not_root() -> None:
    """A numeric user lets Kubernetes verify runAsNonRoot."""
    assert ["65532:65532"] == arguments(final_stage(), "USER")


def test_nothing_is_fetched_by_add() -> None:
    """ADD unpacks archives and downloads; COPY only copies."""
    assert [] == arguments(instructions(), "ADD")


def test_every_copied_path_exists_and_reaches_the_builder() -> None:
    """The Dockerfile copies what is in the repository and what .dockerignore lets through."""
    patterns = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for path in copied():
        assert (ROOT / path).exists(), path
        assert any(fnmatch(path, pattern) for pattern in patterns), path


def test_every_file_that_the_wheel_includes_is_copied() -> None:
    """Files and folders that pyproject.toml forces into the wheel are there when the wheel is built."""
    text = (ROOT / "pyproject.toml").read_text()
    section = text.split("[tool.hatch.build.targets.wheel.force-include]")[1].split("[tool.")[0]
    forced = set(re.findall(r'^"([^"]+)"', section, re.MULTILINE))
    schemas = {f"docs/{name}.schema.json" for name in ("config", "report", "run", "runs", "trend")}
    assert {*schemas, "migrations", "reports_templates"} == forced
    assert forced <= set(copied())


def test_dependencies_come_from_the_lock_and_without_the_tools_of_developers() -> None:
    """Both installations refuse a lock that does not fit, and leave the dev group out."""
    installations = [text for text in arguments(instructions(), "RUN") if text.startswith("uv sync")]
    assert 2 == len(installations)
    assert all("--locked --no-dev" in text for text in installations)
    assert "pip install --no-cache-dir --requirement .ci/uv.txt" in arguments(instructions(), "RUN")


def test_what_the_image_leaves_out_is_imported_by_nothing() -> None:
    """The asynchronous client of the package kubernetes, half of its size: the modules that use a cluster work without it."""
    [removed] = re.findall(
        r"rm -rf /opt/assay/lib/python3.13/site-packages/(\S+)$",
        "\n".join(arguments(instructions(), "RUN")),
        re.MULTILINE,
    )
    program = (
        "import sys\n"
        f"sys.modules[{removed.replace('/', '.')!r}] = None\n"
        "from kubernetes import client, config, dynamic, watch\n"
        "from kubernetes.client.rest import should_bypass_proxies\n"
        "import scanner.cluster.live.cluster, scanner.cluster.requests.credentials, scanner.cluster.requests.transport\n"
    )
    assert 0 == subprocess.run([sys.executable, "-c", program], check=False).returncode
    assert "kubernetes/aio" == removed


def test_the_final_image_installs_nothing_and_drops_pip() -> None:
    """Only the build stage runs installers; the last stage removes the one that its base brings."""
    (command,) = arguments(final_stage(), "RUN")
    assert command.startswith("rm -rf /usr/local/lib/python3.13/site-packages/pip*")
    assert None is re.search(r"\b(apt-get|uv|pip install|curl|gcc)\b", command)


def test_the_image_is_the_command() -> None:
    """Arguments of `docker run` are arguments of `assay`, and no shell stands between."""
    assert ['["assay"]'] == arguments(final_stage(), "ENTRYPOINT")


def test_a_read_only_root_suffices() -> None:
    """Python writes no bytecode, and home and database lie on volumes."""
    (environment,) = arguments(final_stage(), "ENV")
    settings = dict(item.split("=", 1) for item in environment.split())
    assert settings["PYTHONDONTWRITEBYTECODE"] == "1"
    assert settings["HOME"] == "/tmp"
    assert settings["ASSAY_DEFAULT_DB"] == "sqlite:////data/assay.db"
