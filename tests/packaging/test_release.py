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
        ("release", {"contents": "write", "id-token": "write"}),
        ("image", {"contents": "read", "id-token": "write"}),
        ("chart", {"contents": "read", "id-token": "write", "attestations": "write"}),
    ],
)
def test_each_job_has_the_rights_that_it_needs_alone(job: str, rights: dict[str, str]) -> None:
    """Without a right of the whole workflow."""
    assert ({}, rights) == (WORKFLOW["permissions"], JOBS[job]["permissions"])


def test_the_image_has_two_platforms_a_bill_of_materials_and_provenance() -> None:
    """They are made by the builder; the list of Python packages with licences and digests is attested beside them."""
    [push] = [step["with"] for step in JOBS["image"]["steps"] if step.get("id") == "push"]
    assert ("linux/amd64,linux/arm64", True, "mode=max") == (push["platforms"], push["sbom"], push["provenance"])
    assert "cosign attest --yes --type cyclonedx --predicate kube-assay.cdx.json" in commands("image")


def test_the_image_has_no_tag_before_it_is_tried_and_signed() -> None:
    """It is pushed by its digest; both platforms scan the example cluster, and the tag is the last step."""
    steps = JOBS["image"]["steps"]
    [push] = [step["with"] for step in steps if step.get("id") == "push"]
    places = [
        next(place for place, step in enumerate(steps) if words in str(step))
        for words in ("docker/build-push-action", "scan --from /examples", "cosign sign", "imagetools create --tag")
    ]
    assert ("tags" in push, "push-by-digest=true" in push["outputs"]) == (False, True)
    assert sorted(places) == places
    assert len(steps) - 1 == places[-1]
    assert "image" in JOBS["package"]["needs"]


@pytest.mark.parametrize("job", ["image", "chart", "release"])
def test_what_is_published_is_signed_without_a_key(job: str) -> None:
    """Sigstore signs for the workflow, whose identity users verify."""
    assert re.search(r"cosign sign(-blob)? --yes", commands(job))
    assert "--key" not in commands(job)


def test_the_chart_has_the_image_of_the_release() -> None:
    """Its place and its digest are written before the chart is packaged, which also has a list of components and provenance."""
    written = commands("chart")
    assert written.index("scripts/name_image.py") < written.index("helm package") < written.index("helm push")
    assert "needs.image.outputs.digest" in JOBS["chart"]["env"]["DIGEST"]
    assert "cosign attest --yes --type cyclonedx --predicate assay-chart.cdx.json" in written
    assert [True] == [
        step["with"]["push-to-registry"] for step in JOBS["chart"]["steps"] if "attest" in step.get("uses", "")
    ]


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(workflow: Path) -> None:
    """Each with its version as a comment, which the bot updates with the commit."""
    used = re.findall(r"uses: (\S+)(.*)", workflow.read_text())
    others = [name + version for name, version in used if not name.startswith("./")]
    assert others
    assert [] == [each for each in others if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)]


def test_the_gate_runs_on_the_oldest_python_and_on_that_of_the_image() -> None:
    """The versions of pyproject.toml and of the Dockerfile."""
    check = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())["jobs"]["check"]
    oldest = re.findall(r'requires-python = ">=(.+)"', (ROOT / "pyproject.toml").read_text())
    of_image = re.findall(r"^FROM python:(\d+\.\d+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {*oldest, *of_image} == {each["python"] for each in check["strategy"]["matrix"]["include"]}


def test_a_bot_updates_what_is_pinned() -> None:
    """Actions, the base of the image, uv, the lock, and modules of Go whose folders exist."""
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    assert {"github-actions", "docker", "pip", "uv", "gomod"} == {each["package-ecosystem"] for each in updates}
    folders = [folder for each in updates for folder in each.get("directories", [each.get("directory")])]
    assert [] == [folder for folder in folders if not (ROOT / folder.lstrip("/")).is_dir()]
    assert re.fullmatch(r"uv==[\d.]+\n", (ROOT / ".ci" / "uv.txt").read_text())


def test_the_arguments_of_the_build_are_those_of_the_dockerfile() -> None:
    """An argument that the Dockerfile does not have would be ignored."""
    [push] = [step["with"] for step in JOBS["image"]["steps"] if step.get("id") == "push"]
    given = {line.partition("=")[0] for line in push["build-args"].splitlines()}
    assert given == set(re.findall(r"^ARG (\w+)=", (ROOT / "Dockerfile").read_text(), re.MULTILINE))


def test_every_path_that_the_workflow_names_exists() -> None:
    """Scripts, the chart and the module with the version."""
    text = "\n".join(map(commands, JOBS))
    paths = set(re.findall(r"(?<![\w/.])(?:scripts|deploy|scanner|examples)/[\w./-]+\w", text)) - {"scanner/build.json"}
    assert {
        "scripts/changelog_section.py",
        "scripts/name_image.py",
        "scripts/list_components.py",
        "deploy/chart",
    } < paths
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
