"""Parses image references: registry, repository, tag, digest.

Mirrors Kyverno's image library over go-containerregistry's weak parsing: Docker Hub is `index.docker.io`, its official images are
in `library/`, a digest hides the tag, and the first component is a registry if it has the form of a host.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import ClassVar

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import BOOL, STRING, Type, opaque
from scanner.cel.values.values import Opaque, Value

IMAGE = opaque("kyverno.Image")
_DOCKER_HUB = "index.docker.io"
_LATEST = "latest"
_REPOSITORY = re.compile(r"[a-z0-9_\-./]{2,255}")
_TAG = re.compile(r"[A-Za-z0-9_\-.]{1,128}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HOST = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?")


class Image(Opaque):
    """A parsed reference: either the tag or the digest is empty."""

    __slots__ = ("digest", "registry", "repository", "tag")
    TYPE: ClassVar[Type] = IMAGE
    GO_TYPE: ClassVar[str] = "image.Image"

    def __init__(self, registry: str, repository: str, tag: str, digest: str) -> None:
        self.registry = registry
        self.repository = repository
        self.tag = tag
        self.digest = digest

    @property
    def identifier(self) -> str:
        """Return the digest, or else the tag."""
        return self.digest or self.tag

    def equals(self, other: Opaque) -> bool:
        """Compare the parsed parts."""
        return isinstance(other, Image) and self.map_key() == other.map_key()

    def map_key(self) -> Hashable:
        """Return all the parts."""
        return (self.registry, self.repository, self.tag, self.digest)


def parse(reference: str) -> Value:
    """Return the image of a reference. Raises EvaluationError."""
    image = _tagged(reference) or _digested(reference)
    if image is None:
        raise EvaluationError(f"could not parse reference: {reference}")
    return image


def _tagged(reference: str) -> Image | None:
    base, tag = _cut_tag(reference)
    if base is None or (tag and not _TAG.fullmatch(tag)):
        return None
    place = _place(base)
    return place and Image(*place, tag or _LATEST, "")


def _cut_tag(reference: str) -> tuple[str | None, str]:
    """Return the text before the tag, and the tag; a colon before a slash belongs to a port."""
    before, colon, tag = reference.rpartition(":")
    if not colon or "/" in tag:
        return reference, ""
    return (before, tag) if tag else (None, "")


def _digested(reference: str) -> Image | None:
    base, at, digest = reference.partition("@")
    if not at or not _DIGEST.fullmatch(digest):
        return None
    untagged, tag = _cut_tag(base)
    if tag and untagged is not None and _TAG.fullmatch(tag) and _place(untagged):
        base = untagged
    place = _place(base)
    return place and Image(*place, "", digest)


def _place(name: str) -> tuple[str, str] | None:
    """Return registry and repository, or None if a name is not valid."""
    first, slash, rest = name.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, repository = (first, rest) if is_host else ("", name)
    if not _REPOSITORY.fullmatch(repository) or not _HOST.fullmatch(registry):
        return None
    registry = _DOCKER_HUB if registry in ("", "docker.io") else registry
    implied = registry == _DOCKER_HUB and "/" not in repository
    return registry, f"library/{repository}" if implied else repository


def _is_image(reference: str) -> bool:
    return (_tagged(reference) or _digested(reference)) is not None


def _separated(image: Image) -> str:
    return f"@{image.digest}" if image.digest else f":{image.tag}"


LIBRARY = Library(
    "kyverno.image",
    (
        Function("image", (Overload("string_to_image_deprecated", (STRING,), IMAGE, parse),), cost=ONE),
        Function("parseImageReference", (Overload("string_to_image", (STRING,), IMAGE, parse),), cost=ONE),
        Function("isImage", (Overload("is_image_string", (STRING,), BOOL, _is_image),), cost=ONE),
        Function(
            "registry", (declare_member("image_registry", (IMAGE,), STRING, lambda image: image.registry),), cost=ONE
        ),
        Function(
            "repository",
            (declare_member("image_repository", (IMAGE,), STRING, lambda image: image.repository),),
            cost=ONE,
        ),
        Function(
            "identifier",
            (declare_member("image_identifier", (IMAGE,), STRING, lambda image: image.identifier),),
            cost=ONE,
        ),
        Function(
            "identifierWithSeparator",
            (declare_member("image_identifier_separated", (IMAGE,), STRING, _separated),),
            cost=ONE,
        ),
        Function("tag", (declare_member("image_tag", (IMAGE,), STRING, lambda image: image.tag),), cost=ONE),
        Function("digest", (declare_member("image_digest", (IMAGE,), STRING, lambda image: image.digest),), cost=ONE),
        Function(
            "containsDigest",
            (declare_member("image_contains_digest", (IMAGE,), BOOL, lambda image: bool(image.digest)),),
            cost=ONE,
        ),
    ),
)
