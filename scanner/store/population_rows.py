"""The objects that a page examined as one value for staging, and the digest of what is kept of an object.

Within the value every namespace, controller and set of labels is written once. Texts are made fit for any database on the
way in, as findings are: see `packing`.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from typing import Final, TypeVar

import orjson

from scanner.model.population import Controller, Examined, Pairs, Workload
from scanner.model.resource import Kind
from scanner.store.texts import clean

_LEVEL: Final = 1
_NONE: Final = -1

_Value = TypeVar("_Value")
_Texts = tuple[str, ...]


def packed(objects: Iterable[Examined]) -> bytes:
    """The bytes of the objects of one page, in their order; the kind is that of the page and not written."""
    namespaces: dict[str, int] = {}
    controllers: dict[Controller, int] = {}
    kept: dict[tuple[Pairs, Pairs], int] = {}
    rows = [
        (
            clean(each.name),
            clean(each.uid),
            each.template_hash and clean(each.template_hash),
            _place(namespaces, each.namespace),
            _NONE if each.controller is None else _place(controllers, each.controller),
            _place(kept, (each.labels, each.annotations)),
        )
        for each in objects
    ]
    shared = (
        [clean(namespace) for namespace in namespaces],
        [_clean(astuple(controller)) for controller in controllers],
        [[[_clean(pair) for pair in pairs] for pairs in both] for both in kept],
    )
    return zlib.compress(orjson.dumps([rows, *shared]), _LEVEL)


def unpacked(kind: Kind, data: bytes) -> Iterator[Examined]:
    """The objects that `packed` wrote, in their order, with their kind."""
    rows, namespaces, references, kept = orjson.loads(zlib.decompress(data))
    controllers = [*(Controller(*reference) for reference in references), None]
    pairs = [tuple(tuple((key, value) for key, value in pairs) for pairs in both) for both in kept]
    for name, uid, template_hash, namespace, controller, place in rows:
        labels, annotations = pairs[place]
        yield Examined(
            kind, namespaces[namespace], name, uid, controllers[controller], labels, annotations, template_hash
        )


def digest_of(workload: Workload, labels: Pairs, annotations: Pairs) -> bytes:
    """SHA-256, 32 bytes, of all that a row of the population has beside the identity of its object.

    Texts are those of `unpacked`.
    """
    top = workload.api_version, workload.kind, workload.namespace, workload.name, workload.derived
    return hashlib.sha256(orjson.dumps([top, labels, annotations])).digest()


def _place(places: dict[_Value, int], value: _Value) -> int:
    return places.setdefault(value, len(places))


def _clean(texts: Sequence[str]) -> _Texts:
    return tuple(map(clean, texts))
