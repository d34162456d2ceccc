"""The rules in force as CSV and as JSON: a row for each policy, binding, param, exception and label that is a rule.

Shape of the JSON: `docs/rules.schema.json`. A minor version only adds fields.
"""

from __future__ import annotations

from datetime import datetime
from typing import BinaryIO, Final, TextIO

from scanner.report.document.document import Document
from scanner.report.document.rules_in_force import RuleInForce, list_rules
from scanner.report.formats.csv import write
from scanner.report.text.json_text import Plain, dump, head_json
from scanner.report.text.times import iso

SCHEMA_VERSION: Final = "1.0"
TITLES: Final = (
    *("type", "language", "policy", "name", "bound", "assumed", "digest", "resourceVersion"),
    *("inForceSince", "notBefore", "changed", "masked", "document"),
)


def render_csv(document: Document, out: TextIO) -> None:
    """Write a heading and one line for each rule; the content of a rule is one line of JSON."""
    write(out, TITLES, map(_cells, list_rules(document.stored)))


def render_json(document: Document, out: BinaryIO) -> None:
    """Write one object, each rule on a line."""
    head = {"schemaVersion": SCHEMA_VERSION, **head_json(document.stored.scan)}
    out.write(dump(head)[:-1] + b',\n"rules": [')
    out.writelines(
        (b"," if number else b"") + b"\n" + dump(rule_json(rule))
        for number, rule in enumerate(list_rules(document.stored))
    )
    out.write(b"\n]}\n")


def rule_json(rule: RuleInForce) -> dict[str, Plain]:
    """A rule as an object."""
    return {
        "type": rule.type,
        "language": rule.language,
        "policy": rule.policy,
        "name": rule.name,
        "bound": rule.bound,
        "assumed": rule.assumed,
        "digest": rule.digest,
        "resourceVersion": rule.resource_version or None,
        "inForceSince": _time(rule.since),
        "notBefore": _time(rule.before),
        "changed": [iso(moment) for moment in rule.changed],
        "masked": rule.masked,
        "document": rule.document,
    }


def _time(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None


def _cells(rule: RuleInForce) -> tuple[str, ...]:
    return (
        *(rule.type, rule.language, rule.policy, rule.name, _flag(rule.bound), _flag(rule.assumed)),
        *(rule.digest, rule.resource_version, _time(rule.since) or "", _time(rule.before) or ""),
        *(" ".join(map(iso, rule.changed)), _flag(rule.masked), dump(rule.document).decode().strip()),
    )


def _flag(value: bool) -> str:  # noqa: FBT001
    return "true" if value else "false"
