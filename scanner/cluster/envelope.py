"""The metadata of a page of a list, and whether its items can be those of the requested list.

A status of 200 is not enough: a proxy, a cache or a failing API server can return another list, a part of one, or none.
A finding is resolved because no page has its object, so every page must be the requested one.

Source of truth: the API conventions ("Lists and simple kinds", "Metadata") and GetList of apiserver's etcd3 storage: every list
names its kind, its apiVersion and the resource version of its moment; objects have a name and, where their kind is namespaced,
a namespace. Lists of built-in kinds leave apiVersion and kind out of the items.

A metadata-only list (`asPartialObjectMetadataList` of apiserver's handlers) and its items are of the kinds of `meta.k8s.io` and
do not name the kind of the objects: that such a page has objects of another kind cannot be recognised. Nothing else identifies the
kind: the API sets no `selfLink` since 1.20, and `managedFields` name the apiVersion of each writer, which after a move between groups
is another one. Such a page gives no object a wrong workload, because owner references name UIDs, which other objects do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from scanner.cel.stack import with_room
from scanner.model.resource import METADATA_ONLY, Kind

QUOTED: Final = 100
"""The most characters of a text of the server in a message."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """The metadata of a page. `token` is for the request of the next page; `remaining` is None if the page has no such number.

    `names` are those of the objects, each after its namespace. `faults` are errors in the items, each as the end of a sentence
    about the page; `stray` is the namespace of an item that is not in the requested namespace.
    """

    api_version: str
    kind: str
    resource_version: str
    token: str
    remaining: int | None
    count: int
    faults: tuple[str, ...]
    names: tuple[str, ...] = ()
    stray: str = ""

    @property
    def is_metadata_only(self) -> bool:
        """Return whether the list has only the metadata of its objects."""
        return _is_metadata_only(self.api_version, self.kind)


class _ListMetadata(msgspec.Struct):
    version: str | None = msgspec.field(default=None, name="resourceVersion")
    token: str | None = msgspec.field(default=None, name="continue")
    remaining: int | None = msgspec.field(default=None, name="remainingItemCount")


class _ObjectMetadata(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None


class _Object(msgspec.Struct):
    metadata: _ObjectMetadata
    version: str | None = msgspec.field(default=None, name="apiVersion")
    kind: str | None = None


class _List(msgspec.Struct):
    metadata: _ListMetadata
    items: list[_Object] | None
    version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""


class _Unreadable(msgspec.Struct):
    """A list with items that are no objects."""

    metadata: _ListMetadata
    items: list[msgspec.Raw] | None
    version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""


_READER = msgspec.json.Decoder(_List)
_COUNTER = msgspec.json.Decoder(_Unreadable)


def envelope(
    data: bytes, kind: Kind, namespace: str = "", quoted: Callable[[str], str] = lambda text: text[:QUOTED]
) -> Envelope | None:
    """The metadata of a page, read as a list of a kind in a namespace or in all; None for a body that is no list in JSON.

    `data` is the body of the response, `quoted` makes of its texts what messages may have.
    """
    try:
        read = with_room(lambda: _READER.decode(data))
    except msgspec.ValidationError:
        return _unreadable(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    items = read.items or []
    stray = next((outside for item in items if (outside := item.metadata.namespace) not in (None, "", namespace)), None)
    names = tuple(f"{item.metadata.namespace or ''}/{item.metadata.name}" for item in items)
    page = _envelope(read, len(items), tuple(_faults(items, names, kind, _item_kind(read, kind), quoted)))
    return replace(page, names=names, stray=stray or "" if namespace else "")


def _unreadable(data: bytes) -> Envelope | None:
    try:
        read = with_room(lambda: _COUNTER.decode(data))
    except (msgspec.MsgspecError, RecursionError):
        return None
    return _envelope(read, len(read.items or ()), ("has items that are no Kubernetes objects",))


def _envelope(read: _List | _Unreadable, count: int, faults: tuple[str, ...]) -> Envelope:
    metadata = read.metadata
    return Envelope(
        read.version, read.kind, metadata.version or "", metadata.token or "", metadata.remaining, count, faults
    )


def _is_metadata_only(api_version: str, kind: str) -> bool:
    return (api_version, kind) == (METADATA_ONLY[0], f"{METADATA_ONLY[1]}List")


def _item_kind(read: _List, kind: Kind) -> tuple[str, str]:
    """The apiVersion and the kind of the items of a list."""
    return METADATA_ONLY if _is_metadata_only(read.version, read.kind) else (kind.api_version, kind.kind)


def _faults(
    items: Sequence[_Object],
    names: Sequence[str],
    kind: Kind,
    item_kind: tuple[str, str],
    quoted: Callable[[str], str],
) -> Iterator[str]:
    item_version, item_name = item_kind
    wrong = {
        f"{item.version or item_version} {item.kind or item_name}"
        for item in items
        if item.kind not in (None, "", item_name) or item.version not in (None, "", item_version)
    }
    if wrong:
        yield f"has objects of another kind ({quoted(min(wrong))})"
    if not all(item.metadata.name for item in items):
        yield "has objects without a name"
    if kind.namespaced and not all(item.metadata.namespace for item in items):
        yield "has objects without a namespace"
    if not kind.namespaced and any(item.metadata.namespace for item in items):
        yield "has objects with a namespace, although the kind is cluster-scoped"
    if len({*names}) < len(items):
        yield "has an object twice"
    if len({bool(item.metadata.uid) for item in items}) > 1:
        yield "has objects with and without a UID"
