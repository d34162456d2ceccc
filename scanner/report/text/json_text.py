"""JSON: the parts of findings and problems as values, and text with printable characters only.

Control and bidirectional characters are JSON escapes, so that no text is lost and none acts on a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO, TypeAlias, Union

import orjson

from scanner.model.json import Json, JsonObject
from scanner.model.outcome import Check, Errored, Evidence, Gap, WouldChange
from scanner.model.population import Workload
from scanner.model.scans.scan import Scan
from scanner.report.text.times import iso

if TYPE_CHECKING:
    from scanner.model.scans.cause import Cause
    from scanner.posture.waivers.waivers import AppliedWaiver

_BASIC = 0xFFFF


def dump(value: object) -> bytes:
    """Compact JSON in UTF-8, with printable characters only.

    The standard library writes values that orjson rejects: lone surrogates, integers over 64 bits.
    """
    try:
        encoded = orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        # The standard library writes DEL as it is.
        return json.dumps(value, separators=(",", ":")).replace("\x7f", r"\u007f").encode()
    return escape_unprintable(encoded.decode()).encode()


def escape_unprintable(text: str) -> str:
    """JSON with escapes for the characters that do not print; compact JSON has these in strings only."""
    return text if text.isprintable() else "".join(map(_character, text))


def _character(character: str) -> str:
    if character.isprintable():
        return character
    if ord(character) <= _BASIC:
        return f"\\u{ord(character):04x}"
    return json.dumps(character)[1:-1]


def head_json(scan: Scan) -> dict[str, str | None]:
    """The scan of the rows."""
    finished = iso(scan.finished_at) if scan.finished_at else None
    return {"scan": scan.id, "cluster": scan.cluster.name, "finishedAt": finished}


def write_rows(out: TextIO, scan: Scan, name: str, rows: Iterable[object]) -> None:
    """Write the object, whose last field, `name`, has the rows as JSON values."""
    out.write(f'{dump(head_json(scan)).decode()[:-1]},"{name}":[')
    out.writelines((",\n" if number else "\n") + dump(row).decode() for number, row in enumerate(rows))
    out.write("\n]}\n")


Plain: TypeAlias = Union[Json, "dict[str, Plain]", "list[Plain]"]


def check_json(check: Check, check_id: str | None) -> dict[str, Plain]:
    """A check of a policy; its id is null if it is not one of this scan's, as that of a resolved finding may be."""
    return {"id": check_id, "kind": str(check.kind), "index": check.index, "expression": check.expression}


def waiver_json(waiver: AppliedWaiver | None) -> Plain:
    """A waiver as a JSON object, or null if none applies."""
    if waiver is None:
        return None
    return {"name": waiver.name, "state": waiver.state.value, "until": waiver.until.isoformat()}


def cause_json(cause: Cause | None) -> Plain:
    """A cause as a JSON object, or null if nothing changed."""
    return None if cause is None else {"kind": cause.kind.value, "also": [kind.value for kind in cause.also]}


def gap_json(gap: Gap) -> JsonObject:
    """A gap as a JSON object."""
    return {"kind": gap.kind.value, "where": gap.where, "why": gap.why}


def values_json(evidence: Evidence) -> list[Json]:
    """The deciding values of a decision as JSON objects, without the rest of the evidence."""
    return [{"expression": each.expression, "value": each.value, "path": each.path} for each in evidence.reasons]


def workload_json(workload: Workload) -> dict[str, Plain]:
    """A workload as a JSON object."""
    return {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "derived": workload.derived,
    }


def evidence_json(evidence: Evidence) -> Plain:
    """The evidence, or null for a finding without evidence."""
    if not evidence:
        return None
    reasons: list[Plain] = [
        {
            "expression": reason.expression,
            "value": None if reason.erred else reason.value,
            "error": reason.value if reason.erred else None,
            "path": reason.path,
            "variable": reason.variable,
        }
        for reason in evidence.reasons
    ]
    return {"reasons": reasons, "leftOut": evidence.left_out, "excerpt": evidence.excerpt or None}


def drift_json(outcome: WouldChange) -> dict[str, Plain]:
    """The patches of a change, in the form of RFC 6902."""
    return {
        "patch": [change.to_json() for change in outcome.patch],
        "converges": outcome.converges,
        "together": [change.to_json() for change in outcome.together],
        "orderMatters": outcome.order_matters,
        "undone": outcome.undone,
        "refused": outcome.refused,
    }


def error_json(outcome: Errored) -> dict[str, Plain]:
    """The effect of an error: whether failurePolicy denies the object, and whether the binding's actions do not matter."""
    return {"denies": outcome.would_deny, "always": outcome.always}


def camel(name: str) -> str:
    """The name of a field in JSON, given its name in Python."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
