"""Recognises files of other tools among manifests: no API server stores them, so no policy can match them.

Source of truth: the file names and forms of kustomize, Helm, the Kyverno CLI, Chainsaw, KUTTL, gator and Artifact Hub. A document
counts as a file of another tool only by its own content or by a file beside it; a document that may be a manifest never does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from scanner.cluster.files.streams import read_pieces
from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from scanner.model.scans.out_of_scope import Unneeded

SUITES: Final = ("kyverno-test.yaml", "kyverno-test.yml", "assay-test.yaml", "assay-test.yml")
"""The names of test suites that `assay test` reads."""

_KUSTOMIZATIONS: Final = frozenset({"kustomization.yaml", "kustomization.yml"})
_NAMES: Final = {
    **dict.fromkeys(_KUSTOMIZATIONS, Unneeded.KUSTOMIZATION),
    **dict.fromkeys(SUITES, Unneeded.TEST_SUITE),
    "requirements.yaml": Unneeded.HELM_CHART,
    **dict.fromkeys(("artifacthub-pkg.yml", "artifacthub-pkg.yaml"), Unneeded.PACKAGE_METADATA),
    **dict.fromkeys(("artifacthub-repo.yml", "artifacthub-repo.yaml"), Unneeded.PACKAGE_METADATA),
    **dict.fromkeys(("package.json", "package-lock.json", "composer.json"), Unneeded.PACKAGE_METADATA),
}
"""The tools that read files of some names, if their documents have neither apiVersion nor kind."""
_VALUES: Final = re.compile(r"(?:.*[-._])?values(?:[-._].*)?\.(?:ya?ml|json)")
_GROUPS: Final = {
    "kustomize.config.k8s.io": Unneeded.KUSTOMIZATION,
    "cli.kyverno.io": Unneeded.TEST_SUITE,
    "chainsaw.kyverno.io": Unneeded.TEST_SUITE,
    "kuttl.dev": Unneeded.TEST_SUITE,
    "test.gatekeeper.sh": Unneeded.TEST_SUITE,
}
"""The groups of documents that tools read from files, and that no API server serves."""
_KUSTOMIZE_PLUGIN: Final = "builtin"
"""The apiVersion of the configuration of kustomize's own plugins."""
_MANIFEST_FIELDS: Final = frozenset({"kind", "metadata", "spec"})
"""The fields of manifests in lower case: a document with one of them may be a manifest with a typing error."""
_TEMPLATE_ACTION: Final = b"{{"

_WHY: Final = {
    Unneeded.KUSTOMIZATION: "kustomize reads this file: use the output of `kustomize build` to evaluate what it makes",
    Unneeded.KUSTOMIZE_INPUT: "a kustomization names this file as a patch or as data: use the output of `kustomize build`",
    Unneeded.HELM_CHART: "Helm reads this file: use the output of `helm template` to evaluate the objects of the chart",
    Unneeded.HELM_VALUES: "these are values of a Helm chart: use the output of `helm template` to evaluate its objects",
    Unneeded.HELM_TEMPLATE: "this is a template of a Helm chart: use the output of `helm template` to evaluate its objects",
    Unneeded.TEST_SUITE: "this is a test suite of policies: run the suites of Kyverno and of Assay with `assay test`",
    Unneeded.PACKAGE_METADATA: "this file describes a package",
    Unneeded.NO_MANIFEST: "this is no manifest: it has no kind, no metadata and no spec",
}


class OtherToolFile(NamedTuple):
    """The kind of a file of another tool, and a sentence for users without its full stop."""

    kind: Unneeded
    why: str


def recognise_document(file: Path, value: Json) -> OtherToolFile | None:
    """The tool whose file a document is; None for a document that may be a manifest."""
    kind = _find_kind(file, value)
    return OtherToolFile(kind, _WHY[kind]) if kind else None


def recognise_file(file: Path, data: bytes) -> OtherToolFile | None:
    """The tool whose file this is as a whole: a template of a chart. None for a file without an action of a template."""
    if _TEMPLATE_ACTION in data and _is_in_templates(file):
        return OtherToolFile(Unneeded.HELM_TEMPLATE, _WHY[Unneeded.HELM_TEMPLATE])
    return None


def suggest_rendering(data: bytes) -> str:
    """The end of a sentence about a file that is no YAML, because it may be a template; empty for a file without an action of one."""
    return (
        "; it has {{, as templates have: give what the tool makes of it, such as `helm template`"
        if _TEMPLATE_ACTION in data
        else ""
    )


