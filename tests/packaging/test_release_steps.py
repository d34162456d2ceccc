"""The shell steps of a release run as written, from the tag to the files of the release.

What the platform provides has stand-ins that write down how they were called: the actions that pass files on, registries, cosign and
gh. The job of the image is left out, because it needs docker and a registry, and so is the installation of the locked dependencies.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from scanner import __version__
from scanner.model.json import Json, as_text, dig
from scripts.changelog_section import section
from tests.deploy.programs import program
from tests.packaging.test_recipes import checkout, git
from tests.packaging.test_release import JOBS
from tests.packaging.test_wheel import LIMIT_SECONDS, OFFLINE, ROOT, UV

__all__ = ["checkout"]

IMAGE: Final = "registry.example.com/assay/kube-assay"
CHARTS: Final = "registry.example.com/assay/charts"
OF_IMAGE: Final = f"sha256:{'a' * 64}"
OF_CHART: Final = f"sha256:{'b' * 64}"
RECORD: Final = 'echo "$(basename "$0") $*" >>"$CALLS"'
STANDINS: Final = {
    "uv": f'#!/bin/sh\n{RECORD}\n[ "$1" = sync ] || exec "$UV" "$@"\n',
    "helm": f"""#!/bin/sh
{RECORD}
case "$1" in
  registry) cat >/dev/null ;;
  push) echo "Pushed: $3" && echo "Digest: {OF_CHART}" ;;
  *) exec "$HELM" "$@" ;;
