"""List the components of a release as CycloneDX 1.5, with licences and SHA-256 digests.

`.venv/bin/python scripts/list_components.py package` lists the Python packages of the image, which this environment has.
`python3 scripts/list_components.py chart CHART.tgz IMAGE@DIGEST` lists the files of a packaged chart, and its image.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NAME = "kube-assay"
EXTRAS = ("postgres", "serve")
_LICENSE = {"licenses": [{"license": {"id": "Apache-2.0"}}]}
_CLASSIFIER = "License :: OSI Approved :: "
_LONGEST = 100
"""The characters of a name of a licence; some packages have the whole text in its place."""


def list_package(lock: Path, installed: Mapping[str, Distribution]) -> dict[str, Any]:
    """The packages that the image installs, by the lock; those of other platforms are not installed."""
    packages = {package["name"]: package for package in tomllib.loads(lock.read_text())["package"]}
    own = packages[NAME]
    version = re.search(r'^__version__ = "(.*)"$', (ROOT / "scanner" / "__init__.py").read_text(), re.MULTILINE)
    needed = [*own.get("dependencies", []), *(each for extra in EXTRAS for each in own["optional-dependencies"][extra])]
    names = sorted(set(_close(packages, needed)) & installed.keys())
    components = [_describe_package(packages[name], installed[name]) for name in names]
    return _document(
        {"type": "application", "name": NAME, "version": version[1] if version else "", **_LICENSE}, components
    )


def _close(packages: Mapping[str, Any], needed: list[Any]) -> Iterator[str]:
    """The names of the packages that these need, and of those that they need in turn."""
    known: set[str] = set()
    while needed:
        need = needed.pop()
        name = need["name"]
        of_extras = [packages[name].get("optional-dependencies", {}).get(extra, []) for extra in need.get("extra", [])]
        if name not in known:
            known.add(name)
            needed += packages[name].get("dependencies", [])
            yield name
        needed += [each for of_extra in of_extras for each in of_extra if each["name"] not in known]


def _describe_package(package: Mapping[str, Any], installed: Distribution) -> dict[str, Any]:
    place = f"pkg:pypi/{package['name']}@{package['version']}"
    files = [*([package["sdist"]] if "sdist" in package else []), *package.get("wheels", [])]
    return {
        "type": "library",
        "bom-ref": place,
        "name": package["name"],
        "version": package["version"],
        "purl": place,
        "licenses": _find_licenses(installed),
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"{place}?file_name={Path(file['url']).name}",
                "hashes": [_hash(file["hash"].removeprefix("sha256:"))],
            }
            for file in files
        ],
    }


def _find_licenses(installed: Distribution) -> list[dict[str, Any]]:
    """The licences that a package states: an expression, the classifiers, a name, or the first line of the text."""
    metadata = installed.metadata
    if expressions := metadata.get_all("License-Expression"):
        return [{"expression": expressions[0]}]
    named = [
        each.removeprefix(_CLASSIFIER) for each in metadata.get_all("Classifier") or [] if each.startswith(_CLASSIFIER)
    ]
    text = (metadata.get_all("License") or [""])[0] or _read_license(installed)
    text = text.strip().partition("\n")[0][:_LONGEST]
    return [{"license": {"name": name}} for name in named or ([text] if text else [])]


def _read_license(installed: Distribution) -> str:
    """The text of the licence, whose first line is usually its name."""
    names = (path for path in installed.files or [] if path.name.upper().startswith("LICENSE"))
    return next((path.read_text() for path in names), "")


def list_chart(chart: Path, image: str) -> dict[str, Any]:
    """The files of a packaged chart, and the image that it starts."""
    with tarfile.open(chart) as archive:
        contents = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        files = [
            {"type": "file", "name": name, "hashes": [_hash(sha256(content.read()).hexdigest())], **_LICENSE}
            for name, content in sorted(contents.items())
            if content is not None
        ]
    place, _, digest = image.partition("@")
    started = {
        "type": "container",
        "name": place,
        "version": digest,
        "purl": f"pkg:oci/{place.rpartition('/')[2]}@{digest}?repository_url={place}",
        "hashes": [_hash(digest.removeprefix("sha256:"))],
        **_LICENSE,
    }
    version = chart.name.removesuffix(".tgz").removeprefix("assay-")
    own = {
        "type": "application",
        "name": "assay",
        "version": version,
        "hashes": [_hash(sha256(chart.read_bytes()).hexdigest())],
    }
    return _document({**own, **_LICENSE}, [started, *files])


def _hash(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def _document(own: dict[str, Any], components: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
    }


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(arguments: list[str]) -> None:
    """Print the list."""
    match arguments:
        case ["package"]:
            installed = {_normalize(each.metadata["Name"]): each for each in distributions()}
            document = list_package(ROOT / "uv.lock", installed)
        case ["chart", chart, image]:
            document = list_chart(Path(chart), image)
        case _:
            sys.exit(__doc__)
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
