"""The default pull policy of an image: Always for the tag `latest`, explicit or implied.

Mirrors `parsers.ParseImageName`, that is `reference.ParseNormalizedNamed` of distribution/reference and the digests of go-digest.
A text that is not an image reference has no tag.
"""

from __future__ import annotations

import re

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"{_HOST}/{_COMPONENT}(?:/{_COMPONENT})*(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?:@(?P<digest>[^@]+))?", re.ASCII
)
_DIGEST = re.compile("sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}")
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_REGISTRY = "docker.io"


def pull_policy(image: str) -> str:
    """The pull policy of an image: Always for the tag `latest`, else IfNotPresent."""
    return "Always" if _tag(image) == "latest" else "IfNotPresent"


def _tag(image: str) -> str:
    registry, rest = _split(image)
    path = rest.partition(":")[0]
    match = _REFERENCE.fullmatch(f"{registry}/{rest}")
    if match is None or path != path.lower() or _IDENTIFIER.fullmatch(image):
        return ""
    if match["digest"] and not _DIGEST.fullmatch(match["digest"]):
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


def _split(image: str) -> tuple[str, str]:
    """The registry and the rest of a reference (`splitDockerDomain`)."""
    first, slash, rest = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        first, rest = _REGISTRY, image
    return first, rest if first != _REGISTRY or "/" in rest else f"library/{rest}"
