"""`http.Get` and similar functions, `image.GetMetadata`, `random`: expressions that read data beyond the cluster.

Mirrors Kyverno's http, imagedata and random libraries. The `ClusterData` decides which requests are sent. Random texts would make
two scans of the same cluster differ: a check that depends on them is not auditable. In a namespaced policy Kyverno rejects
requests.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from scanner.cel.functions.declaration import ArgumentFlow
from scanner.cel.types.type_system import Type, opaque
from scanner.cel.values.values import Opaque, Value
from scanner.policies.kyverno.libraries.cluster_data import Call, ClusterData, Unavailable
from scanner.policies.kyverno.libraries.declared import Implementation
from scanner.policies.kyverno.libraries.documents import marshalled

HTTP = opaque("http.Context")
IMAGE_DATA = opaque("imagedata.Context")
_PLAIN = re.compile(r"(?:[^\\.^$*+?()[\]{}|]|\\[^A-Za-z0-9])*")


class Http(Opaque):
    """The value of `http`; `bundle` has the certificates that its own client trusts."""

    __slots__ = ("bundle", "cluster_data", "namespace")
    TYPE: ClassVar[Type] = HTTP
    GO_TYPE: ClassVar[str] = "http.Context"

    def __init__(self, cluster_data: ClusterData, namespace: str = "", bundle: str = "") -> None:
        self.cluster_data = cluster_data
        self.namespace = namespace
        self.bundle = bundle


class ImageData(Opaque):
    """The value of `image`."""

    __slots__ = ("cluster_data",)
    TYPE: ClassVar[Type] = IMAGE_DATA
    GO_TYPE: ClassVar[str] = "imagedata.Context"

    def __init__(self, cluster_data: ClusterData) -> None:
        self.cluster_data = cluster_data


def _client(http: Http, bundle: str) -> Http:
    return Http(http.cluster_data, http.namespace, bundle)


def _without_body(method: str) -> Callable[..., Value]:
    def send(http: Http, url: str, headers: Value = None) -> Value:
        return _sent(http, Call(method, url, _pairs(headers), bundle=http.bundle))

    return send


def _with_body(method: str) -> Callable[..., Value]:
    def send(http: Http, url: str, data: Value, headers: Value = None) -> Value:
        return _sent(http, Call(method, url, _pairs(headers), marshalled(data), http.bundle))

    return send


def _sent(http: Http, call: Call) -> Value:
    if http.namespace:
        raise Unavailable("it makes an HTTP request, which Kyverno allows no namespaced policy without a setting")
    return http.cluster_data.request(call)


def _pairs(headers: Value) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(headers.items())) if isinstance(headers, dict) else ()


def _metadata(data: ImageData, reference: str) -> Value:
    return data.cluster_data.image(reference)


def _random(pattern: str = "[0-9a-z]{8}") -> Value:
    if _PLAIN.fullmatch(pattern):
        return re.sub(r"\\(.)", r"\1", pattern)
    raise Unavailable("it uses a random text, which is another one each time")


_get = _without_body("GET")
_post = _with_body("POST")
REQUESTS = Implementation(
    {
        "http_get_string": _get,
        "http_get_string_headers": _get,
        "http_post_string_any": _post,
        "http_post_string_any_headers": _post,
    },
    flow=ArgumentFlow.READS,
)
OTHERS = Implementation(
    {
        "http_client_string": _client,
        "imagedata_get_string": _metadata,
        "random_string": _random,
        "random_string_default_expr": _random,
    }
)
