"""`image.GetMetadata` with --allow-network: data that a registry gives without credentials."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from scanner.audit.redact import WITHHELD_ANY
from scanner.model.scans.tally import OutcomeName
from tests.policies.kyverno.made import pod, policy
from tests.policies.kyverno.serving import serving
from tests.policies.kyverno.test_network import scan_of

CONFIG = {"architecture": "amd64", "os": "linux", "config": {"User": "1000"}, "created": "2026-01-01T00:00:00Z"}


def digest(document: Any) -> str:
    """The digest of a document as the registry sends it."""
    return f"sha256:{hashlib.sha256(json.dumps(document).encode()).hexdigest()}"


MANIFEST = {
    "schemaVersion": 2,
    "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "config": {"digest": digest(CONFIG), "size": 100},
    "layers": [{"size": 7}, {"size": 8}],
}
INDEX = {
    "schemaVersion": 2,
    "mediaType": "application/vnd.oci.image.index.v1+json",
    "manifests": [
        {"digest": "sha256:other", "platform": {"os": "linux", "architecture": "arm64"}},
        {"digest": digest(MANIFEST), "platform": {"os": "linux", "architecture": "amd64"}},
    ],
}
DOCUMENTS = {
    "/v2/app/web/manifests/1.0": INDEX,
    "/v2/app/web/manifests/plain": MANIFEST,
    f"/v2/app/web/manifests/{digest(MANIFEST)}": MANIFEST,
    "/v2/app/web/manifests/arm": {**INDEX, "manifests": INDEX["manifests"][:1]},  # type: ignore[index]
}


@dataclass
class Registry:
    """A registry on this machine, with the paths of the requests."""

    host: str = ""
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A registry that requires an anonymous token, redirects to its blobs, and requires credentials for `secret/`."""
    fake_registry = Registry()

    def answer(request: BaseHTTPRequestHandler) -> None:
        fake_registry.asked.append(request.path)
        if request.path.startswith("/token?"):
            _answer(request, 200, {"token": "anonymous"})
        elif request.path == "/elsewhere":
            _answer(request, 200 if "Authorization" in request.headers else 500, CONFIG)
        elif request.headers.get("Authorization") != "Bearer anonymous" or request.path.startswith("/v2/secret/"):
            realm = f'Bearer realm="http://{fake_registry.host}/token",service="test"'
            _answer(request, 401, {}, ("WWW-Authenticate", realm))
        elif request.path.startswith("/v2/app/web/blobs/"):
            _answer(request, 307, {}, ("Location", "/elsewhere"))
        else:
            _answer(request, 200 if request.path in DOCUMENTS else 404, DOCUMENTS.get(request.path, {}))

    with serving(answer) as host:
        fake_registry.host = host
        yield fake_registry


def _answer(request: BaseHTTPRequestHandler, status: int, document: Any, *headers: tuple[str, str]) -> None:
    data = json.dumps(document).encode()
    request.send_response(status)
    for name, value in (*headers, ("Content-Length", str(len(data)))):
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(data)


@pytest.mark.parametrize(
    "expression",
    [
        "image.GetMetadata('HOST/app/web:1.0').config.config.User == '1000'",
        f"image.getMetadata('HOST/app/web:1.0').resolvedImage == 'HOST/app/web@{digest(INDEX)}'",
        f"image.GetMetadata('HOST/app/web:1.0').digest == '{digest(INDEX)}'",
        "image.GetMetadata('HOST/app/web:1.0').imageIndex.manifests.size() == 2",
        "image.GetMetadata('HOST/app/web:1.0').manifest.layers.map(l, l.size).sum() == 15.0",
        "image.GetMetadata('HOST/app/web:plain').imageIndex == null",
        f"image.GetMetadata('HOST/app/web@{digest(MANIFEST)}').tag == ''",
        "image.GetMetadata('HOST/app/web:1.0').registry == 'HOST' && image.GetMetadata('HOST/app/web:1.0').identifier == '1.0'",
    ],
)
def test_a_registry_returns_the_data_of_an_image(registry: Registry, expression: str) -> None:
    """The metadata are manifest, configuration and index for linux/amd64."""
    scan = scan_of(policy(expression.replace("HOST", registry.host)), pod())
    assert ([], 1) == (scan.messages, scan.counted(OutcomeName.PASSED))


def test_an_image_is_requested_once(registry: Registry) -> None:
    """Many objects with one image cause one request."""
    scan_of(policy(f"image.GetMetadata('{registry.host}/app/web:1.0').tag == '1.0'"), pod("one"), pod("two"))
    assert 1 == registry.asked.count("/token?service=test&scope=repository%3Aapp%2Fweb%3Apull")
    assert 1 == registry.asked.count("/elsewhere")


def test_what_wants_credentials_is_not_auditable(registry: Registry) -> None:
    """Kyverno may have credentials; a scan has none."""
    scan = scan_of(policy(f"image.GetMetadata('{registry.host}/secret/web:1.0').tag == '1.0'"), pod())
    assert 1 == scan.counted(OutcomeName.NOT_AUDITABLE)


@pytest.mark.parametrize(
    ("expected", "reference"),
    [
        ("failed to get image data: HOST/app/web: HTTP 404", "HOST/app/web:none"),
        ("failed to get image data: no child with platform linux/amd64 in index", "HOST/app/web:arm"),
        ("failed to get image data: 127.0.0.1: the connection was refused", "127.0.0.1:1/app/web:1.0"),
        (WITHHELD_ANY, "A B"),
    ],
)
def test_what_a_registry_does_not_have_is_an_error(registry: Registry, expected: str, reference: str) -> None:
    """A missing image is an error, as in Kyverno; a text that is no reference is not quoted."""
    text = f"image.GetMetadata('{reference.replace('HOST', registry.host)}').tag == '1.0'"
    (finding,) = scan_of(policy(text), pod()).findings
    assert expected.replace("HOST", registry.host) in finding.outcome.message


def test_without_permission_no_registry_is_requested(registry: Registry) -> None:
    """Without permission the check is not auditable, and the reason names the flag."""
    text = f"image.GetMetadata('{registry.host}/app/web:1.0').tag == '1.0'"
    scan = scan_of(policy(text), pod(), network=None)
    assert (1, []) == (scan.counted(OutcomeName.NOT_AUDITABLE), registry.asked)
