"""The record of every object that a scan examines: identity, controller, and the labels that name teams and applications.

Upstream: `metav1.GetControllerOf`: the controller is the owner reference whose `controller` is true; validation admits
one at most.

Kept values pass the redaction. A label is an identifier, and often equal to a plain environment variable, such as
`OTEL_SERVICE_NAME`: it is masked where it contains a value of a Secret, or of an environment variable that is called a
password or token. An annotation is free text: it is redacted like a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeGuard

from scanner.audit.secret_values import HIDDEN, hidden_values, is_secret, secret_variables, without
from scanner.audit.sensitive_fields import MASK, names_secret, without_named_secrets
from scanner.model.json import Json, as_list, as_object, as_text
from scanner.model.population import Controller, Examined, KeptKeys, Pairs
from scanner.model.resource import LAST_APPLIED, Kind, Resource

LONGEST_VALUE: Final = 256
"""The most characters of a kept value. Labels that an API server has validated have at most 63."""

_TEMPLATE_HASH: Final = "pod-template-hash"


def examined(resource: Resource, keys: KeptKeys) -> Examined:
    """The record of an object that a scan examined: identity, controller, and the kept labels and annotations, redacted."""
    metadata = as_object(resource.body.get("metadata"))
    controller = _controller(references) if (references := metadata.get("ownerReferences")) else None
    name = resource.name
    labels = metadata.get("labels")
    kept: Pairs = ()
    template_hash = ""
    if labels:
        labels = as_object(labels)
        kept = _labels(resource, labels, keys)
        if _TEMPLATE_HASH in labels:
            template_hash = _ending(labels[_TEMPLATE_HASH], controller.name if controller else name)
    annotations = _annotations(resource, as_object(metadata.get("annotations")), keys) if keys.annotations else ()
    return Examined(resource.kind, resource.namespace, name, resource.uid, controller, kept, annotations, template_hash)


def _controller(references: Json) -> Controller | None:
    """The reference that controls. A reference without kind or name, which only files can have, refers to no object."""
    for reference in map(as_object, as_list(references)):
        get = reference.get
        if get("controller") is True and as_text(get("kind")) and as_text(get("name")):
            return Controller(
                as_text(get("apiVersion")), as_text(get("kind")), as_text(get("name")), as_text(get("uid"))
            )
    return None


def _ending(template_hash: Json, name: str) -> str:
    """The pod template hash if the name ends with it, because it then adds nothing to the name; else an empty string."""
    text = as_text(template_hash)
    return text if name.endswith(text) else ""


def _labels(resource: Resource, labels: Mapping[str, Json], keys: KeptKeys) -> Pairs:
    kept = sorted(labels.items()) if _is_namespace(resource.kind) else keys.of_labels(labels)
    if not kept:
        return ()
    hidden = HIDDEN.of(resource) if is_secret(resource) else secret_variables(resource.body)
    if not hidden and _are_plain(kept):
        return tuple(kept)
    return tuple((key, _safe(key, value, hidden)) for key, value in kept if isinstance(value, str))


def _are_plain(pairs: Iterable[tuple[str, Json]]) -> TypeGuard[list[tuple[str, str]]]:
    """Return whether labels are kept unchanged, as nearly all are."""
    for key, value in pairs:  # a loop, because a generator takes twice as long
        plain = type(value) is str and len(value) <= LONGEST_VALUE and not names_secret(key)
        if not plain:
            return False
    return True


def _annotations(resource: Resource, annotations: Mapping[str, Json], keys: KeptKeys) -> Pairs:
    kept = [key for key in sorted(keys.annotations) if isinstance(annotations.get(key), str)]
    hidden = hidden_values(resource) if kept else frozenset()
    return tuple((key, _safe(key, without_named_secrets(as_text(annotations[key])), hidden)) for key in kept)


def _safe(key: str, value: str, hidden: Iterable[str]) -> str:
    """A value without secrets. It is cut last: a part of a secret would not be recognised."""
    if names_secret(key) or key == LAST_APPLIED:
        return MASK
    safe = without(value, hidden)
    return safe if len(safe) <= LONGEST_VALUE else f"{safe[: LONGEST_VALUE - 1]}…"


def _is_namespace(kind: Kind) -> bool:
    return kind.kind == "Namespace" and not kind.group
