"""What a release is made from: the workflow, the section of the changelog, and what `assay version` knows of its build."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scanner import __version__
from scanner.store.rows.tables import HEAD
from scripts.changelog_section import section
from tests.cli.conftest import assay, home
from tests.command import Ran

__all__ = ["assay", "home"]

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def commands(job: str) -> str:
    """The shell commands of a job."""
    return "\n".join(step.get("run", "") for step in JOBS[job].get("steps", []))


def test_nothing_is_published_before_the_gate() -> None:
    """Every job waits for the gate, by itself or by another job."""
    waits = {name: job.get("needs", []) for name, job in JOBS.items()}
    for name in JOBS.keys() - {"check"}:
        before = {name}
        while before and "check" not in before:
            before = {
                needed for each in before for needed in ([waits[each]] if isinstance(waits[each], str) else waits[each])
            }
        assert "check" in before, name


@pytest.mark.parametrize(
    ("job", "rights"),
    [
        ("package", {"id-token": "write"}),
        ("release", {"contents": "write"}),
        ("image", {"contents": "read"}),
        ("chart", {}),
    ],
)
def test_each_job_has_the_rights_that_it_needs_alone(job: str, rights: dict[str, str]) -> None:
    """Without a right of the whole workflow."""
    assert ({}, rights) == (WORKFLOW["permissions"], JOBS[job]["permissions"])


def test_the_image_has_two_platforms_a_bill_of_materials_and_provenance() -> None:
    """It is run once before anything else is published."""
    [push] = [step["with"] for step in JOBS["image"]["steps"] if step.get("id") == "push"]
    assert ("linux/amd64,linux/arm64", True, "mode=max") == (push["platforms"], push["sbom"], push["provenance"])
    assert "version -o json" in commands("image")
    assert "image" in JOBS["package"]["needs"]


def test_the_arguments_of_the_build_are_those_of_the_dockerfile() -> None:
    """An argument that the Dockerfile does not have would be ignored."""
    [push] = [step["with"] for step in JOBS["image"]["steps"] if step.get("id") == "push"]
    given = {line.partition("=")[0] for line in push["build-args"].splitlines()}
    assert given == set(re.findall(r"^ARG (\w+)=", (ROOT / "Dockerfile").read_text(), re.MULTILINE))


def test_every_path_that_the_workflow_names_exists() -> None:
    """Scripts, the chart and the module with the version."""
    text = "\n".join(map(commands, JOBS))
    paths = set(re.findall(r"(?<![\w/.])(?:scripts|deploy|scanner)/[\w./-]+\w", text)) - {"scanner/build.json"}
    assert {"scripts/changelog_section.py", "deploy/chart", "scanner/__init__.py"} == paths
    assert all((ROOT / path).exists() for path in paths)


def test_the_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    """Up to the next heading."""
    changelog = "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-01-02\n\nNew.\n\n## [1.0.0] - 2026-01-01\n\nOld.\n"
    assert ["New.", "Old."] == [section(number, changelog) for number in ("1.1.0", "1.0.0")]


@pytest.mark.parametrize("number", ["Unreleased", "2.0.0"])
def test_a_version_without_a_section_has_no_release(number: str) -> None:
    """An empty section is none."""
    with pytest.raises(SystemExit, match="no section"):
        section(number, "# Changelog\n\n## [Unreleased]\n\n## [1.0.0] - 2026-01-01\n\nOld.\n")


def test_the_version_as_json_names_what_runs(assay: Any) -> None:
    """A package that no release built has neither commit nor time."""
    ran: Ran = assay("version", "-o", "json")
    known = json.loads(ran.stdout)

    assert (__version__, HEAD, None, None) == (known["version"], known["schema"], known["commit"], known["built"])
    assert re.fullmatch(r"1\.\d+", known["kubernetes"])
    assert {"cel-python", "kubernetes", "sqlalchemy", "typer", "jinja2"} <= known["dependencies"].keys()


def test_a_release_names_its_commit(assay: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the file that the workflow and the Dockerfile write before the package is built."""
    (tmp_path / "build.json").write_text('{"commit": "abc", "built": "2026-01-01T00:00:00Z"}')
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)

    known = json.loads(assay("version", "-o", "json").stdout)
    assert ("abc", "2026-01-01T00:00:00Z") == (known["commit"], known["built"])
