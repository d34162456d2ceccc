"""The record of every object that a scan examines: identity, controller, and the labels that name teams and applications.

Upstream: `metav1.GetControllerOf`: the controller is the owner reference whose `controller` is true; validation admits
one at most.

Kept values pass the redaction. A label is an identifier, and often equal to a plain environment variable, such as
`OTEL_SERVICE_NAME`: it is masked where it contains a value of a Secret, or of an environment variable that is called a
password or token. An annotation is free text: it is redacted like a message.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import lru_cache
from operator import itemgetter
from typing import Final, TypeGuard, TypeVar

import orjson

from scanner.audit.secret_values import (
    FieldsOfSecret,
    is_secret,
    list_hidden_values,
    list_secret_variables,
    list_short_values,
    mask_values,
)
from scanner.audit.sensitive_fields import MASK, mask_named_secrets, names_secret
from scanner.model.json import Json, as_list, as_object, as_text
from scanner.model.population import DEFAULT_KEYS, Controller, KeptKeys, Pairs, PopulationMember
from scanner.model.resource import LAST_APPLIED, Kind, Resource
from scanner.model.texts import clean

LONGEST_VALUE: Final = 256
"""The most characters of a kept value. Labels that an API server has validated have at most 63."""

_TEMPLATE_HASH: Final = "pod-template-hash"
_MOST_NAMES: Final = 4096
_FIELDS: Final = ("apiVersion", "kind", "name", "uid")
_REFERENCE: Final = itemgetter(*_FIELDS)
_VALUE: Final = itemgetter(1)


class _KeptNames(dict[str, bool]):
    """Return whether the label of a key is kept. Most objects have the same few keys, so the answers are remembered.

    `sensitive` are the kept keys whose values are never shown.
    """

    def __init__(self, keys: KeptKeys, *, every_label: bool = False) -> None:
        super().__init__()
        self.sensitive: set[str] = set()
        self._keys = keys
        self._every_label = every_label

    def __missing__(self, key: str) -> bool:
        is_kept = self._every_label or self._keys.keeps_label(key)
        if is_kept and _is_sensitive(key):
            self.sensitive.add(key)
        self[key] = is_kept
        return is_kept


class _LatestKeptNames:
    """The kept names for the latest keys, until there are too many."""

    def __init__(self) -> None:
        """Begin with the default keys."""
        self._begin(DEFAULT_KEYS)

    def get(self, keys: KeptKeys, kind: Kind) -> _KeptNames:
        """The names for the objects of a kind. A Namespace keeps all its labels."""
        names = self._of_namespaces if kind.kind == "Namespace" and not kind.group else self._of_objects
        if keys is self._keys and len(names) < _MOST_NAMES:
            return names
        self._begin(keys)
        return self.get(keys, kind)

    def _begin(self, keys: KeptKeys) -> None:
        self._keys = keys
        self._of_objects, self._of_namespaces = _KeptNames(keys), _KeptNames(keys, every_label=True)


_NAMES: Final = _LatestKeptNames()


def record_object(resource: Resource, keys: KeptKeys) -> PopulationMember:
    """The record of an object that a scan examined: identity, controller, and the kept labels and annotations, redacted.

    Runs for every object, so it is fast.
    """
    metadata = as_object(resource.body.get("metadata"))
    controller = _find_controller(metadata["ownerReferences"]) if "ownerReferences" in metadata else None
    name = resource.name
    labels = metadata.get("labels")
    kept_labels: Pairs = ()
    template_hash = ""
    if labels:
        labels = as_object(labels)
        kept_labels = _keep_labels(resource, labels, keys)
        if _TEMPLATE_HASH in labels:
            template_hash = as_text(labels[_TEMPLATE_HASH])
            if not (controller.name if controller else name).endswith(template_hash):  # then it adds to the name
                template_hash = ""
    annotations = _keep_annotations(resource, as_object(metadata.get("annotations")), keys) if keys.annotations else ()
    return PopulationMember(
        resource.kind, resource.namespace, name, resource.uid, controller, kept_labels, annotations, template_hash
    )


def list_controllers(objects: Iterable[PopulationMember]) -> tuple[Controller, ...]:
    """One reference to each kind of the controllers of some objects."""
    controllers = {record.controller.group_kind: record.controller for record in objects if record.controller}
    return tuple(controllers.values())


def _find_controller(references: Json) -> Controller | None:
    """The reference that controls. A reference without kind or name, which only files can have, refers to no object."""
    for reference in map(as_object, as_list(references)):
        if reference.get("controller") is not True:
            continue
        try:
            controller = _make_controller(_REFERENCE(reference))
        except (KeyError, TypeError):  # a field is missing, or is no text
            controller = _make_controller(tuple(as_text(reference.get(field)) for field in _FIELDS))
        if controller is not None:
            return controller
    return None


@lru_cache(maxsize=_MOST_NAMES)
def _make_controller(fields: tuple[Json, ...]) -> Controller | None:
    """The same controller for the same fields, because many objects share one."""
    api_version, kind, name, uid = map(as_text, fields)
    return Controller(api_version, kind, name, uid) if kind and name else None


def _keep_labels(resource: Resource, labels: Mapping[str, Json], keys: KeptKeys) -> Pairs:
    names = _NAMES.get(keys, resource.kind)
    kept_labels = [label for label in labels.items() if names[label[0]]]
    if not kept_labels:
        return ()
    kept_labels.sort()  # keys differ, so no values are compared
    hidden = _list_hidden(resource, kept_labels)
    if names.sensitive.isdisjoint(labels) and _are_plain(kept_labels, hidden):
        return tuple(kept_labels)
    return tuple((key, _redact_value(key, value, hidden)) for key, value in kept_labels if isinstance(value, str))


def _list_hidden(resource: Resource, kept_labels: Iterable[tuple[str, Json]]) -> list[str]:
    """The values that may not be shown in these labels."""
    if resource.kind.kind == "Secret" and is_secret(resource):
        return list_short_values(resource, max(len(as_text(value)) for _, value in kept_labels))
    return list_secret_variables(resource.body)


def _are_plain(kept_labels: Iterable[tuple[str, Json]], hidden: Iterable[str]) -> TypeGuard[list[tuple[str, str]]]:
    """Return whether no value of labels must be changed, as of nearly all objects: all values are tested at once."""
    try:
        text = "\n".join(map(_VALUE, kept_labels))
    except TypeError:  # a value is no text
        return False
    return len(text) <= LONGEST_VALUE and not (hidden and any(value in text for value in hidden))


def _keep_annotations(resource: Resource, annotations: Mapping[str, Json], keys: KeptKeys) -> Pairs:
    kept_keys = [key for key in sorted(keys.annotations) if isinstance(annotations.get(key), str)]
    if kept_keys and is_secret(resource):
        fields = FieldsOfSecret(resource)
        return tuple(
            (key, as_text(annotations[key]) if fields.shows_annotation(key, annotations[key]) else MASK)
            for key in kept_keys
        )
    hidden = list_hidden_values(resource) if kept_keys else frozenset()
    return tuple((key, _redact_value(key, mask_named_secrets(as_text(annotations[key])), hidden)) for key in kept_keys)


def _redact_value(key: str, value: str, hidden: Iterable[str]) -> str:
    """A value without secrets. It is cut last: a part of a secret would not be recognised."""
    if _is_sensitive(key):
        return MASK
    redacted = mask_values(value, hidden)
    return redacted if len(redacted) <= LONGEST_VALUE else f"{redacted[: LONGEST_VALUE - 1]}…"


def _is_sensitive(key: str) -> bool:
    return names_secret(key) or key == LAST_APPLIED


# The objects that a page examined, as one value for staging.
#
# Within the value every namespace, controller and set of labels is written once. Texts are made fit for any database
# on the way in, as findings are.

_LEVEL: Final = 1
_NONE: Final = -1

_Value = TypeVar("_Value")
_Texts = tuple[str, ...]


def pack(objects: Iterable[PopulationMember]) -> bytes:
    """The bytes of the objects of one page, in their order; the kind is that of the page and not written."""
    namespaces: dict[str, int] = {}
    controllers: dict[Controller, int] = {}
    kept_pairs: dict[tuple[Pairs, Pairs], int] = {}
    rows = [
        (
            clean(each.name),
            clean(each.uid),
            each.template_hash and clean(each.template_hash),
            _number(namespaces, each.namespace),
            _NONE if each.controller is None else _number(controllers, each.controller),
            _number(kept_pairs, (each.labels, each.annotations)),
        )
        for each in objects
    ]
    shared = (
        [clean(namespace) for namespace in namespaces],
        [_clean_all(astuple(controller)) for controller in controllers],
        [[[_clean_all(pair) for pair in pairs] for pairs in both] for both in kept_pairs],
    )
    return zlib.compress(orjson.dumps([rows, *shared]), _LEVEL)


def unpack(kind: Kind, data: bytes) -> Iterator[PopulationMember]:
    """The objects that `pack` wrote, in their order, with their kind."""
    rows, namespaces, references, kept_pairs = orjson.loads(zlib.decompress(data))
    controllers = [*(Controller(*reference) for reference in references), None]
    pairs = [tuple(tuple((key, value) for key, value in pairs) for pairs in both) for both in kept_pairs]
    for name, uid, template_hash, namespace, controller, place in rows:
        labels, annotations = pairs[place]
        yield PopulationMember(
            kind, namespaces[namespace], name, uid, controllers[controller], labels, annotations, template_hash
        )


def _number(places: dict[_Value, int], value: _Value) -> int:
    return places.setdefault(value, len(places))


def _clean_all(texts: Sequence[str]) -> _Texts:
    return tuple(map(clean, texts))
