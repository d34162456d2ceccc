"""A new report format takes one file, and one line in the table of formats."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scanner.report import FORMATS
from scanner.web.pages.exports import EXPORTS
from tests.cli.manifests import bound, config_map

STREAM = """
def render(document, into):
    into.write(f"toy report of {document.provenance.cluster.name}\\n")
"""
FOLDER = """
def render(document, into):
    into.mkdir()
    (into / "start.txt").write_text(document.provenance.cluster.name)
"""
STREAM_LINE = ("toy_stream", "text", "toy.txt", "text/plain")
FOLDER_LINE = ("toy_folder", "folder", "txt", "text/plain", "start.txt", "toy")
TABLE = """
import json, sys
from scanner.report import FORMATS, Format
FORMATS.update({name: Format(*line) for name, line in json.loads(sys.argv.pop(1)).items()})
"""
ASSAY = f"{TABLE}from scanner.cli import main\nmain()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a cluster to scan, and the modules of two formats."""
    (tmp_path / "toy_stream.py").write_text(STREAM)
    (tmp_path / "toy_folder.py").write_text(FOLDER)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "all.yaml").write_text(f"{config_map('one')}---\n{bound('strict', expression='true')}")
    return tmp_path


def _assay(folder: Path, line: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `assay` with the format `toy` in the table."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "HOME": str(folder), "COLUMNS": "200"}
    command = [sys.executable, "-c", ASSAY, json.dumps({"toy": line}), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment)


def test_a_format_of_one_file_and_one_line_is_a_choice(folder: Path) -> None:
    """A format for a stream needs no flag: its name is a value of `-o`."""
    ran = _assay(folder, STREAM_LINE, "scan", "--from", "shop", "-o", "toy", "-q")

    assert (0, "toy report of shop\n", "") == (ran.returncode, ran.stdout, ran.stderr)


def test_a_format_for_a_folder_has_its_flag(folder: Path) -> None:
    """The flag has the name of the format, and the output names the first page."""
    ran = _assay(folder, FOLDER_LINE, "scan", "--from", "shop", "--toy", "out", "-q")

    assert (0, "Report: out/start.txt\n") == (ran.returncode, ran.stderr)
    assert "shop" == (folder / "out" / "start.txt").read_text()


@pytest.mark.parametrize("command", ["scan", "report"])
def test_help_lists_every_format(folder: Path, command: str) -> None:
    """Help has the values of `-o` and the flags of folders that are in the table."""
    names = [name for name, form in FORMATS.items() if form.target != "folder"]

    assert f"<{'|'.join([*names, 'toy'])}>" in _assay(folder, STREAM_LINE, command, "--help").stdout
    assert "--toy DIR" in _assay(folder, FOLDER_LINE, command, "--help").stdout


def test_an_unknown_format_is_a_usage_error(folder: Path) -> None:
    """The message lists the formats of the table."""
    ran = _assay(folder, STREAM_LINE, "report", "-o", "html")

    assert (2, True) == (ran.returncode, "'html' is not one of 'table', 'json'" in ran.stderr)
    assert "'toy'" in ran.stderr


@pytest.mark.parametrize(("line", "name"), [(STREAM_LINE, "assay.toy.txt"), (FOLDER_LINE, None)])
def test_a_format_of_one_file_is_a_download(line: tuple[str, ...], name: str | None) -> None:
    """The file that pages offer has the ending of the table; a folder is no download."""
    program = f"{TABLE}from scanner.web.pages.exports import EXPORTS\nprint(json.dumps(EXPORTS))"
    command = [sys.executable, "-c", program, json.dumps({"toy": line})]

    printed = subprocess.run(command, check=True, capture_output=True).stdout
    assert name == json.loads(printed).get("toy")


def test_every_format_of_one_file_is_a_download_of_its_own() -> None:
    """No format is forgotten, and no two have one name."""
    assert [name for name, form in FORMATS.items() if form.target != "folder"] == list(EXPORTS)
    assert len(EXPORTS) == len(set(EXPORTS.values()))
