"""The fields of an object that decided a finding: those whose values are its evidence, or those that a mutation would change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from scanner.cel.explanation.explained import write_path
from scanner.model.outcome import Finding, WouldChange
from scanner.model.scans.place import ObjectName
from scanner.model.scans.stored_finding import StoredFinding

_REQUEST: Final = "request.object."


def find_deciding_fields(finding: Finding) -> Iterator[str]:
    """The paths of the fields, the most telling first. Those of other documents, such as params, are among them."""
    if isinstance(finding.outcome, WouldChange):
        yield from (_parse_pointer(change.path) for change in finding.outcome.patch)
    yield from (reason.path.removeprefix(_REQUEST) for reason in finding.evidence.reasons if reason.path)


def fields_by_object(findings: Iterable[StoredFinding]) -> Mapping[ObjectName, set[str]]:
    """The deciding fields of findings, by their objects."""
    fields: defaultdict[ObjectName, set[str]] = defaultdict(set)
    for finding in (stored.finding for stored in findings):
        fields[object_of(finding)].update(find_deciding_fields(finding))
    return fields


def object_of(finding: Finding) -> ObjectName:
    """The name of the object of a finding."""
    return ObjectName(finding.api_version.rpartition("/")[0], finding.kind, finding.namespace, finding.name)


def _parse_pointer(pointer: str) -> str:
    """The path of a JSON pointer (RFC 6901)."""
    steps = (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
    return write_path(("object", *(int(step) if step.isdecimal() else step for step in steps)))
