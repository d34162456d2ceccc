"""The result of `assay verify-parity`, as lines for a terminal or as one JSON document with the same facts."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.model.json import Json, JsonObject
from scanner.parity import Parity
from scanner.parity.replay import ReplayedDifference
from scanner.report.text.json_text import gap_json
from scanner.report.text.numbers import plural

SCHEMA_VERSION = "1.0"
_MOST_SHOWN = 50


def lines_of(parity: Parity) -> Iterator[str]:
    """The agreement, then the first fifty differences, then the verdicts that could not be compared."""
    server = f" ({parity.cluster.server_version})" if parity.cluster.server_version else ""
    user = f" as {parity.user}" if parity.user else ""
    written = f"{plural(parity.objects, 'object')} in {plural(parity.writes, 'dry-run write')}"
    yield f"Parity with {parity.cluster.name}{server}: {written}{user}; no object was changed"
    yield f"{_headline(parity)}: {_agreement(parity)}"
    for replayed in parity.differences[:_MOST_SHOWN]:
        yield from _difference(replayed)
    if len(parity.differences) > _MOST_SHOWN:
        yield f"  {_MOST_SHOWN} of {len(parity.differences):,} differences shown; -o json shows all"
    if parity.unseen:
        yield f"Not comparable: {plural(parity.unseen.total(), 'verdict')}"
        yield from (f"  {count:,}  {why}" for why, count in _most_first(parity))
    yield from (f"Excluded: {kind}" for kind in parity.left_out)
    yield from (
        f"Missing permission: {right} ({plural(count, 'write')})" for right, count in sorted(parity.missing.items())
    )
    yield from (f"Gap: {gap.where}: {gap.why}" for gap in parity.gaps)


def json_of(parity: Parity) -> JsonObject:
    """The facts of `lines_of` as one JSON object. While the first number of the version stays, fields are only added."""
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
        "differences": [_difference_json(replayed) for replayed in parity.differences],
        "notComparable": unseen,
        "leftOut": list(parity.left_out),
        "missingRights": [{"right": right, "writes": count} for right, count in sorted(parity.missing.items())],
        "gaps": [gap_json(gap) for gap in parity.gaps],
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


def _difference(replayed: ReplayedDifference) -> Iterator[str]:
    difference = replayed.difference
    where = f"{replayed.namespace}/{replayed.name}" if replayed.namespace else replayed.name
    binding = f" through {difference.binding}" if difference.binding else ""
    yield f"  {replayed.operation} {replayed.api_version}/{replayed.kind} {where}: policy {difference.policy}{binding}"
    yield f"    Assay:  {difference.assay}"
    yield f"    server: {difference.server}"


def _difference_json(replayed: ReplayedDifference) -> Json:
    difference = replayed.difference
    return {
        "operation": replayed.operation,
        "object": {
            "apiVersion": replayed.api_version,
            "kind": replayed.kind,
            "namespace": replayed.namespace,
            "name": replayed.name,
        },
        "policy": difference.policy,
        "binding": difference.binding,
        "assay": difference.assay,
        "server": difference.server,
    }


def _most_first(parity: Parity) -> list[tuple[str, int]]:
    return sorted(parity.unseen.items(), key=lambda reason: (-reason[1], reason[0]))
