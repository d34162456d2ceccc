"""Parses image references: registry, repository, tag, digest.

Mirrors Kyverno's image library over go-containerregistry's weak parsing: Docker Hub is `index.docker.io`, its official images are
in `library/`, and the first component is a registry if it has the form of a host. A digest hides the tag in releases before 1.19.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import ClassVar

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Run
from scanner.cel.types.type_system import Type, opaque
from scanner.cel.values.values import Opaque, Value
from scanner.model.release import Minor
from scanner.policies.kyverno.libraries.declared import Implementation
from scanner.policies.kyverno.releases import TAGS_OF_DIGESTS

IMAGE = opaque("kyverno.image")
_DOCKER_HUB = "index.docker.io"
_LATEST = "latest"
_REPOSITORY = re.compile(r"[a-z0-9_\-./]{2,255}")
_TAG = re.compile(r"[A-Za-z0-9_\-.]{1,128}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HOST = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?")


class Image(Opaque):
    """A parsed reference. One with a digest may have been written with a tag, which is no tag for registries."""

    __slots__ = ("digest", "registry", "repository", "tag", "written")
    TYPE: ClassVar[Type] = IMAGE
    GO_TYPE: ClassVar[str] = "image.Image"

    def __init__(self, registry: str, repository: str, tag: str, digest: str, written: str) -> None:
        self.registry = registry
        self.repository = repository
        self.tag = tag
        self.digest = digest
        self.written = written

    def __str__(self) -> str:
        """Return the reference as it was written."""
        return self.written

    @property
    def identifier(self) -> str:
        """Return the digest, or else the tag."""
        return self.digest or self.tag

    @property
    def written_tag(self) -> str:
        """Return the tag, also of a reference with a digest; empty if the reference has a digest alone."""
        if not self.digest:
            return self.tag
        before_digest = self.written.partition("@")[0]
        return _cut_tag(before_digest)[1]

    def equals(self, other: Opaque) -> bool:
        """Compare the references as they were written: upstream's parsed values contain them."""
        return isinstance(other, Image) and self.written == other.written

    def map_key(self) -> Hashable:
        """Return the reference as it was written."""
        return (Image, self.written)


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
    return place and Image(*place, tag or _LATEST, "", reference)


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
    return place and Image(*place, "", digest, reference)


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


def _identified(image: Image) -> str:
    tag = image.written_tag
    return f"{tag}@{image.digest}" if image.digest and tag else image.identifier


_RUNS: dict[str, Run] = {
    "string_to_image_deprecated": parse,
    "string_to_image": parse,
    "is_image_string": _is_image,
    "image_contains_digest": lambda image: bool(image.digest),
    "image_registry": lambda image: image.registry,
    "image_repository": lambda image: image.repository,
    "image_identifier": lambda image: image.identifier,
    "image_identifier_with_separator": _separated,
    "image_tag": lambda image: image.tag,
    "image_digest": lambda image: image.digest,
}
_TAGGED: dict[str, Run] = {"image_identifier": _identified, "image_tag": lambda image: image.written_tag}


def implementation(release: Minor) -> Implementation:
    """Return the functions as a release has them."""
    return Implementation({**_RUNS, **_TAGGED} if TAGS_OF_DIGESTS.holds(release) else _RUNS)
