"""The digests by which two sets of rules are compared: one of what decides, one of what describes.

Equal sets have equal digests, in any order and in any cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from scanner.model.json import JsonObject, as_object, dig
from scanner.model.policy import Binding, Policy
from scanner.model.resource import LAST_APPLIED
from scanner.model.rule import RuleObject
from scanner.model.scans.method import Method
from scanner.model.scans.scan import Scan


class RulesPart(StrEnum):
    """The parts in which the rules of comparable scans can differ. `rules` are those that the digest of a policy set covers."""

    RULES = "rules"
    SERVER = "server"
    ASSAY = "assay"
    KYVERNO = "kyverno"


class RulesVersion(NamedTuple):
    """The digests of everything that decided in a scan besides objects, as its tombstone keeps them. An empty digest is not known."""

    policy_set_digest: str
    server: str
    assay: str
    kyverno: str = ""


def rules_version(scan: Scan, method: Method | None) -> RulesVersion:
    """The version of the rules of a scan."""
    kyverno = method.kyverno_release if method else ""
    return RulesVersion(scan.policy_set_digest, scan.cluster.server_version, scan.tool_version, kyverno)


def list_changed_parts(before: RulesVersion | None, now: RulesVersion) -> tuple[RulesPart, ...] | None:
    """The parts that differ; None if there is no earlier version, or a digest is not known.

    A release of Kyverno that is not known, as in a scan without its policies, does not differ.
    """
    if before is None or not before.policy_set_digest or not now.policy_set_digest:
        return None
    if not (before.kyverno and now.kyverno):
        before = before._replace(kyverno=now.kyverno)
    return tuple(part for part, was, is_now in zip(RulesPart, before, now, strict=True) if was != is_now)


def policy_set_digest(policies: Iterable[Policy], bindings: Iterable[Binding], rules: Iterable[RuleObject] = ()) -> str:
    """The SHA-256, in hex, of the specs of policies and bindings and of the rule objects; empty if it is not known.

    Bindings of other policies decide nothing, and are left out. The digest is not known if withheld content of a rule object
    has no version that stands for it.
    """
    digests, objects = {policy.key: policy.digest for policy in policies}, tuple(rules)
    if not all(rule.identified for rule in objects):
        return ""
    lines = (
        *(("policy", *key, digest) for key, digest in digests.items()),
        *(
            ("binding", *binding.key, binding.digest, binding.assumed)
            for binding in bindings
            if binding.policy_key in digests
        ),
        *((rule.type.value, rule.name, rule.digest) for rule in objects),
    )
    return _digest(lines)


def description_digest(policies: Iterable[Policy], bindings: Iterable[Binding]) -> str:
    """The SHA-256, in hex, of the annotations of policies and bindings, such as titles and severities."""
    lines = (
        *(("policy", *policy.key, _annotations(policy.manifest)) for policy in policies),
        *(("binding", *binding.key, _annotations(binding.manifest)) for binding in bindings),
    )
    return _digest(lines)


def _annotations(manifest: JsonObject) -> JsonObject:
    annotations = as_object(dig(manifest, "metadata", "annotations"))
    return {key: value for key, value in annotations.items() if key != LAST_APPLIED}


def _digest(lines: Iterable[tuple[object, ...]]) -> str:
    texts = {json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=True) for line in lines}
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()
