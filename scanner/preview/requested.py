"""The object of a request that applies a manifest: as mutating policies read it, and as validating policies read it.

Source of truth: the create and patch handlers of kube-apiserver 1.36 for a server-side apply with a new field manager and `force`. The
manifest is merged into the stored object, so that fields that it does not name stay, but for those of an earlier `kubectl apply`
(ADR 96); the result is decoded into its Go type and gets its defaults, mutating admission follows, then the strategy of the kind, then
validating admission. A new object with a `generateName` has no name before the strategy: mutating policies read neither its name nor
that of the request.
"""

from __future__ import annotations

from typing import Final, cast

from msgspec import Struct

from scanner.audit import redact
from scanner.model.json import JsonObject, as_object, as_text
from scanner.model.policy import Operation
from scanner.model.resource import Resource, resource_of
from scanner.mutate import custom, merge, registry
from scanner.mutate.decoding import decode_configuration
from scanner.mutate.native import PatchFault, RequestFault
from scanner.mutate.schema import Schema
from scanner.preview.last_applied import read_last_applied, remove_unnamed

_LONGEST_PREFIX: Final = 58
_SUFFIX: Final = "xxxxx"


class Refused(Exception):
    """The API server refuses the request before admission; the message is redacted."""


class Requested(Struct, frozen=True):
    """A request on an object. `old` is the stored object, None for a CREATE. Without a `schema` the object is as in the manifest.

    If it is `by_kubectl`, a server-side apply by another client would leave another object.
    """

    resource: Resource
    schema: Schema | None
    old: Resource | None = None
    by_kubectl: bool = False

    @property
    def operation(self) -> Operation:
        """The operation of the request."""
        return "UPDATE" if self.old else "CREATE"

    def after_mutation(self, body: JsonObject) -> Resource:
        """The object as validating policies read it, given the object that mutating admission leaves."""
        schema, old = self.schema, self.old.body if self.old else None
        if old is None:
            body = generate_name(body)
        if schema is not None and schema.builtin:
            body = registry.prepare_write(schema, old, body)
        elif schema is not None and schema.custom is not None:
            body = custom.prepare_custom(schema.custom, old, body)
        return resource_of(self.resource.kind, body)


def make_request(manifest: Resource, stored: JsonObject | None, schema: Schema | None) -> Requested:
    """The request that applies a manifest, given the object that the cluster has under its name. Raises Refused."""
    kind = manifest.kind
    identity: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind}
    old = None if stored is None else resource_of(kind, {**stored, **identity})
    if schema is None:
        body = manifest.body if old is None else {**old.body, **manifest.body}
        return Requested(resource_of(kind, body), None, old)
    if fault := merge.find_faults(schema, manifest.body):
        raise Refused(f"it does not fit the schema of its kind: {redact.redact_answer(fault, manifest)}")
    live, last = old.body if old else identity, read_last_applied(old.body) if old else None
    try:
        merged = by_server = merge.merge_patch(schema, live, manifest.body)
        if last is not None:
            live = remove_unnamed(schema, live, last, manifest.body)
            merged = merge.merge_patch(schema, live, manifest.body, strategic=schema.builtin)
        body = _decode(schema, cast("JsonObject", merged), live, created=old is None)
    except (PatchFault, RequestFault) as fault:
        raise Refused(redact.redact_answer(str(fault), manifest)) from None
    return Requested(resource_of(kind, body), schema, old, by_kubectl=merged != by_server)


def generate_name(body: JsonObject) -> JsonObject:
    """The object with a name that the server could make (`SimpleNameGenerator`), if it has none and a `generateName`."""
    metadata = as_object(body.get("metadata"))
    prefix = as_text(metadata.get("generateName"))
    if not prefix or metadata.get("name"):
        return body
    return {**body, "metadata": {**metadata, "name": f"{prefix[:_LONGEST_PREFIX]}{_SUFFIX}"}}


def drop_name(resource: Resource) -> Resource:
    """The object without its name, as a client sends it that lets the server make the name."""
    metadata = {key: value for key, value in as_object(resource.body.get("metadata")).items() if key != "name"}
    return resource_of(resource.kind, {**resource.body, "metadata": metadata})


def _decode(schema: Schema, merged: JsonObject, live: JsonObject, *, created: bool) -> JsonObject:
    """The manifest merged into a live object, decoded, with its defaults. Raises PatchFault and RequestFault."""
    if schema.builtin:
        return registry.decode(schema, decode_configuration(schema, merged, live, created=created))
    return custom.fill_defaults(schema.custom, merged) if schema.custom else merged


def make_stored_request(resource: Resource, schema: Schema | None) -> Requested:
    """The request that creates an object of which a server has decoded every field, such as the template of a stored workload.

    A pod has defaults that its template has not. The result is that of `make_request`, without the other steps.
    """
    if schema is None or not schema.builtin:
        return Requested(resource, schema)
    body = registry.complete_status(schema, registry.decode(schema, resource.body))
    return Requested(resource_of(resource.kind, body), schema)
