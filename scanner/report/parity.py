"""What a replay of verdicts came to: lines for a terminal, or one JSON document with the same facts."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.model.json import Json, JsonObject
from scanner.parity import Parity
from scanner.parity.replay import Replayed
from scanner.report.words import plural

SCHEMA_VERSION = "1.0"
_MOST_SHOWN = 50


def lines_of(parity: Parity) -> Iterator[str]:
    """The agreement first, then every difference (the first fifty, for people), then what could not be compared."""
    server = f" ({parity.cluster.server_version})" if parity.cluster.server_version else ""
    who = f" as {parity.user}" if parity.user else ""
    written = f"{plural(parity.objects, 'object')} in {plural(parity.writes, 'dry-run write')}"
    yield f"Parity with {parity.cluster.name}{server}: {written}{who}; nothing was changed"
    yield f"{_headline(parity)}: {_agreement(parity)}"
    for entry in parity.differences[:_MOST_SHOWN]:
        yield from _difference(entry)
    if len(parity.differences) > _MOST_SHOWN:
        yield f"  {_MOST_SHOWN} of {len(parity.differences):,} differences shown; -o json has them all"
    if parity.unseen:
        yield f"Not comparable: {plural(parity.unseen.total(), 'verdict')}"
        yield from (f"  {count:,}  {why}" for why, count in _most_first(parity))
    yield from (f"Left out: {what}" for what in parity.left_out)
    yield from (f"Missing right: {right} ({plural(count, 'write')})" for right, count in sorted(parity.missing.items()))
    yield from (f"Not seen: {gap.where}: {gap.why}" for gap in parity.gaps)


def json_of(parity: Parity) -> JsonObject:
    """The same as one object; its fields are added to, never renamed, while the first number of the version stays."""
    unseen: list[Json] = [{"reason": why, "verdicts": count} for why, count in _most_first(parity)]
    return {
        "schemaVersion": SCHEMA_VERSION,
        "cluster": {
            "name": parity.cluster.name,
            "uid": parity.cluster.uid,
            "serverVersion": parity.cluster.server_version,
        },
        "user": parity.user,
        "complete": parity.complete,
        "objects": parity.objects,
        "writes": parity.writes,
        "comparable": parity.agreed + len(parity.differences),
        "agreed": parity.agreed,
        "differences": [_difference_json(entry) for entry in parity.differences],
        "notComparable": unseen,
        "leftOut": list(parity.left_out),
        "missingRights": [{"right": right, "writes": count} for right, count in sorted(parity.missing.items())],
        "gaps": [{"kind": str(gap.kind), "where": gap.where, "why": gap.why} for gap in parity.gaps],
    }


def _headline(parity: Parity) -> str:
    if not parity.complete:
        return "INCOMPLETE"
    return "DIFFERENT" if parity.differences else "SAME"


def _agreement(parity: Parity) -> str:
    comparable = parity.agreed + len(parity.differences)
    if not comparable:
        return "no verdict could be compared"
    return f"{parity.agreed:,} of {plural(comparable, 'comparable verdict')} agree"


def _difference(entry: Replayed) -> Iterator[str]:
    it = entry.difference
    where = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
    binding = f" through {it.binding}" if it.binding else ""
    yield f"  {entry.operation} {entry.api_version}/{entry.kind} {where}: policy {it.policy}{binding}"
    yield f"    Assay:  {it.assay}"
    yield f"    server: {it.server}"


def _difference_json(entry: Replayed) -> Json:
    it = entry.difference
    return {
        "operation": entry.operation,
        "object": {
            "apiVersion": entry.api_version,
            "kind": entry.kind,
            "namespace": entry.namespace,
            "name": entry.name,
        },
        "policy": it.policy,
        "binding": it.binding,
        "assay": it.assay,
        "server": it.server,
    }


def _most_first(parity: Parity) -> list[tuple[str, int]]:
    return sorted(parity.unseen.items(), key=lambda entry: (-entry[1], entry[0]))
