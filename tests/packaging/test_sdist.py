"""The wheel that is built from the sdist, as a release builds it, has the commit of the release."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

from tests.packaging.test_wheel import ROOT, uv

BUILD = '{"commit": "abc", "built": "2026-01-01T00:00:00Z"}\n'


def test_the_commit_reaches_the_wheel_through_the_sdist(tmp_path: Path) -> None:
    """Git ignores the file with the commit, and the sdist has it all the same."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/", "examples/")):
            (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "clone" / name)
    (tmp_path / "clone" / "scanner" / "build.json").write_text(BUILD)
    uv("build", "--out-dir", tmp_path / "dist", tmp_path / "clone")
    [wheel] = (tmp_path / "dist").glob("*.whl")
    assert BUILD == zipfile.ZipFile(wheel).read("scanner/build.json").decode()
