"""helm and kustomize, as `.ci/helm` builds them, and what they make of deploy/."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path

import yaml

from scanner.model.json import Json, JsonObject, as_object, as_text, dig, texts
from tests.requirements import HELM

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
BASE = DEPLOY / "kustomize" / "base"
KUBERNETES = "1.36"
NAMESPACE = "assay"
_SECONDS = 60
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader in C, which reads ten times as fast, if PyYAML was built with it."""


def program(name: str) -> Path:
    """The path of a program; without it the test is skipped with the remedy."""
    return Path(HELM.require()) / name


def helm(command: str, *arguments: str, values: JsonObject | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of helm that renders the chart with values."""
    with tempfile.TemporaryDirectory() as home:
        return _helm(home, command, *arguments, *_values(home, values), "--kube-version", KUBERNETES)


def against_a_server(
    command: str, *arguments: str, values: JsonObject | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of helm that changes a release, with values if there are any."""
    with tempfile.TemporaryDirectory() as home:
        return _helm(home, command, *arguments, *(_values(home, values) if values else ()))


def _values(home: str, values: JsonObject | None) -> tuple[str, str]:
    """The flag that reads values from a file in a folder."""
    file = Path(home) / "values.yaml"
    file.write_text(yaml.safe_dump(values or {}))
    return "--values", str(file)


def _helm(home: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm without the configuration and the plugins of a user."""
    return subprocess.run(
        [program("helm"), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        env={"HOME": home, "PATH": os.environ["PATH"]},
    )


def rendered(
    values: JsonObject | None = None, *, release: str = "assay", chart: Path = CHART, namespace: str = NAMESPACE
) -> list[JsonObject]:
    """The objects of a chart, tests included, in the order in which helm creates them. Each call has objects of its own."""
    return deepcopy(_rendered(json.dumps(values or {}), release, chart, namespace))


@cache
def _rendered(values: str, release: str, chart: Path, namespace: str) -> list[JsonObject]:
    """Many tests read the same objects, and helm and the reading of YAML take most of their time."""
    ran = helm("template", release, str(chart), "--namespace", namespace, values=as_object(json.loads(values)))
    assert ran.returncode == 0, ran.stderr
    return documents(ran.stdout)


def refused(values: JsonObject) -> str:
    """The message with which the chart refuses values."""
    ran = helm("template", "assay", str(CHART), "--namespace", NAMESPACE, values=values)
    assert ran.returncode != 0, "helm accepts the values"
    return ran.stderr


def built(folder: str, *, deploy: Path = DEPLOY) -> list[JsonObject]:
    """The objects of a kustomization in deploy/kustomize, such as `base`, in the order in which kustomize prints them."""
    ran = subprocess.run(
        [program("kustomize"), deploy / "kustomize" / folder],
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
    return [as_object(document) for document in yaml.load_all(text, Loader=_LOADER) if document]


def without_labels(document: Json) -> Json:
    """A document without labels, wherever they are, and with its named items, such as variables and volumes, in one order."""
    match document:
        case dict():
            return {key: without_labels(value) for key, value in document.items() if key != "labels"}
        case list():
            return sorted((without_labels(item) for item in document), key=lambda item: as_text(dig(item, "name")))
        case _:
            return document
