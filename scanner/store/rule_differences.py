"""Reads the text of the rules that differ between two scans: specs of policies and bindings, and redacted rule objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from sqlalchemy import Connection, select

from scanner.model.json import JsonObject, as_object, dig
from scanner.model.policy import Binding, BindingKey, Policy, PolicyKey
from scanner.model.rule import RuleObject, RuleType
from scanner.posture.causes import Comparison
from scanner.posture.scan_diff import RuleDifference, RuleKind
from scanner.store import codec
from scanner.store.engine import among
from scanner.store.interning import chunks
from scanner.store.shared_rows import owners_of
from scanner.store.tables import BINDINGS, POLICIES, SCAN_BINDINGS, SCAN_POLICIES

_KINDS: Final[Mapping[RuleType, RuleKind]] = {
    RuleType.PARAM: RuleKind.PARAM,
    RuleType.EXCEPTION: RuleKind.EXCEPTION,
    RuleType.GLOBAL_CONTEXT: RuleKind.GLOBAL_CONTEXT,
    RuleType.NAMESPACE_LABELS: RuleKind.NAMESPACE_LABELS,
}
_Text: TypeAlias = JsonObject | None


def rule_differences(connection: Connection, before: int, now: int, comparison: Comparison) -> Iterator[RuleDifference]:
    """The rules that differ between two scans, by their numbers, in the order of their kinds and names."""
    earlier, later = (_policies(connection, scan, comparison.policies) for scan in (before, now))
    for policy in sorted(comparison.policies):
        yield RuleDifference(RuleKind.POLICY, *policy, earlier.get(policy), later.get(policy))
    was, is_now = (_bindings(connection, scan, comparison.bindings) for scan in (before, now))
    for binding in sorted(comparison.bindings):
        language, policy_name, name = binding
        yield RuleDifference(RuleKind.BINDING, language, f"{policy_name}/{name}", was.get(binding), is_now.get(binding))
    for difference in _objects(comparison.before.rules, comparison.now.rules):
        # A label that was not recorded before, because nothing read it, does not differ.
        if difference.kind is not RuleKind.NAMESPACE_LABELS or difference.name in comparison.namespaces:
            yield difference


def _policies(connection: Connection, scan: int, keys: Collection[PolicyKey]) -> dict[PolicyKey, _Text]:
    used, own = SCAN_POLICIES.c, POLICIES.c
    wanted = select(own.document).join(SCAN_POLICIES).where(used.scan == owners_of(connection, scan).policies)
    specs: dict[PolicyKey, _Text] = {}
    for names in chunks(sorted({name for _, name in keys})):
        for document in connection.execute(wanted.where(among(connection, own.name, names))).scalars():
            policy = codec.from_text(Policy, document)
            specs[policy.key] = _spec(policy.manifest)
    return specs


def _bindings(connection: Connection, scan: int, keys: Collection[BindingKey]) -> dict[BindingKey, _Text]:
    used, own = SCAN_BINDINGS.c, BINDINGS.c
    wanted = select(own.document).join(SCAN_BINDINGS).where(used.scan == owners_of(connection, scan).bindings)
    specs: dict[BindingKey, _Text] = {}
    for names in chunks(sorted({name for _, _, name in keys})):
        for document in connection.execute(wanted.where(among(connection, own.name, names))).scalars():
            binding = codec.from_text(Binding, document)
            specs[binding.key] = _spec(binding.manifest)
    return specs


def _spec(manifest: JsonObject) -> JsonObject:
    return as_object(dig(manifest, "spec"))


def _objects(before: Iterable[RuleObject], now: Iterable[RuleObject]) -> Iterator[RuleDifference]:
    earlier, later = ({(rule.type, rule.name): rule for rule in rules} for rules in (before, now))
    for kind in RuleType:
        names = {name for own, name in earlier.keys() | later.keys() if own is kind}
        for name in sorted(names):
            was, is_now = earlier.get((kind, name)), later.get((kind, name))
            if was is None or is_now is None or was.digest != is_now.digest:
                documents = (rule.document if rule else None for rule in (was, is_now))
                yield RuleDifference(_KINDS[kind], "", name, *documents)