esac
""",
    "docker": f"#!/bin/sh\n{RECORD}\ncat >/dev/null\n",
    "cosign": f'#!/bin/sh\n{RECORD}\n[ "$1" != sign-blob ] || echo signed >"$4"\n',
    "gh": f"#!/bin/sh\n{RECORD}\n",
}
VALUES: Final = {
    "vars.IMAGE": IMAGE,
    "vars.CHARTS": CHARTS,
    "needs.image.outputs.digest": OF_IMAGE,
    "steps.push.outputs.digest": OF_CHART,
}


@dataclass
class Release:
    """A clone in which jobs run, the calls of the stand-ins, and the files that jobs pass on."""

    folder: Path
    clone: Path

    @property
    def calls(self) -> list[str]:
        """The calls so far."""
        return (self.folder / "calls").read_text().splitlines()

    def run(self, job: str) -> None:
        """Run the steps of a job, but that which installs uv."""
        for step in JOBS[job]["steps"]:
            action = step.get("uses", "")
            if "/upload-artifact@" in action:
                self._upload(step["with"])
            elif "/download-artifact@" in action:
                self._download(step["with"])
            elif "run" in step and step["name"] != "Install uv":
                self._shell(step["run"], {**JOBS[job].get("env", {}), **step.get("env", {})})

    def _shell(self, script: str, variables: dict[str, str]) -> None:
        """As a runner does, whose shell ends at the first error."""
        given = {name: re.sub(r"\$\{\{ (\S+) \}\}", _value_of, value) for name, value in variables.items()}
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.clone,
            env={
                **os.environ,
                "PATH": f"{self.folder / 'standins'}{os.pathsep}{os.environ['PATH']}",
                "CALLS": str(self.folder / "calls"),
                "UV": str(UV),
                "HELM": str(program("helm")),
                "GITHUB_REF_NAME": f"v{__version__}",
                "GITHUB_SHA": self.commit,
                "GITHUB_OUTPUT": str(self.folder / "output"),
                **given,
            },
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        if ran.returncode and OFFLINE.search(ran.stderr):
            pytest.skip("no package index answers, so the package cannot be built; connect and test again")
        assert 0 == ran.returncode, script + ran.stdout + ran.stderr

    @property
    def commit(self) -> str:
        """The commit of the release."""
        return git("rev-parse", "HEAD", folder=self.clone).strip()

    def _upload(self, settings: dict[str, str]) -> None:
        """Keep a file, the content of a folder, or several paths as they are below the clone."""
        paths, kept = settings["path"].split(), self.folder / "artifacts" / settings["name"]
        for path in paths:
            source = self.clone / path
            target = kept if len(paths) == 1 and source.is_dir() else kept / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)

    def _download(self, settings: dict[str, Any]) -> None:
        """Bring what one name, or every name, has kept; a hidden file is not kept."""
        for kept in (self.folder / "artifacts").glob(settings.get("name", "*")):
            shutil.copytree(
                kept,
                self.clone / settings.get("path", "."),
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(".*"),
            )


def _value_of(expression: re.Match[str]) -> str:
    return VALUES.get(expression[1], "unknown")


@pytest.fixture(scope="module")
def release(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of this repository as it is, with the jobs in their order."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "standins").mkdir()
    for name, script in STANDINS.items():
        (folder / "standins" / name).write_text(script)
        (folder / "standins" / name).chmod(0o755)
    git("clone", "--quiet", checkout, folder / "clone", folder=folder)
    (folder / "clone" / ".venv").symlink_to(Path(sys.executable).parents[1])
    release = Release(folder, folder / "clone")
    for job in ("build", "chart", "release"):
        release.run(job)
    return release


def test_every_file_of_the_release_has_its_checksum(release: Release) -> None:
    """And is given to GitHub, with the section of the changelog as its notes."""
    files = release.clone / "files"
    listed = [line.split("  ") for line in (files / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, name in listed}
    assert sums == {name: hashlib.sha256((files / name).read_bytes()).hexdigest() for name in sums}
    assert {*sums, "SHA256SUMS", "SHA256SUMS.sigstore.json"} == {path.name for path in files.iterdir()}
    assert {
        f"kube_assay-{__version__}-py3-none-any.whl",
        f"kube_assay-{__version__}.tar.gz",
        f"assay-{__version__}.tgz",
        f"kube-assay-manifests-{__version__}.tar.gz",
        "kube-assay.cdx.json",
        "assay-chart.cdx.json",
        "image.txt",
    } == sums.keys()
    [call] = [call for call in release.calls if call.startswith("gh release create ")]
    assert {f"files/{path.name}" for path in files.iterdir()} == set(re.findall(r" (files/\S+)", call))
    assert section(__version__, (ROOT / "CHANGELOG.md").read_text()) == (release.clone / "notes.md").read_text().strip()


def test_the_wheel_has_the_commit_of_the_tag(release: Release) -> None:
    """It is built from the sdist."""
    [wheel] = (release.clone / "files").glob("*.whl")
    built: Json = yaml.safe_load(zipfile.ZipFile(wheel).read("scanner/build.json"))
    assert release.commit == dig(built, "commit")


def test_chart_and_manifests_name_the_image_by_its_digest(release: Release) -> None:
    """A user of the release needs no value and no kustomization of their own."""
    files = release.clone / "files"
    with tarfile.open(files / f"assay-{__version__}.tgz") as chart:
        values: Json = yaml.safe_load(_read(chart, "assay/values.yaml"))
    with tarfile.open(files / f"kube-assay-manifests-{__version__}.tar.gz") as manifests:
        fleet, base = (
            _read(manifests, "deploy/fleet.yaml"),
            _read(manifests, "deploy/kustomize/base/kustomization.yaml"),
        )
    assert (IMAGE, OF_IMAGE) == (dig(values, "image", "repository"), dig(values, "image", "digest"))
    assert f"&image {IMAGE}@{OF_IMAGE}" in fleet
    assert OF_IMAGE in base
    assert f"{IMAGE}@{OF_IMAGE}\n" == (files / "image.txt").read_text()


def test_the_pushed_chart_is_signed_by_its_digest(release: Release) -> None:
    """That which helm prints; a name alone could change."""
    signed = [call for call in release.calls if call.startswith("cosign")]
    assert f"cosign sign --yes {CHARTS}/assay@{OF_CHART}" in signed
    assert f"cosign attest --yes --type cyclonedx --predicate assay-chart.cdx.json {CHARTS}/assay@{OF_CHART}" in signed
    assert f"digest={OF_CHART}\n" == (release.folder / "output").read_text()


def _read(archive: tarfile.TarFile, name: str) -> str:
    """The text of a file in an archive."""
    file = archive.extractfile(name)
    assert file is not None
    return as_text(file.read().decode())
