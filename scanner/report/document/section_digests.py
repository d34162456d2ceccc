"""The digests of a scan by section, which a copy of the report can be compared with, wherever the scan is stored.

A section is a list of rows, and a row a JSON object on one line. Its digest is the SHA-256 of the lines. Rows have what the scan
recorded, and nothing that is decided when a report is read or that follows from other scans: `docs/evidence.md` has every field,
and the form of a line. Rows of findings and objects are streams: the memory does not grow with them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias, assert_never, cast

import orjson

from scanner.model.outcome import Check, Errored, Evidence, Finding, Violated, WouldChange
from scanner.model.policy import Binding
from scanner.model.population import EvaluatedObjects, RecordedObject, Workload
from scanner.model.scans.scan import Coverage, PolicyRecord
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.scans.tally import TallyKey
from scanner.model.waiver import WaiverSet
from scanner.report.text.json_text import camel, drift_json, error_json
from scanner.report.text.times import iso

Row: TypeAlias = dict[str, Any]
"""A JSON object."""

CONTENT: Final = frozenset({"manifest", "document", "labels", "annotations", "patch", "together"})
"""The fields whose values are those of a cluster: no part of them is left out."""


class SectionDigest(NamedTuple):
    """The SHA-256 of a section, in hex, and the number of its rows."""

    section: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class ScanDigests:
    """The digests of the sections of a scan in their order, and one over all of them."""

    sections: tuple[SectionDigest, ...]
    digest: str


def digest_scan(stored: StoredScan) -> ScanDigests:
    """The digests of a scan, read from its rows: nothing is taken from an earlier computation."""
    sections = (
        digest_rows("method", [_method_row(stored)]),
        digest_rows("rules", _rule_rows(stored)),
        digest_rows("population", _population_rows(stored)),
        digest_rows("tallies", _tally_rows(stored)),
        _digest_lines("findings", map(_encode_finding, stored.findings_by_fingerprint())),
        digest_rows("coverage", _coverage_rows(stored)),
        digest_rows("gaps", map(_record, stored.gaps)),
        digest_rows("health", map(_record, stored.health)),
    )
    text = "".join(f"{each.digest}  {each.section}\n" for each in sections)
    return ScanDigests(sections, sha256(text.encode()).hexdigest())


def digest_waivers(waivers: WaiverSet) -> SectionDigest:
    """The digest of the waivers of a date, with the sentences about documents that were left out."""
    sentences = [{"fault": each} for each in waivers.faults] + [{"note": each} for each in waivers.notes]
    return digest_rows("waivers", [*map(_record, waivers.waivers), *sentences])


def digest_rows(section: str, rows: Iterable[Row]) -> SectionDigest:
    """The digest of rows in any order: the lines are sorted."""
    return _digest_lines(section, sorted(map(encode_row, rows)))


def encode_row(row: Row) -> bytes:
    """The line of a row without its end: `json.dumps(row, sort_keys=True, separators=(",", ":"))`, without empty values."""
    return json.dumps(_drop_empty(row), sort_keys=True, separators=(",", ":")).encode()


def _encode_plain(row: Row) -> bytes:
    """The same line, for a row of texts and small numbers whose parts have no empty values: it takes a tenth of the time."""
    try:
        line = orjson.dumps({name: value for name, value in row.items() if value}, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate
        return encode_row(row)
    return line if line.isascii() and b"\x7f" not in line else _ESCAPED.sub(_escape, line.decode()).encode()


_ESCAPED: Final = re.compile(r"[^\x00-\x7e]")


def _escape(character: re.Match[str]) -> str:
    return _escape_character(character[0])


@lru_cache(maxsize=4096)
def _escape_character(character: str) -> str:
    return json.dumps(character)[1:-1]


def _drop_empty(row: Row) -> Row:
    """The row without members that are null, false, 0 or empty, so that a field which a later version adds changes no digest."""
    kept = ((key, value if key in CONTENT else _drop_empty_in(value)) for key, value in row.items() if value)
    return {key: value for key, value in kept if value}


def _drop_empty_in(value: Any) -> Any:
    if type(value) is dict:
        return _drop_empty(value)
    return [_drop_empty_in(item) for item in value] if type(value) is list else value


def _digest_lines(section: str, lines: Iterable[bytes]) -> SectionDigest:
    digest, rows = sha256(), 0
    for line in lines:
        digest.update(line + b"\n")
        rows += 1
    return SectionDigest(section, rows, digest.hexdigest())


def _record(value: object) -> Row:
    """The fields of a record under the names that JSON has."""
    return {camel(field.name): _plain(getattr(value, field.name)) for field in fields(cast("Any", value))}


def _plain(value: object) -> Any:
    match value:
        case StrEnum():
            return value.value
        case datetime():
            return iso(value)
        case date():
            return value.isoformat()
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case tuple() | list():
            return list(map(_plain, value))
        case _:
            return _record(value) if is_dataclass(value) else value


def _method_row(stored: StoredScan) -> Row:
    """The circumstances of the scan: without an exit code, and without the name of the cluster, which can be renamed."""
    scan = stored.scan
    return {
        "scan": scan.id,
        "source": scan.cluster.source,
        "clusterUid": scan.cluster.uid,
        "serverVersion": scan.cluster.server_version,
        "startedAt": iso(scan.started_at),
        "finishedAt": iso(scan.finished_at) if scan.finished_at else None,
        "state": scan.state.value,
        "scope": _record(scan.scope),
        "requester": _record(scan.requester),
        "toolVersion": scan.tool_version,
        "policySetDigest": scan.policy_set_digest,
        "descriptionDigest": scan.description_digest,
        "preview": scan.preview,
        "notes": list(scan.notes),
        "method": _record(stored.method) if stored.method else None,
    }


def _rule_rows(stored: StoredScan) -> Iterator[Row]:
    for used in stored.policies:
        yield _policy_row(used)
        yield from map(_binding_row, used.bindings)
    yield from map(_record, stored.rules)


def _policy_row(used: PolicyRecord) -> Row:
    policy = used.policy
    return {
        "type": "policy",
        "language": policy.language,
        "name": policy.name,
        "source": policy.source,
        "digest": policy.digest,
        "manifest": policy.manifest,
        "reading": _record(used.reading),
    }


def _binding_row(binding: Binding) -> Row:
    return {
        "type": "binding",
        "language": binding.language,
        "policy": binding.policy_name,
        "name": binding.name,
        "source": binding.source,
        "digest": binding.digest,
        "actions": list(binding.actions),
        "assumed": binding.assumed,
        "manifest": binding.manifest,
    }


class _ChecksOfKind:
    """The digests of the checks that matched an object of a kind. Most objects have equal ones."""

    def __init__(self, sets: Iterable[EvaluatedObjects]) -> None:
        by_objects: defaultdict[int, list[bytes]] = defaultdict(list)
        for each in sets:
            for reason, objects in (("", each.evaluated), *each.not_evaluated.items()):
                by_objects[objects.bits()].append(encode_row({**_check_row(each), "notEvaluated": reason}) + b"\n")
        self._width = (max(map(int.bit_length, by_objects), default=0) + 7) >> 3
        # Bytes of one width: a test of a bit is the innermost step, which runs for each object and set.
        self._sets = [bits.to_bytes(self._width, "little") for bits in by_objects]
        self._lines = list(by_objects.values())
        self._known: dict[tuple[int, ...], str] = {(): ""}

    def digest_of(self, number: int) -> str:
        """The digest of the checks of an object, by the id of the object; empty if none matched."""
        byte, bit = number >> 3, 1 << (number & 7)
        if byte >= self._width:
            return ""
        places = tuple([place for place, objects in enumerate(self._sets) if objects[byte] & bit])
        if places not in self._known:
            lines = sorted(line for place in places for line in self._lines[place])
            self._known[places] = sha256(b"".join(lines)).hexdigest()
        return self._known[places]


def _population_rows(stored: StoredScan) -> Iterator[Row]:
    """A row for each kind, with the digest of its objects in the order of namespace, name and UID."""
    by_kind: defaultdict[tuple[str, str], list[EvaluatedObjects]] = defaultdict(list)
    for each in stored.evaluated_objects():
        by_kind[each.api_version, each.kind].append(each)
    for (api_version, kind), objects in groupby(stored.population(), lambda each: (each.api_version, each.kind)):
        checks = _ChecksOfKind(by_kind.pop((api_version, kind), ()))
        section = _digest_lines("objects", (_encode_plain(_object_row(each, checks)) for each in objects))
        yield {"apiVersion": api_version, "kind": kind, "objects": section.rows, "digest": section.digest}


def _object_row(item: RecordedObject, checks: _ChecksOfKind) -> Row:
    itself = Workload(item.api_version, item.kind, item.namespace, item.name)
    return {
        "namespace": item.namespace,
        "name": item.name,
        "uid": item.uid,
        "workload": None if item.workload == itself else _workload_row(item.workload),
        "labels": dict(item.labels),
        "annotations": dict(item.annotations),
        "checks": checks.digest_of(item.id),
    }


def _workload_row(of: Workload) -> Row:
    return _keep(apiVersion=of.api_version, kind=of.kind, namespace=of.namespace, name=of.name, derived=of.derived)


def _check_row(of: TallyKey | EvaluatedObjects) -> Mapping[str, Any]:
    return _check_parts(of.language, of.policy, of.binding, of.param_namespace, of.param_name, of.check)


@lru_cache(maxsize=4096)
def _check_parts(
    language: str, policy: str, binding: str, param_namespace: str, param_name: str, check: Check
) -> Mapping[str, Any]:
    """The fields of a check of an invocation, which findings share."""
    return {
        "language": language,
        "policy": policy,
        "binding": binding,
        "param": _keep(namespace=param_namespace, name=param_name),
        "check": _keep(kind=check.kind.value, index=check.index, expression=check.expression),
    }


def _keep(**members: Any) -> Row:
    """The members that are not empty."""
    return {name: value for name, value in members.items() if value}


def _tally_rows(stored: StoredScan) -> Iterator[Row]:
    for key, count in stored.tallies.items():
        yield {
            **_check_row(key),
            "apiVersion": key.api_version,
            "kind": key.kind,
            "namespace": key.namespace,
            "outcome": key.outcome.value,
            "dependsOnRequester": key.requester,
            "count": count,
        }
    for used in stored.policies:
        yield {"language": used.policy.language, "policy": used.policy.name, "matched": used.matched}
    if stored.opinion:
        yield _record(stored.opinion)


def _encode_finding(finding: Finding) -> bytes:
    """A finding as the JSON report has it, without the fields that follow from other scans, settings and waivers."""
    outcome, drift, error = finding.outcome, None, None
    match outcome:
        case WouldChange():
            name, message, reason, code, drift = "wouldChange", "", "", 0, drift_json(outcome)
        case Violated():
            name, message, reason, code = "violated", outcome.message, outcome.reason, outcome.code
        case Errored():
            name, message, reason, code = "errored", outcome.message, outcome.reason, outcome.code
            error = _keep(**error_json(outcome))
        case _ as never:
            assert_never(never)
    row = {
        "fingerprint": finding.fingerprint,
        **_check_parts(
            *(finding.language, finding.policy, finding.binding, finding.param_namespace, finding.param_name),
            finding.check,
        ),
        "outcome": name,
        "message": message,
        "reason": reason,
        "code": code,
        "drift": drift,
        "error": error,
        "object": _keep(
            apiVersion=finding.api_version,
            kind=finding.kind,
            namespace=finding.namespace,
            name=finding.name,
            uid=finding.uid,
        ),
        "operation": finding.operation,
        "actions": list(finding.actions),
        "wouldDeny": finding.denies,
        "exceptedBy": finding.excepted_by.split(", ") if finding.excepted_by else None,
        "evidence": _evidence_row(finding.evidence) if finding.evidence else None,
    }
    return encode_row(row) if drift else _encode_plain(row)


def _evidence_row(evidence: Evidence) -> Row:
    """The values that decided; the excerpt is that of the scan which found the finding first."""
    reasons = [
        _keep(
            expression=reason.expression,
            value="" if reason.erred else reason.value,
            error=reason.value if reason.erred else "",
            path=reason.path,
            variable=reason.variable,
        )
        for reason in evidence.reasons
    ]
    return _keep(reasons=reasons, leftOut=evidence.left_out)


def _coverage_rows(stored: StoredScan) -> Iterator[Row]:
    yield from map(_kind_row, stored.coverage)
    yield from ({"without": "policy", **_record(each)} for each in stored.uncovered)
    yield from ({"outside": each.kind, "name": each.name, "why": each.why} for each in stored.outside)


def _kind_row(line: Coverage) -> Row:
    """A kind. The time that its list took is no fact about the cluster."""
    row = _record(line)
    return {
        **{name: value for name, value in row.items() if name not in {"seconds", "pageDigests"}},
        "digest": line.digest,
    }
