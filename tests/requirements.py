"""Servers and programs that a machine may lack: a test that uses one of them without it is skipped, with the remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

_SCRIPTS = Path(__file__).parents[1] / ".ci"
_ENVIRONMENT = dict(os.environ)
"""The variables before a test gives itself another home."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A server or a program: the environment variable that names its place, and the script of .ci whose builds are found without it.

    `release` is the argument of the script, if it builds several programs.
    """

    name: str
    variable: str
    remedy: str
    script: str = ""
    release: str = ""
    marker: str = "server"
    """The marker of the tests that use it."""

    def place(self) -> str:
        """The value of the variable, or the place of an earlier build; empty if there is none."""
        return _place(self)

    def require(self) -> str:
        """The place. Without one the test that calls this function, or has a fixture that does, is skipped."""
        if place := self.place():
            return place
        raise pytest.skip.Exception(f"no {self.name}: {self._go()}{self.remedy}")

    def _go(self) -> str:
        return "install Go, then " if self.script and not shutil.which("go") else ""


@cache
def _place(requirement: Requirement) -> str:
    if named := _ENVIRONMENT.get(requirement.variable):
        return named
    if not requirement.script:
        return ""
    command = [str(_SCRIPTS / requirement.script), *filter(None, (requirement.release,)), "--if-built"]
    built = subprocess.run(command, check=False, capture_output=True, text=True, env=_ENVIRONMENT)
    return built.stdout.strip() if built.returncode == 0 else ""


def report_once(report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    """Give tests that lack the same server one place, so that pytest lists them in one line with their number."""
    if call.excinfo is None or not isinstance(report.longrepr, tuple):
        return
    last = call.excinfo.traceback[-1]
    if last.path == Path(__file__):
        report.longrepr = (str(last.path), last.lineno + 1, report.longrepr[2])


API_SERVER = Requirement(
    "kube-apiserver",
    "KUBEBUILDER_ASSETS",
    'export KUBEBUILDER_ASSETS="$(make -s apiserver)" (Go 1.26, some minutes the first time)',
)
POSTGRES = Requirement(
    "PostgreSQL",
    "ASSAY_TEST_POSTGRES",
    "set ASSAY_TEST_POSTGRES to the URL of a database beside which others may be created",
    marker="postgres",
)
CHROMIUM = Requirement(
    "Chromium",
    "ASSAY_TEST_CHROMIUM",
    "set ASSAY_TEST_CHROMIUM to the path of a Chromium to open pages in it",
    marker="browser",
)
HELM = Requirement("helm and kustomize", "ASSAY_TEST_HELM", 'export ASSAY_TEST_HELM="$(make -s helm)"', "helm")
PROMETHEUS = Requirement(
    "promtool and Pushgateway",
    "ASSAY_TEST_PROMETHEUS",
    'export ASSAY_TEST_PROMETHEUS="$(make -s promtool)"',
    "promtool",
)
KUBERNETES_CEL = Requirement("Kubernetes' own CEL", "ASSAY_ORACLE", "make oracle", "oracle")
KYVERNO = {
    release: Requirement(
        f"Kyverno {release}",
        f"ASSAY_KYVERNO_{release.replace('.', '_')}",
        f"make kyverno-oracle RELEASE={release} (some minutes the first time)",
        "kyverno-oracle",
        release,
    )
    for release in ("1.16", "1.17", "1.18", "1.19")
}
"""The programs that are linked with Kyverno's releases."""
REQUIREMENTS = (API_SERVER, POSTGRES, CHROMIUM, HELM, PROMETHEUS, KUBERNETES_CEL, *KYVERNO.values())
