"""The content of a rule object in the form that may be stored, and its digest.

The digest covers the stored document alone. A digest of withheld text would let a reader who knows the rest guess a short
secret, so the UID and the resource version stand for withheld text.

Rules: `docs/adr/0021-rules-are-kept-without-secrets.md`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Final

from scanner.audit.sensitive_fields import MASK, Trail, is_sensitive, mask_named_secrets, names_secret
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.resource import LAST_APPLIED, SERVER_SET_METADATA
from scanner.model.rule import RuleObject, RuleType

_DEEPEST: Final = 64
"""The most levels of a document that are shown; deeper parts are withheld."""

_LEFT_OUT: Final = frozenset({*SERVER_SET_METADATA, "deletionTimestamp", "deletionGracePeriodSeconds"})


def make_rule_object(rule_type: RuleType, name: str, body: JsonObject, *, with_status: bool = False) -> RuleObject:
    """The rule object of a manifest. Its status is a part of it only `with_status`, where an expression reads it."""
    if body.get("kind") == "Secret" and body.get("apiVersion") == "v1":
        return _make_rule(rule_type, name, _reduce_to_version(body), masked=True)
    content = _remove_server_fields(body, with_status=with_status)
    redaction = _Redaction()
    document = as_object(redaction.redact(content, ()))
    if redaction.has_masked:
        document = {**document, "metadata": {**as_object(document.get("metadata")), **_get_version(body)}}
    return _make_rule(rule_type, name, document, masked=redaction.has_masked)


def _make_rule(rule_type: RuleType, name: str, document: JsonObject, *, masked: bool) -> RuleObject:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return RuleObject(rule_type, name, hashlib.sha256(text.encode()).hexdigest(), document, masked)


def _remove_server_fields(body: JsonObject, *, with_status: bool) -> JsonObject:
    """The manifest without the fields that a server sets: they differ between clusters with equal rules."""
    metadata = {key: value for key, value in as_object(body.get("metadata")).items() if key not in _LEFT_OUT}
    annotations = dict(as_object(metadata.pop("annotations", None)))
    annotations.pop(LAST_APPLIED, None)
    if annotations:
        metadata["annotations"] = annotations
    if "ownerReferences" in metadata:
        owners = map(as_object, as_list(metadata["ownerReferences"]))
        metadata["ownerReferences"] = [{key: owner[key] for key in owner if key != "uid"} for owner in owners]
    fields = body if with_status else {key: value for key, value in body.items() if key != "status"}
    return {**fields, "metadata": metadata}


def _reduce_to_version(body: JsonObject) -> JsonObject:
    """The name and the version of an object."""
    names = {key: as_text(dig(body, "metadata", key)) for key in ("namespace", "name")}
    metadata = {key: name for key, name in names.items() if name}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {**metadata, **_get_version(body)}}


def _get_version(body: JsonObject) -> JsonObject:
    version = {key: as_text(dig(body, "metadata", key)) for key in ("uid", "resourceVersion")}
    return {key: text for key, text in version.items() if text}


class _Redaction:
    """The redaction of one document; `masked` tells whether it withheld anything."""

    def __init__(self) -> None:
        self.has_masked = False

    def redact(self, value: Json, trail: Trail) -> Json:
        """The value without passwords, tokens, keys, and values of environment variables."""
        match value:
            case str():
                return self._redact_text(value)
            case bool() | int() | float() | None:
                return value
            case _ if len(trail) >= _DEEPEST:
                return self._withhold()
            case Mapping():
                return {key: self._redact_field(value, key, trail) for key in value}
            case Sequence():
                return [self.redact(item, (*trail, index)) for index, item in enumerate(value)]

    def _redact_field(self, container: JsonObject, key: str, trail: Trail) -> Json:
        is_named = key == "value" and names_secret(as_text(container.get("key")))
        if is_named or is_sensitive(container, key, trail):
            return self._withhold()
        return self.redact(container[key], (*trail, key))

    def _redact_text(self, text: str) -> str:
        redacted = mask_named_secrets(text)
        self.has_masked |= redacted != text
        return redacted

    def _withhold(self) -> str:
        self.has_masked = True
        return MASK
