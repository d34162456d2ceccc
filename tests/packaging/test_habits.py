"""The files for contributors: hooks, workflow, templates."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scanner.model.json import Json, as_list, as_object, as_text, dig
from scripts.check_subjects import subject_of, too_long

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


def read(path: str) -> Json:
    """Read a YAML file of the repository; the key `on` of a workflow is the boolean of YAML 1.1."""
    document: Json = yaml.safe_load((ROOT / path).read_text())
    return document


def test_a_subject_has_at_most_72_characters() -> None:
    """The limit is inclusive, and counts characters."""
    assert [] == too_long(["é" * 72])
    assert ["x" * 73] == too_long(["short", "x" * 73])


def test_the_subject_is_the_first_line_that_is_no_comment() -> None:
    """Git adds comments to the message of a commit."""
    assert "Fix it" == subject_of("# Please enter a message\n\nFix it\n\nA body\n")
    assert "" == subject_of("# nothing\n")


@pytest.mark.parametrize(("length", "code"), [(72, 0), (73, 1)])
def test_the_hook_rejects_a_long_subject(length: int, code: int, tmp_path: Path) -> None:
    """The hook of pre-commit runs this command with the file of the message."""
    hooks = as_list(dig(as_list(dig(read(".pre-commit-config.yaml"), "repos"))[0], "hooks"))
    (entry,) = (as_text(dig(hook, "entry")) for hook in hooks if "commit-msg" in str(dig(hook, "stages")))
    message = tmp_path / "message"
    message.write_text("x" * length + "\n\nbody " + "y" * 100)
    program = ROOT / entry.split()[-1]
    done = subprocess.run([sys.executable, program, message], capture_output=True, text=True, check=False)
    assert code == done.returncode, done.stderr


def test_the_workflow_runs_the_gate() -> None:
    """The last step is the same script that contributors and CI run."""
    steps = as_list(dig(read(".github/workflows/check.yml"), "jobs", "check", "steps"))
    assert ".ci/run" == dig(steps[-1], "run")
    assert (ROOT / ".ci" / "run").exists()


def test_the_first_command_of_contributors_is_tested_by_the_gate() -> None:
    """README and CONTRIBUTING name it first, and the gate runs it without servers."""
    development = commands("README.md", "## Development")
    assert ("make test", "make test") == (development[0], commands("CONTRIBUTING.md", "## Set up")[0])
    gate = (ROOT / ".ci" / "run").read_text()
    clone = gate.partition("test_clean_clone() {")[2].partition("\n}")[0]
    assert "make test" in [line.strip() for line in clone.splitlines()]
    assert "test_clean_clone" in gate.splitlines()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "RELEASING.md"])
def test_named_targets_are_in_the_makefile(page: str) -> None:
    """Each `make` of a page is one that `make help` lists."""
    listed = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^\$ |`|\()make (?:-s )?([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE)
    assert named
    assert set() == {*named} - listed


def commands(page: str, section: str) -> list[str]:
    """The commands of the first block of a section, without their comments."""
    block = (ROOT / page).read_text().split(f"{section}\n")[1].split("```console\n")[1].split("```")[0]
    return [line.removeprefix("$ ").partition("#")[0].strip() for line in block.splitlines()]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_an_issue_form_has_a_name_and_fields(form: Path) -> None:
    """GitHub shows only forms with a name, a description and a body whose fields have labels."""
    document = as_object(read(form.relative_to(ROOT).as_posix()))
    assert {"name", "description", "body"} <= document.keys()
    fields = [field for field in as_list(document["body"]) if dig(field, "type") != "markdown"]
    assert all(as_text(dig(field, "attributes", "label")) for field in fields)
