"""Reads the text of the rules that differ between two scans: specs of policies and bindings, and redacted rule objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Connection, Select, select

from scanner.model.json import JsonObject, as_object, dig
from scanner.model.policy import Binding, BindingKey, Policy, PolicyKey
from scanner.model.rule import RuleObject, RuleType
from scanner.posture.history.causes import CircumstanceChanges
from scanner.posture.history.scan_diff import RuleDifference, RuleKind
from scanner.store.database.engine import is_among
from scanner.store.rows import codec
from scanner.store.rows.interning import chunks
from scanner.store.rows.shared_rows import read_owners
from scanner.store.rows.tables import BINDINGS, POLICIES, SCAN_BINDINGS, SCAN_POLICIES

_KINDS: Final[Mapping[RuleType, RuleKind]] = {
    RuleType.PARAM: RuleKind.PARAM,
    RuleType.EXCEPTION: RuleKind.EXCEPTION,
    RuleType.GLOBAL_CONTEXT: RuleKind.GLOBAL_CONTEXT,
    RuleType.NAMESPACE_LABELS: RuleKind.NAMESPACE_LABELS,
    RuleType.CONFIGURATION: RuleKind.CONFIGURATION,
}
_Text: TypeAlias = JsonObject | None


def find_rule_differences(
    connection: Connection, before: int, now: int, comparison: CircumstanceChanges
) -> Iterator[RuleDifference]:
    """The rules that differ between two scans, by their numbers, in the order of their kinds and names."""
    earlier, later = (_read_policies(connection, scan, comparison.policies) for scan in (before, now))
    for policy in sorted(comparison.policies):
        yield RuleDifference(RuleKind.POLICY, *policy, earlier.get(policy), later.get(policy))
    was, is_now = (_read_bindings(connection, scan, comparison.bindings) for scan in (before, now))
    for binding in sorted(comparison.bindings):
        language, policy_name, name = binding
        yield RuleDifference(RuleKind.BINDING, language, f"{policy_name}/{name}", was.get(binding), is_now.get(binding))
    for difference in _compare_objects(comparison.before.rules, comparison.now.rules):
        # A label that was not recorded before, because nothing read it, does not differ.
        if difference.kind is not RuleKind.NAMESPACE_LABELS or difference.name in comparison.namespaces:
            yield difference


def _read_policies(connection: Connection, scan: int, keys: Collection[PolicyKey]) -> dict[PolicyKey, _Text]:
    used = SCAN_POLICIES.c.scan == read_owners(connection, scan).policies
    wanted = select(POLICIES.c.document).join(SCAN_POLICIES).where(used)
    documents = _read_documents(connection, wanted, POLICIES.c.name, {name for _, name in keys})
    policies = (codec.from_text(Policy, document) for document in documents)
    return {policy.key: _spec_of(policy.manifest) for policy in policies}


def _read_bindings(connection: Connection, scan: int, keys: Collection[BindingKey]) -> dict[BindingKey, _Text]:
    used = SCAN_BINDINGS.c.scan == read_owners(connection, scan).bindings
    wanted = select(BINDINGS.c.document).join(SCAN_BINDINGS).where(used)
    documents = _read_documents(connection, wanted, BINDINGS.c.name, {name for _, _, name in keys})
    bindings = (codec.from_text(Binding, document) for document in documents)
    return {binding.key: _spec_of(binding.manifest) for binding in bindings}


def _read_documents(
    connection: Connection, wanted: Select[Any], column: ColumnElement[Any], names: Collection[str]
) -> Iterator[str]:
    for portion in chunks(sorted(names)):
        yield from connection.execute(wanted.where(is_among(connection, column, portion))).scalars()


def _spec_of(manifest: JsonObject) -> JsonObject:
    return as_object(dig(manifest, "spec"))


def _compare_objects(before: Iterable[RuleObject], now: Iterable[RuleObject]) -> Iterator[RuleDifference]:
    earlier, later = ({(rule.type, rule.name): rule for rule in rules} for rules in (before, now))
    for kind in RuleType:
        names = {name for own, name in earlier.keys() | later.keys() if own is kind}
        for name in sorted(names):
            was, is_now = earlier.get((kind, name)), later.get((kind, name))
            if was is None or is_now is None or was.digest != is_now.digest:
                documents = (rule.document if rule else None for rule in (was, is_now))
                yield RuleDifference(_KINDS[kind], "", name, *documents)
