"""Kinds without a server: the shipped table of built-in kinds, and CustomResourceDefinitions in files.

Source of truth: the discovery documents of a 1.36 server (`kinds.json`) and the served versions of `apiextensions.k8s.io/v1`
definitions, ordered as apimachinery orders versions: stable before beta before alpha, higher numbers first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Final

import orjson
from msgspec import Struct

from scanner.model.json import JsonObject, as_list, as_text, dig
from scanner.model.resource import Kind

_VERSION: Final = re.compile(r"v([0-9]{1,18})(?:(alpha|beta)([0-9]{1,18}))?")
_STABILITY: Final = {"alpha": 0, "beta": 1, None: 2}


class BrokenDefinition(ValueError):
    """A CustomResourceDefinition that defines no kind; the message names the field."""


class Definition(Struct, frozen=True):
    """The served kinds of one CustomResourceDefinition, and whether its versions differ in apiVersion alone."""

    kinds: tuple[Kind, ...]
    relabels: bool


@cache
def builtin_kinds() -> tuple[Kind, ...]:
    """The built-in kinds of Kubernetes 1.36, a group's preferred version first."""
    table = orjson.loads(resources.files("scanner.cluster").joinpath("kinds.json").read_bytes())
    return tuple(Kind(*row) for row in table["kinds"])


@cache
def builtin_version() -> str:
    """The Kubernetes version of the table, e.g. `v1.36`."""
    table = orjson.loads(resources.files("scanner.cluster").joinpath("kinds.json").read_bytes())
    return str(table["kubernetes"])


def is_definition(body: JsonObject) -> bool:
    """Return whether a document is a CustomResourceDefinition of the one version that is still served."""
    return body.get("apiVersion") == "apiextensions.k8s.io/v1" and body.get("kind") == "CustomResourceDefinition"


def read_definition(body: JsonObject) -> Definition:
    """The served kinds of a CustomResourceDefinition, the preferred version first. Raises BrokenDefinition.

    Mirrors `version.CompareKubeAwareVersionStrings` for the order of versions.
    """
    group = _get_required(body, "spec", "group")
    kind = _get_required(body, "spec", "names", "kind")
    plural = _get_required(body, "spec", "names", "plural")
    scope = _get_required(body, "spec", "scope")
    if scope not in ("Namespaced", "Cluster"):
        raise BrokenDefinition(f'spec.scope: Unsupported value: "{scope}": write Namespaced or Cluster')
    served = [
        as_text(dig(version, "name"))
        for version in as_list(dig(body, "spec", "versions"))
        if dig(version, "served") is True and as_text(dig(version, "name"))
    ]
    if not served:
        raise BrokenDefinition("spec.versions: Required value: no version of it is served")
    versions = sorted(set(served), key=rank_version)
    kinds = tuple(Kind(group, version, kind, plural, scope == "Namespaced") for version in versions)
    return Definition(kinds, relabels=dig(body, "spec", "conversion", "strategy") in (None, "None"))


def sort_by_registration(kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    """Custom kinds in the order of discovery: by group, and within it by version, the preferred first."""
    return tuple(sorted(set(kinds), key=lambda kind: (kind.group, rank_version(kind.version), kind.plural)))


def rank_version(version: str) -> tuple[int, int, int, str]:
    """A key that sorts the preferred version first; names of any other form come last, in the order of the alphabet.

    Mirrors `CompareKubeAwareVersionStrings` of `apimachinery/pkg/version`.
    """
    match = _VERSION.fullmatch(version)
    if not match:
        return (1, 0, 0, version)
    return (-_STABILITY[match[2]], -int(match[1]), -int(match[3] or 0), "")


def _get_required(body: JsonObject, *path: str) -> str:
    value = as_text(dig(body, *path))
    if not value:
        raise BrokenDefinition(f"{'.'.join(path)}: Required value")
    return value
