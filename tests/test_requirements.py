"""A test without the server or program that it uses is skipped, also if it asks for that by name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS, Requirement

TESTS = Path(__file__).parent
VARIABLES = tuple(requirement.variable for requirement in REQUIREMENTS)
PLUGINS = ("tests.conftest", "tests.integration.conftest", "tests.browser.conftest")
USES = """\
from tests.cel.test_answers import test_the_answers_are_still_those_of_kubernetes as test_uses_kubernetes_cel
from tests.deploy.programs import helm
from tests.policies.kyverno.test_declarations import test_the_data_are_what_kyverno_declares as test_uses_kyverno
from tests.prometheus.programs import check
from tests.report.test_chromium import test_a_finding_is_shown as test_uses_chromium
from tests.store.databases import database

def test_names_assets(assets):
    pass

def test_asks_for_assets(request):
    request.getfixturevalue("assets")

def test_asks_for_a_server(request):
    request.getfixturevalue("api_server")

def test_asks_for_a_browser(request):
    request.getfixturevalue("browser")

def test_opens_a_database(tmp_path):
    with database("postgresql", tmp_path):
        pass

def test_runs_helm():
    helm("version")

def test_runs_promtool():
    check("")
"""
IN_A_CONDITION = re.compile(r"fixturenames|environ\b[^\n]*\"(?:" + "|".join(VARIABLES) + r")\"")


def test_tests_without_their_servers_are_skipped(tmp_path: Path) -> None:
    """A fixture is named in the signature or asked for by name, or a function of the test needs the server.

    pytest lists each server once.
    """
    (tmp_path / "test_uses.py").write_text(USES)
    options = ["-q", "-rs", "-c", os.devnull, "-p", "no:cacheprovider", *(f"-p{plugin}" for plugin in PLUGINS)]
    bare = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, tmp_path],
        cwd=TESTS.parent,
        env={**bare, "XDG_CACHE_HOME": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines()[-1].startswith("13 skipped in "), ran.stdout + ran.stderr
    reasons = [line for line in ran.stdout.splitlines() if line.startswith("SKIPPED")]
    assert [] == [name for name in (each.name for each in REQUIREMENTS) if f"no {name}: " not in "".join(reasons)]
    assert len(REQUIREMENTS) == len(reasons)


def test_a_test_is_skipped_where_it_requires_a_server() -> None:
    """The reason has the name of the server and the remedy."""
    with pytest.raises(pytest.skip.Exception, match="no server: set ASSAY_TEST_NOTHING"):
        Requirement("server", "ASSAY_TEST_NOTHING", "set ASSAY_TEST_NOTHING").require()


def test_a_variable_counts_as_it_was_before_the_first_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that gives itself another home finds the same servers."""
    before = os.environ["HOME"]
    monkeypatch.setenv("HOME", "/nowhere")
    assert before == Requirement("home", "HOME", "set HOME").require()


def test_no_test_is_skipped_by_its_signature_or_by_a_condition_of_its_own() -> None:
    """Only `requirements.py` reads the variables, so that a test which uses a server cannot escape the rule."""
    files = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    assert [] == [str(path) for path in files if IN_A_CONDITION.search(path.read_text())]
