"""Assay runs on Linux and macOS; on other systems it ends at once."""

from __future__ import annotations

import pytest

from scanner.cli import main


def test_windows_ends_with_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is that of a scan that could not run, and standard output is empty."""
    with pytest.raises(SystemExit) as end:
        main(["version"], platform="win32")
    out, err = capsys.readouterr()
    assert 4 == end.value.code
    assert "" == out
    assert (
        "assay: Windows is not supported; run Assay on Linux or macOS, in the Windows Subsystem for Linux or in a container.\n"
        == err
    )


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_linux_and_macos_run_commands(platform: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command runs."""
    with pytest.raises(SystemExit) as end:
        main(["version"], platform=platform)
    assert 0 == end.value.code
    assert capsys.readouterr().out.startswith("assay ")