def find_kustomize_inputs(files: Iterable[Path]) -> dict[str, OtherToolFile]:
    """The files that kustomizations among some files name as patches or as data, by absolute path.

    A file that any of the kustomizations names as a resource is none of them.
    """
    inputs: set[str] = set()
    resources: set[str] = set()
    for file in files:
        if file.name in _KUSTOMIZATIONS:
            for body in _read_bodies(file):
                inputs.update(_resolve_name(file, name) for name in _list_named_inputs(body))
                resources.update(_resolve_name(file, as_text(name)) for name in as_list(body.get("resources")))
    input_file = OtherToolFile(Unneeded.KUSTOMIZE_INPUT, _WHY[Unneeded.KUSTOMIZE_INPUT])
    return dict.fromkeys(sorted(inputs - resources), input_file)


def make_absolute(file: Path) -> str:
    """The absolute path of a file, without following links."""
    return os.path.abspath(file)  # noqa: PTH100 - absolute() keeps `..`


def _find_kind(file: Path, value: Json) -> Unneeded | None:
    if isinstance(value, dict):
        return _find_kind_of_object(file, value)
    if not isinstance(value, list) or any(_may_be_manifest(item) for item in value):
        return None
    is_patch = bool(value) and all(dig(item, "op") and dig(item, "path") for item in value)
    return Unneeded.KUSTOMIZE_INPUT if is_patch else Unneeded.NO_MANIFEST


def _find_kind_of_object(file: Path, body: JsonObject) -> Unneeded | None:
    group, slash, _ = as_text(body.get("apiVersion")).partition("/")
    if slash and (kind := _GROUPS.get(group)):
        return kind
    if body.get("apiVersion") == _KUSTOMIZE_PLUGIN:
        return Unneeded.KUSTOMIZE_INPUT
    if body.get("apiVersion") is None and _VALUES.fullmatch(file.name) and _has_chart(file.parent):
        return Unneeded.HELM_VALUES
    if body.get("kind") is not None:
        return None
    if file.name == "Chart.yaml" or (file.name == "index.yaml" and isinstance(body.get("entries"), dict)):
        return Unneeded.HELM_CHART
    if body.get("apiVersion") is None:
        if kind_by_name := _NAMES.get(file.name):
            return kind_by_name
        if _VALUES.fullmatch(file.name):
            return Unneeded.HELM_VALUES
    return None if _may_be_manifest(body) else Unneeded.NO_MANIFEST


def _may_be_manifest(value: Json) -> bool:
    return isinstance(value, dict) and any(key.lower() in _MANIFEST_FIELDS for key in value)


def _is_in_templates(file: Path) -> bool:
    """Return whether a file is below the folder `templates` of a chart."""
    path = Path(make_absolute(file))
    folders = zip(path.parents, path.parents[1:], strict=False)
    return any(folder.name == "templates" and _has_chart(above) for folder, above in folders)


def _has_chart(folder: Path) -> bool:
    return os.path.lexists(folder / "Chart.yaml")


def _read_bodies(file: Path) -> Iterator[JsonObject]:
    with suppress(OSError):
        yield from (piece.value for piece in read_pieces(file.read_bytes()) if isinstance(piece.value, dict))


def _list_named_inputs(body: JsonObject) -> Iterator[str]:
    """The paths of the patches and of the data in a kustomization."""
    for field in ("patches", "patchesJson6902", "replacements"):
        yield from (as_text(dig(item, "path")) for item in as_list(body.get(field)))
    for field in ("patchesStrategicMerge", "configurations"):
        yield from (as_text(item) for item in as_list(body.get(field)))
    yield from (as_text(dig(chart, "valuesFile")) for chart in as_list(body.get("helmCharts")))
    for generator in (*as_list(body.get("configMapGenerator")), *as_list(body.get("secretGenerator"))):
        for item in (*as_list(dig(generator, "files")), *as_list(dig(generator, "envs"))):
            yield as_text(item).rpartition("=")[2]


def _resolve_name(kustomization: Path, name: str) -> str:
    """The absolute path of a file that a kustomization names; a text with several lines is an inline patch."""
    return make_absolute(kustomization.parent / name) if name and "\n" not in name and "\0" not in name else ""
