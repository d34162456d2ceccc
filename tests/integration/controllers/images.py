"""The images of the test kubelet: kube-assay alone, as the Dockerfile describes it, with the programs of this environment."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orjson

DOCKERFILE = Path(__file__).parents[3] / "Dockerfile"
NAME = "kube-assay"
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    """The defaults of a container: its command, its environment and its working directory."""

    entrypoint: tuple[str, ...]
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    folder: str


def is_known(reference: str) -> bool:
    """Whether a container names the image kube-assay, of any registry, tag and digest."""
    return reference.rpartition("/")[2].partition("@")[0].partition(":")[0] == NAME


@cache
def assay() -> Image:
    """The last stage of the Dockerfile; only PATH is that of this environment."""
    stage = re.split(r"^FROM ", DOCKERFILE.read_text(), flags=re.MULTILINE)[-1].replace("\\\n", " ")
    instructions = dict(re.findall(r"^(ENV|WORKDIR|ENTRYPOINT|CMD) +(.*)$", stage, flags=re.MULTILINE))
    variables = dict(assignment.split("=", 1) for assignment in shlex.split(instructions["ENV"]))
    return Image(
        entrypoint=tuple(orjson.loads(instructions["ENTRYPOINT"])),
        arguments=tuple(orjson.loads(instructions["CMD"])),
        variables={**variables, "PATH": f"{Path(sys.executable).parent}:{SYSTEM}"},
        folder=instructions["WORKDIR"],
    )
