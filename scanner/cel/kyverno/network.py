"""`http.Get` and its like, `image.GetMetadata`, `random`: what no scan can answer, declared so that policies compile.

Mirrors the signatures of Kyverno's http, imagedata and random libraries. Requests to the network are not made, and random
texts would make two scans of the same cluster differ: what depends on them is not auditable. A registry's answer can be
given through the surroundings.
"""

from __future__ import annotations

import re
from typing import ClassVar

from scanner.cel.functions.declaration import Function, Library, Overload, member
from scanner.cel.kyverno.ports import Surroundings, Unavailable
from scanner.cel.type_system import DYN, STRING, Type, map_of, opaque
from scanner.cel.values import Opaque, Value

HTTP = opaque("http.Context")
IMAGE_DATA = opaque("imagedata.Context")
_HEADERS = map_of(STRING, STRING)
_PLAIN = re.compile(r"(?:[^\\.^$*+?()[\]{}|]|\\[^A-Za-z0-9])*")


class Http(Opaque):
    """The value of `http`."""

    __slots__ = ()
    TYPE: ClassVar[Type] = HTTP
    GO_TYPE: ClassVar[str] = "http.Context"


class ImageData(Opaque):
    """The value of `image`."""

    __slots__ = ("surroundings",)
    TYPE: ClassVar[Type] = IMAGE_DATA
    GO_TYPE: ClassVar[str] = "imagedata.Context"

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings


def _request(*_arguments: Value) -> Value:
    raise Unavailable("it makes an HTTP request, and a scan asks no network")


def _metadata(data: ImageData, reference: str) -> Value:
    return data.surroundings.image(reference)


def _random(pattern: str = "[0-9a-z]{8}") -> Value:
    if _PLAIN.fullmatch(pattern):
        return re.sub(r"\\(.)", r"\1", pattern)
    raise Unavailable("it uses a random text, which is another one each time")


def _verb(name: str, *data: Type) -> tuple[Function, Function]:
    overloads = (
        member(f"http_{name.lower()}_string", (HTTP, STRING, *data), DYN, _request),
        member(f"http_{name.lower()}_string_headers", (HTTP, STRING, *data, _HEADERS), DYN, _request),
    )
    return Function(name, overloads), Function(name.lower(), overloads)


_CLIENT = (member("http_client_string", (HTTP, STRING), HTTP, lambda http, _bundle: http),)
_METADATA = (member("get_image_metadata_string", (IMAGE_DATA, STRING), map_of(STRING, DYN), _metadata),)
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
        Function("Client", _CLIENT),
        Function("client", _CLIENT),
        Function("GetMetadata", _METADATA),
        Function("getMetadata", _METADATA),
        Function("random", _RANDOM),
        Function("random.random", _RANDOM),
    ),
)
