"""How Kyverno's command line loads what it judges.

Source of truth: Kyverno 1.18's CLI. Objects without a namespace are in `default`, null maps are empty, and where a policy of the
admission API has bindings, those limit it in place of its own constraints.
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
    """The object in a namespace, and without null maps; objects of an `unknown` kind are in one, too."""
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
    """Policies and bindings: those without a binding get one, those with one are about everything that it matches."""
    documents = tuple(policies)
    bindings = [one for one in documents if as_text(one.get("kind")).endswith("Binding")]
    named = {as_text(dig(one, "spec", "policyName")) for one in bindings}
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
