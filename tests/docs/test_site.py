"""The documentation is a site without broken links, which loads nothing from other servers; its program runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scanner.model.json import JsonObject
from tests.docs.pages import PAGES, ROOT

MKDOCS = Path(sys.executable).with_name("mkdocs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a warning fails the build."""
    folder = tmp_path_factory.mktemp("site")
    command: list[str | Path] = [MKDOCS, "build", "--strict", "--quiet", "--site-dir", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (0, "") == (done.returncode, done.stderr)
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    """Each page of the documentation has a page in the site."""
    names = {page.with_suffix(".html").name for page in (ROOT / "docs").glob("*.md")}
    assert set() == names - {page.name for page in site.glob("*.html")}


def test_the_site_loads_nothing_from_other_servers(site: Path) -> None:
    """Scripts, styles, fonts and images are files of the site."""
    pages = "\n".join(page.read_text() for page in site.rglob("*.html"))
    styles = "\n".join(style.read_text() for style in site.rglob("*.css"))
    assert [] == re.findall(r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//[^\"]+", pages)
    assert [] == re.findall(r"<link[^>]+href=\"(?:https?:)?//[^\"]+", pages)
    assert [] == re.findall(r"url\([\"']?(?:https?:)?//[^)]+|@import[^;]+", styles)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_line_is_a_sentence(page: Path) -> None:
    """Outside tables, lists and code, no line has a second sentence."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    lines = [line for line in prose.splitlines() if line[:1].isalpha() or line[:1] in "`*["]
    assert [] == [line for line in lines if re.search(r"[a-z`)][.?!] [A-Z`]", line)]


def test_the_program_on_the_page_about_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """With a policy, a binding and a pod the program prints the name of the binding and the outcomes."""
    program = (ROOT / "docs" / "python.md").read_text().split("```python\n")[1].split("```")[0]
    exec(compile(program, "python.md", "exec"), {"policy": policy(), "binding": binding(), "pod": pod()})  # noqa: S102 - our own page
    assert capsys.readouterr().out.startswith("no-host-network (")


def policy() -> JsonObject:
    """Return a policy that denies the host network."""
    rule: JsonObject = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-host-network"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "!object.spec.?hostNetwork.orValue(false)"}],
        },
    }


def binding() -> JsonObject:
    """Return a binding of the policy."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-host-network"},
        "spec": {"policyName": "no-host-network", "validationActions": ["Deny"]},
    }


def pod() -> JsonObject:
    """Return a pod that uses the host network."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "agent", "namespace": "platform"},
        "spec": {"hostNetwork": True, "containers": [{"name": "agent", "image": "example.com/agent:1"}]},
    }
