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

from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import DYN, STRING, Type, map_of, opaque
from scanner.cel.values.values import Opaque, Value
from scanner.policies.kyverno.libraries.cluster_data import Call, ClusterData, Unavailable
from scanner.policies.kyverno.libraries.documents import marshalled

HTTP = opaque("http.Context")
IMAGE_DATA = opaque("imagedata.Context")
_HEADERS = map_of(STRING, STRING)
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


def _verb(name: str, *data: Type) -> tuple[Function, Function]:
    send = (_with_body if data else _without_body)(name.upper())
    overloads = (
        declare_member(f"http_{name.lower()}_string", (HTTP, STRING, *data), DYN, send),
        declare_member(f"http_{name.lower()}_string_headers", (HTTP, STRING, *data, _HEADERS), DYN, send),
    )
    flow = ArgumentFlow.READS
    return Function(name, overloads, cost=ONE, flow=flow), Function(name.lower(), overloads, cost=ONE, flow=flow)


_CLIENT = (declare_member("http_client_string", (HTTP, STRING), HTTP, _client),)
_METADATA = (declare_member("get_image_metadata_string", (IMAGE_DATA, STRING), map_of(STRING, DYN), _metadata),)
_RANDOM = (
    Overload("random_string", (STRING,), STRING, _random),
    Overload("random_default", (), STRING, _random),
)
LIBRARY = Library(
    "kyverno.network",
    (
        *_verb("Get"),
        *_verb("Post", DYN),
        *_verb("Put", DYN),
        Function("Client", _CLIENT, cost=ONE),
        Function("client", _CLIENT, cost=ONE),
        Function("GetMetadata", _METADATA, cost=ONE),
        Function("getMetadata", _METADATA, cost=ONE),
        Function("random", _RANDOM, cost=ONE),
        Function("random.random", _RANDOM, cost=ONE),
    ),
)
