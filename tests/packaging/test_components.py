"""The lists of components of a release: the Python packages of the image, and the files of the chart."""

from __future__ import annotations

import tarfile
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path

from scanner import __version__
from scripts.list_components import _normalize, list_chart, list_package
from tests.deploy.programs import CHART

ROOT = Path(__file__).parents[2]
IMAGE = f"registry.example.com/assay/kube-assay@sha256:{'a' * 64}"


def test_every_package_of_the_image_has_its_licence_and_its_digests() -> None:
    """Those of the lock, without the tools of developers."""
    installed = {_normalize(each.metadata["Name"]): each for each in distributions()}
    listed = list_package(ROOT / "uv.lock", installed)
    components = {each["name"]: each for each in listed["components"]}
    assert __version__ == listed["metadata"]["component"]["version"]
    assert {"kubernetes", "psycopg", "psycopg-binary", "starlette", "sqlalchemy"} <= components.keys()
    assert set() == {"pytest", "mypy", "ruff"} & components.keys()
    assert [] == [name for name, each in components.items() if not each["licenses"]]
    digests = {
        name: [file["hashes"][0]["content"] for file in each["externalReferences"]] for name, each in components.items()
    }
    assert [] == [name for name, each in digests.items() if not each or {len(digest) for digest in each} != {64}]


def test_the_chart_lists_its_files_and_its_image(tmp_path: Path) -> None:
    """Each file with its digest, and the image by the digest with which the chart starts it."""
    packed = tmp_path / "assay-1.2.3.tgz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(CHART / "Chart.yaml", "assay/Chart.yaml")
    listed = list_chart(packed, IMAGE)
    image, file = listed["components"]
    assert ("1.2.3", IMAGE) == (listed["metadata"]["component"]["version"], f"{image['name']}@{image['version']}")
    assert ("assay/Chart.yaml", sha256((CHART / "Chart.yaml").read_bytes()).hexdigest()) == (
        file["name"],
        file["hashes"][0]["content"],
    )
