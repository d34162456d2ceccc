"""Reads the manifest and configuration of an image from a registry.

Mirrors Kyverno's image data loader over go-containerregistry: an index is resolved for linux/amd64, Docker Hub gets an
anonymous token, and a registry on this machine uses HTTP. No credentials are used: an image that needs them is unavailable.

Source of truth: the OCI distribution specification 1.1, and the token authentication of Docker's registry.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

import orjson

from scanner.cel import EvaluationError, Value
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.policies.kyverno.libraries import Unavailable
from scanner.policies.kyverno.libraries.images import Image, parse
from scanner.policies.kyverno.request import with_doubles

_FAILED: Final = "failed to get image data"
_INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
_HERE: Final = re.compile(r"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?")
_OK: Final = 200
_REFUSED: Final = (401, 403)


class OutsideResponse(NamedTuple):
    """A response: status, headers with names in lower case, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Get = Callable[[str, Mapping[str, str]], OutsideResponse]
"""Requests a URL with headers. Raises EvaluationError without a response."""


class Registries:
    """Reads image data, for each image once."""

    def __init__(self, get: Get) -> None:
        """Send no request yet."""
        self._get = get
        self._tokens: dict[tuple[str, str], str] = {}

    def describe(self, reference: str) -> Value:
        """The result of `image.GetMetadata`: reference, registry, repository, digest, manifest and configuration, as a map.

        Raises EvaluationError, and Unavailable where credentials are needed.
        """
        image = parse(reference)
        if not isinstance(image, Image):
            raise EvaluationError(f"{_FAILED}: could not parse reference: {reference}")
        first, digest = self._get_manifest(image, image.identifier)
        index = first if dig(first, "mediaType") in _INDEXES or "manifests" in first else None
        manifest = first if index is None else self._get_manifest(image, _find_linux_digest(index))[0]
        config = self._get_blob(image, as_text(dig(manifest, "config", "digest")))
        image_data: dict[str, Json] = {
            "image": reference,
            "resolvedImage": f"{image.registry}/{image.repository}@{digest}",
            "registry": image.registry,
            "repository": image.repository,
            "identifier": image.identifier,
            "tag": image.tag,
            "digest": digest,
            "imageIndex": index,
            "manifest": manifest,
            "config": config,
        }
        return with_doubles(image_data)

    def _get_manifest(self, image: Image, identifier: str) -> tuple[JsonObject, str]:
        response = self._get_content(image, f"manifests/{identifier}", ", ".join((*_INDEXES, *_MANIFESTS)))
        digest = response.headers.get("docker-content-digest") or f"sha256:{hashlib.sha256(response.body).hexdigest()}"
        return _decode_document(response.body), digest

    def _get_blob(self, image: Image, digest: str) -> JsonObject:
        return _decode_document(self._get_content(image, f"blobs/{digest}", "*/*").body)

    def _get_content(self, image: Image, what: str, accept: str) -> OutsideResponse:
        scheme = "http" if _HERE.fullmatch(image.registry) else "https"
        url = f"{scheme}://{image.registry}/v2/{image.repository}/{what}"
        response = self._get(url, self._make_headers(image, accept))
        if response.status in _REFUSED and self._fetch_token(image, response.headers.get("www-authenticate", "")):
            response = self._get(url, self._make_headers(image, accept))
        if response.status in _REFUSED:
            raise Unavailable(f"it asks the registry {image.registry}, which requires credentials, and a scan has none")
        if response.status != _OK:
            raise EvaluationError(f"{_FAILED}: {image.registry}/{image.repository}: HTTP {response.status}")
        return response

    def _make_headers(self, image: Image, accept: str) -> dict[str, str]:
        token = self._tokens.get((image.registry, image.repository))
        return {"Accept": accept, **({"Authorization": f"Bearer {token}"} if token else {})}

    def _fetch_token(self, image: Image, challenge: str) -> bool:
        """Request an anonymous token; False if the registry gives none."""
        parameters = dict(_PARAMETER.findall(challenge)) if challenge.lower().startswith("bearer ") else {}
        realm = parameters.get("realm", "")
        if not realm:
            return False
        query = {"service": parameters.get("service", ""), "scope": f"repository:{image.repository}:pull"}
        response = self._get(f"{realm}?{urlencode(query)}", {})
        document = _decode_document(response.body) if response.status == _OK else {}
        token = as_text(document.get("token")) or as_text(document.get("access_token"))
        self._tokens[image.registry, image.repository] = token
        return bool(token)


def _find_linux_digest(index: JsonObject) -> str:
    """The digest of the image for linux/amd64, the default of go-containerregistry."""
    for manifest in as_list(index.get("manifests")):
        if (dig(manifest, "platform", "os"), dig(manifest, "platform", "architecture")) == ("linux", "amd64"):
            return as_text(dig(manifest, "digest"))
    raise EvaluationError(f"{_FAILED}: no child with platform linux/amd64 in index")


def _decode_document(body: bytes) -> JsonObject:
    try:
        return as_object(orjson.loads(body))
    except ValueError:
        raise EvaluationError(f"{_FAILED}: the registry's response is no JSON") from None
