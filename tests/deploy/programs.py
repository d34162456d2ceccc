"""helm and kustomize, as `.ci/helm` builds them, and what they make of deploy/."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
import yaml

from scanner.model.json import Json, JsonObject, as_object, as_text, dig, texts

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
BASE = DEPLOY / "kustomize" / "base"
KUBERNETES = "1.36"
NAMESPACE = "assay"
_BUILD = Path(__file__).parents[2] / ".ci" / "helm"
_ENVIRONMENT = dict(os.environ)
"""The variables before a test gives itself another home."""
_SECONDS = 60


@cache
def _folder() -> Path | None:
    """The folder of ASSAY_TEST_HELM, or of an earlier build; None if nothing is built."""
    if named := os.environ.get("ASSAY_TEST_HELM"):
        return Path(named)
    built = subprocess.run([_BUILD, "--if-built"], check=False, capture_output=True, text=True, env=_ENVIRONMENT)
    return Path(built.stdout.strip()) if built.returncode == 0 else None


def program(name: str) -> Path:
    """The path of a program; without it the test is skipped with the remedy."""
    folder = _folder()
    if folder is None:
        needed = "" if shutil.which("go") else "install Go, then "
        pytest.skip(f"no {name}: {needed}export ASSAY_TEST_HELM=$(.ci/helm)")
    return folder / name


def helm(command: str, *arguments: str, values: JsonObject | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of helm with values, without the configuration and the plugins of a user."""
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "values.yaml"
        file.write_text(yaml.safe_dump(values or {}))
        return subprocess.run(
            [program("helm"), command, *arguments, "--values", file, "--kube-version", KUBERNETES],
            check=False,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env={"HOME": home, "PATH": os.environ["PATH"]},
        )


def rendered(values: JsonObject | None = None, *, release: str = "assay") -> list[JsonObject]:
    """The objects of the chart, tests included, in the order in which helm creates them."""
    ran = helm("template", release, str(CHART), "--namespace", NAMESPACE, values=values)
    assert ran.returncode == 0, ran.stderr
    return documents(ran.stdout)


def refused(values: JsonObject) -> str:
    """The message with which the chart refuses values."""
    ran = helm("template", "assay", str(CHART), "--namespace", NAMESPACE, values=values)
    assert ran.returncode != 0, "helm accepts the values"
    return ran.stderr


def built(folder: str) -> list[JsonObject]:
    """The objects of a kustomization in deploy/kustomize, such as `base`, in the order in which kustomize prints them."""
    ran = subprocess.run(
        [program("kustomize"), DEPLOY / "kustomize" / folder],
        check=False,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert ran.returncode == 0, ran.stderr
    return documents(ran.stdout)


def base() -> list[JsonObject]:
    """The objects of the base as they stand in its files, in the order of its resources; kustomize adds the tag of the image."""
    resources = texts(as_object(yaml.safe_load((BASE / "kustomization.yaml").read_text()))["resources"])
    return [document for name in resources for document in documents((BASE / name).read_text())]


def documents(text: str) -> list[JsonObject]:
    """The documents of a text, without empty ones."""
    return [as_object(document) for document in yaml.safe_load_all(text) if document]


def without_labels(document: Json) -> Json:
    """A document without labels, wherever they are, and with its named items, such as variables and volumes, in one order."""
    match document:
        case dict():
            return {key: without_labels(value) for key, value in document.items() if key != "labels"}
        case list():
            return sorted((without_labels(item) for item in document), key=lambda item: as_text(dig(item, "name")))
        case _:
            return document
