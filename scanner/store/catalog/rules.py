"""The rules of scans: rule objects, and specs of policies and bindings by their digests.

Each rule object is stored once, and a scan with the rules of an earlier one refers to these.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, select

from scanner.model.json import JsonObject, as_object, dig
from scanner.model.policy import PolicyKey
from scanner.model.rule import RuleObject, RuleType
from scanner.model.texts import clean
from scanner.store.database.engine import is_among
from scanner.store.rows.interning import Interner, Key
from scanner.store.rows.shared_rows import share_rows
from scanner.store.rows.tables import BINDINGS, POLICIES, RULES, SCAN_RULES


def write_rules(connection: Connection, scan: int, rules: Sequence[RuleObject]) -> int:
    """Store the rules of a scan unless an earlier scan has the same; returns its number then, and 0 otherwise."""
    numbers = Interner(connection, RULES).intern([_encode_rule(rule) for rule in rules])
    return share_rows(connection, SCAN_RULES, scan, [{"rule": number} for number in numbers])


def read_rules(connection: Connection, owner: int) -> tuple[RuleObject, ...]:
    """The rules that the scan `owner` has, in their order."""
    columns = RULES.c.type, RULES.c.name, RULES.c.content_digest, RULES.c.document, RULES.c.masked
    wanted = select(*columns).join(SCAN_RULES).where(SCAN_RULES.c.scan == owner).order_by(SCAN_RULES.c.position)
    return tuple(
        RuleObject(RuleType(rule_type), name, digest, _decode_document(document), masked)
        for rule_type, name, digest, document, masked in connection.execute(wanted)
    )


def _encode_rule(rule: RuleObject) -> Key:
    """The columns of a rule. The document is ASCII, which every database stores unchanged."""
    text = json.dumps(rule.document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return rule.type.value, clean(rule.name), rule.digest, text, rule.masked


def _decode_document(text: str) -> JsonObject:
    document: JsonObject = json.loads(text)
    return document


def read_policy_specs(connection: Connection, policy: PolicyKey, digests: Collection[str]) -> dict[str, JsonObject]:
    """The specs of a policy, by digest; a digest that no scan recorded is left out."""
    columns = POLICIES.c
    wanted = select(columns.spec_digest, columns.document).where(
        columns.language == policy[0], columns.name == policy[1]
    )
    rows = connection.execute(
        wanted.where(is_among(connection, columns.spec_digest, sorted(digests))).order_by(columns.id)
    )
    return {digest: _decode_spec(document) for digest, document in rows}


def read_binding_specs(
    connection: Connection, policy: PolicyKey, digests: Collection[str]
) -> dict[tuple[str, str], JsonObject]:
    """The specs of the bindings of a policy, by name and digest."""
    binding = BINDINGS.c
    of_policy = binding.language == policy[0], binding.policy_name == policy[1]
    wanted = select(binding.name, binding.spec_digest, binding.document).where(*of_policy)
    rows = connection.execute(
        wanted.where(is_among(connection, binding.spec_digest, sorted(digests))).order_by(binding.id)
    )
    return {(name, digest): _decode_spec(document) for name, digest, document in rows}


def _decode_spec(document: str) -> JsonObject:
    stored: Any = json.loads(document)
    return as_object(dig(stored, "manifest", "spec"))
