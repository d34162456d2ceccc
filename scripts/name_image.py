"""Write the place of the image into the manifests of deploy/: `python3 scripts/name_image.py REPOSITORY [DIGEST]`.

The workflow of a release runs it before it packages the chart, so that the published manifests need no other value.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

DEPLOY = Path(__file__).parents[1] / "deploy"
NAME = "kube-assay"


def name_image(deploy: Path, repository: str, digest: str = "") -> None:
    """Name the image in the values of the chart, in the base of kustomize and in the file of the fleet."""
    _replace(deploy / "chart" / "values.yaml", rf"^  repository: {NAME}$", f"  repository: {repository}")
    _replace(
        deploy / "chart" / "files" / "defaults.yaml",
        rf'^image.repository: "{NAME}"$',
        f'image.repository: "{repository}"',
    )
    named = f"    newName: {repository}\n"
    if digest:
        _replace(deploy / "chart" / "values.yaml", r'^  digest: ""$', f"  digest: {digest}")
        _replace(deploy / "chart" / "files" / "defaults.yaml", r'^image.digest: ""$', f'image.digest: "{digest}"')
        _replace(
            deploy / "kustomize" / "base" / "kustomization.yaml", r"^    newTag: .*$", f"{named}    digest: {digest}"
        )
        _replace(deploy / "fleet.yaml", rf"&image {NAME}:.*$", f"&image {repository}@{digest}")
        return
    _replace(deploy / "kustomize" / "base" / "kustomization.yaml", r"^(    newTag: .*)$", rf"{named}\1")
    _replace(deploy / "fleet.yaml", rf"&image {NAME}:", f"&image {repository}:")


def _replace(path: Path, pattern: str, text: str) -> None:
    """Replace the one line of a file that matches. Exits with an error if there is no such line, or another one."""
    changed, times = re.subn(pattern, text, path.read_text(), flags=re.MULTILINE)
    if times != 1:
        sys.exit(f"{path} has {times} lines that match {pattern}, instead of one")
    path.write_text(changed)


if __name__ == "__main__":
    name_image(DEPLOY, *sys.argv[1:])
