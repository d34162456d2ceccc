"""The rules of a scan in one table: policies, bindings, params, exceptions and labels that are rules, each with its text and its times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scanner.model.json import JsonObject, dig
from scanner.model.policy import Binding
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.rule_times import RuleKey, RuleTimes
from scanner.model.scans.scan import PolicyRecord
from scanner.model.scans.stored_scan import StoredScan
from scanner.report.document.by_policy import drop_server_fields

POLICY: Final = "policy"
BINDING: Final = "binding"
TYPES: Final = {
    POLICY: "Policy",
    BINDING: "Binding",
    RuleType.PARAM.value: "Param",
    RuleType.EXCEPTION.value: "Exception",
    RuleType.GLOBAL_CONTEXT.value: "Global context entry",
    RuleType.NAMESPACE_LABELS.value: "Namespace labels",
    RuleType.CONFIGURATION.value: "Configuration",
}
"""The types of rules in the order of a table, with their words."""


@dataclass(frozen=True, slots=True)
class RuleInForce:
    """A rule of a scan. `language` and `policy` are empty where they mean nothing; `policy` is that of a binding.

    A policy without a binding is not `bound`: it decides nothing. `assumed` bindings are in force in the report alone.
    `resource_version` is empty if it is not known, and `times` is None for a scan without a history.
    `document` is the content that decides, with `masked` parts withheld; `digest` is its SHA-256, in hex.
    """

    type: str
    language: str
    policy: str
    name: str
    digest: str
    resource_version: str
    document: JsonObject
    times: RuleTimes | None
    bound: bool = True
    assumed: bool = False
    masked: bool = False

    @property
    def title(self) -> str:
        """The type in words."""
        return TYPES[self.type]

    @property
    def since(self) -> datetime | None:
        """The end of the first scan that has this content without a break; None if it is not known."""
        return self.times.since if self.times else None

    @property
    def before(self) -> datetime | None:
        """The end of the last scan before that, which did not have this content."""
        return self.times.before if self.times else None

    @property
    def changed(self) -> tuple[datetime, ...]:
        """The ends of the scans that found another content than the scan before them, the newest first."""
        return self.times.changed if self.times else ()


def list_rules(stored: StoredScan) -> tuple[RuleInForce, ...]:
    """The rules of a scan by type, policy and name."""
    times = stored.rule_times()
    order = list(TYPES)
    rules = (*_list_policies(stored, times), *(_of_rule(rule, times) for rule in stored.rules))
    return tuple(sorted(rules, key=lambda rule: (order.index(rule.type), rule.policy, rule.name, rule.language)))


def _list_policies(stored: StoredScan, times: Mapping[RuleKey, RuleTimes]) -> Iterator[RuleInForce]:
    """The policies of a scan and their bindings."""
    for used in stored.policies:
        yield _of_policy(used, times)
        for binding in used.bindings:
            yield _of_binding(binding, times)


def _of_policy(used: PolicyRecord, times: Mapping[RuleKey, RuleTimes]) -> RuleInForce:
    policy = used.policy
    key = RuleKey(POLICY, policy.language, "", policy.name)
    document = drop_server_fields(policy.manifest)
    return RuleInForce(
        *key, policy.digest, _version_of(policy.manifest), document, times.get(key), bound=bool(used.bindings)
    )


def _of_binding(binding: Binding, times: Mapping[RuleKey, RuleTimes]) -> RuleInForce:
    key = RuleKey(BINDING, binding.language, binding.policy_name, binding.name)
    known = None if binding.assumed else times.get(key)
    document = drop_server_fields(binding.manifest)
    return RuleInForce(*key, binding.digest, _version_of(binding.manifest), document, known, assumed=binding.assumed)


def _of_rule(rule: RuleObject, times: Mapping[RuleKey, RuleTimes]) -> RuleInForce:
    key = RuleKey(rule.type.value, "", "", rule.name)
    return RuleInForce(*key, rule.digest, _version_of(rule.document), rule.document, times.get(key), masked=rule.masked)


def _version_of(document: JsonObject) -> str:
    return str(dig(document, "metadata", "resourceVersion") or "")
