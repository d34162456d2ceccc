"""The place of the image: the workflow of a release writes it into the manifests, and users who build the image name it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from scanner import __version__
from scanner.model.json import as_list, as_object, as_text, dig
from scripts.name_image import name_image
from tests.deploy.objects import job, pods
from tests.deploy.programs import DEPLOY, built, documents, rendered

PLACE = "registry.example.com/assay/kube-assay"
DIGEST = f"sha256:{'a' * 64}"


@pytest.fixture(params=["", DIGEST], ids=["tag", "digest"])
def named(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A copy of deploy/ in which the image has a place, and its whole name."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    name_image(tmp_path / "deploy", PLACE, request.param)
    return tmp_path / "deploy", f"{PLACE}@{DIGEST}" if request.param else f"{PLACE}:{__version__}"


def images(pod: object) -> set[str]:
    """The images of the containers of a pod."""
    return {
        as_text(dig(each, "image"))
        for place in ("initContainers", "containers")
        for each in as_list(dig(pod, "spec", place))  # type: ignore[arg-type]
    }


def test_the_chart_has_the_image(named: tuple[Path, str]) -> None:
    """Every pod, without a value of the user, and in the defaults of an upgrade."""
    deploy, image = named
    assert {image} == {each for pod in pods(rendered(chart=deploy / "chart")) for each in images(pod)}
    defaults = as_object(yaml.safe_load((deploy / "chart" / "files" / "defaults.yaml").read_text()))
    assert PLACE == defaults["image.repository"]


def test_kustomize_has_the_image(named: tuple[Path, str]) -> None:
    """The base and what is built on it."""
    deploy, image = named
    assert {image} == images(job(built("base", deploy=deploy))["template"])


def test_the_file_of_the_fleet_has_the_image(named: tuple[Path, str]) -> None:
    """Each of its containers."""
    deploy, image = named
    assert {image} == images(job(documents((deploy / "fleet.yaml").read_text()))["template"])


def test_a_place_is_written_once(named: tuple[Path, str]) -> None:
    """A second run finds no image without a place, and fails instead of writing half of it."""
    with pytest.raises(SystemExit, match="instead of one"):
        name_image(named[0], PLACE)


@pytest.mark.parametrize("page", ["install.md", "deploy.md"])
def test_the_pages_install_with_a_place(page: str) -> None:
    """Each first installation with Helm names the registry."""
    text = (DEPLOY.parent / "docs" / page).read_text()
    first = next(line for line in text.splitlines() if line.startswith("$ helm install assay deploy/chart"))
    assert "--set image.repository=" in first
