"""Loads policies and objects as the Kyverno CLI does.

Source of truth: Kyverno 1.18's CLI. Objects without a namespace are in `default`, null maps are empty, and the bindings of a
policy of the admission API replace its own constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.resource import Kind

_EMPTIED = ("data", "stringData")
_EVERYTHING: Json = {
    "resourceRules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]
}


def placed(document: JsonObject, kinds: Mapping[tuple[str, str], Kind], *, unknown: bool) -> JsonObject:
    """The object with a namespace and without null maps. With `unknown`, objects of unknown kinds get a namespace too."""
    metadata = dict(as_object(document.get("metadata")))
    kind = kinds.get((as_text(document.get("apiVersion")), as_text(document.get("kind"))))
    if unknown if kind is None else kind.namespaced:
        metadata.setdefault("namespace", "default")
    empty: dict[str, Json] = {
        name: {} for name in ("annotations", "labels") if name in metadata and metadata[name] is None
    }
    emptied: dict[str, Json] = {name: {} for name in _EMPTIED if name in document and document[name] is None}
    return {**document, "metadata": {**metadata, **empty}, **emptied}


def bound(policies: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Policies and bindings. A policy without a binding gets one; a policy with a binding loses its own constraints."""
    documents = tuple(policies)
    bindings = [document for document in documents if as_text(document.get("kind")).endswith("Binding")]
    named = {as_text(dig(binding, "spec", "policyName")) for binding in bindings}
    yield from bindings
    for document in documents:
        name = as_text(dig(document, "metadata", "name"))
        kind = as_text(document.get("kind"))
        if document in bindings:
            continue
        if not kind.endswith("AdmissionPolicy"):
            yield document
        elif name in named:
            yield {**document, "spec": {**as_object(document.get("spec")), "matchConstraints": _EVERYTHING}}
        else:
            yield document
            yield _binding(document, f"{kind}Binding", name)


def _binding(document: JsonObject, kind: str, name: str) -> JsonObject:
    return {
        "apiVersion": document.get("apiVersion"),
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
