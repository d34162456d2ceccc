"""The rule objects of a scan: each is stored once, and a scan with the rules of an earlier one refers to these."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection, select

from scanner.model.json import JsonObject
from scanner.model.rule import RuleObject, RuleType
from scanner.model.texts import clean
from scanner.store.interning import Interned
from scanner.store.packing import Key
from scanner.store.shared_rows import share_rows
from scanner.store.tables import RULES, SCAN_RULES


def write_rules(connection: Connection, scan: int, rules: Sequence[RuleObject], earlier: int) -> int:
    """Store the rules of a scan unless the scan `earlier` has the same; returns its number then, and 0 otherwise."""
    numbers = Interned(connection, RULES).ids([_key(rule) for rule in rules])
    return share_rows(connection, SCAN_RULES, scan, [{"rule": number} for number in numbers], earlier)


def read_rules(connection: Connection, owner: int) -> tuple[RuleObject, ...]:
    """The rules that the scan `owner` has, in their order."""
    columns = RULES.c.type, RULES.c.name, RULES.c.content_digest, RULES.c.document, RULES.c.masked
    wanted = select(*columns).join(SCAN_RULES).where(SCAN_RULES.c.scan == owner).order_by(SCAN_RULES.c.position)
    return tuple(
        RuleObject(RuleType(rule_type), name, digest, _document(document), masked)
        for rule_type, name, digest, document, masked in connection.execute(wanted)
    )


def _key(rule: RuleObject) -> Key:
    """The columns of a rule. The document is ASCII, which every database stores unchanged."""
    text = json.dumps(rule.document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return rule.type.value, clean(rule.name), rule.digest, text, rule.masked


def _document(text: str) -> JsonObject:
    document: JsonObject = json.loads(text)
    return document
