"""The report as OSCAL assessment results, for tools of governance, risk and compliance.

An observation is a finding of the scan. A finding of OSCAL is the state of a target: of a control where the report has mappings
of controls, else of a policy. It is `satisfied` only if the scan shows so: a target that was not covered is not. Identifiers are
derived from the scan, so the same scan gives the same document. Source of truth: NIST's OSCAL 1.2.3, assessment results.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from scanner.model.json import JsonObject
from scanner.model.outcome import Finding
from scanner.model.policy import PolicyKey
from scanner.model.scans.stored_finding import StoredFinding
from scanner.posture.controls import ControlState
from scanner.report.document.by_control import ControlSection, FrameworkSection
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.counts import CheckCounts
from scanner.report.document.document import Document
from scanner.report.document.sentences import headline_of, score_line, verdict_of
from scanner.report.document.waivers import waiver_text
from scanner.report.group_files import GroupReader, GroupWriter, file_name
from scanner.report.text.evidence import evidence_lines
from scanner.report.text.json_text import dump
from scanner.report.text.names import object_name, owner_title, param_name, workload_name
from scanner.report.text.numbers import plural
from scanner.report.text.safe_text import visible
from scanner.report.text.times import iso
from scanner.report.text.titles import cause_text, check_title, message_of, result_word

VERSION: Final = "1.2.3"
"""The version of OSCAL."""
NAMESPACE: Final = "https://assay.dev/ns/oscal"
"""The namespace of the names of properties that are Assay's own."""
_ROOT: Final = uuid5(NAMESPACE_URL, NAMESPACE)
_TOKEN: Final = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class _OscalTarget:
    """The target of a finding of OSCAL: `id` is a token, `why` a sentence if the target is not satisfied. `group` has the ids of its observations."""

    id: str
    title: str
    satisfied: bool
    reason: str
    why: str
    group: str


def render(document: Document, out: BinaryIO) -> None:
    """Write one document. Observations are streamed, and their ids wait on disk for the findings that name them."""
    scan = uuid5(_ROOT, document.provenance.scan_id)
    out.write(b'{"assessment-results": {\n"uuid": ' + dump(str(scan)))
    out.writelines(b",\n" + dump(name) + b": " + dump(value) for name, value in _head(document, scan).items())
    out.write(b',\n"results": [' + dump(_result(document, scan))[:-1])
    with tempfile.TemporaryDirectory() as folder:
        observations = Path(folder) / "observations"
        writer = GroupWriter(observations)
        _write(out, "observations", _observations(document, scan, writer))
        writer.flush()
        _write(out, "findings", _findings(document, scan, GroupReader([observations])))
    out.write(b"}]}}\n")


def _write(out: BinaryIO, name: str, items: Iterator[Iterable[bytes]]) -> None:
    """A field with a list of items in pieces; a list without items is not allowed, so the field is left out."""
    out.writelines(_join_items(name, items, b",\n"))


def _join_items(name: str, items: Iterator[Iterable[bytes]], line: bytes) -> Iterator[bytes]:
    """The bytes of a field with a list, with `line` before each item but the first; nothing without items."""
    separator = line.removesuffix(b"\n") + b'"' + name.encode() + b'":[' + line.removeprefix(b",")
    end = b""
    for item in items:
        yield separator
        yield from item
        separator, end = line, b"]"
    yield end


def _head(document: Document, scan: UUID) -> JsonObject:
    provenance = document.provenance
    plan = str(uuid5(scan, "plan"))
    return {
        "metadata": {
            "title": _line(f"Assay: admission policies of {provenance.cluster.name}"),
            "last-modified": iso(provenance.ended_at),
            "version": provenance.scan_id,
            "oscal-version": VERSION,
        },
        "import-ap": {
            "href": f"#{plan}",
            "remarks": "The plan is the set of policies that were bound during the scan.",
        },
        "back-matter": {
            "resources": [
                {
                    "uuid": plan,
                    "title": "Bound admission policies",
                    "props": _props(("policy-set-digest", provenance.policy_set_digest or "not known")),
                }
            ]
        },
    }


def _result(document: Document, scan: UUID) -> JsonObject:
    """The fields of the result but its observations and findings."""
    provenance = document.provenance
    cluster: JsonObject = {
        "uuid": str(_cluster(scan)),
        "type": "system",
        "title": _line(provenance.cluster.name),
        "description": _line(f"Kubernetes {provenance.cluster.server_version}"),
        "status": {"state": "operational"},
    }
    missed = [f"Not examined: {visible(text)}" for text in document.coverage.unseen]
    return {
        "uuid": str(uuid5(scan, "result")),
        "title": _line(f"Scan {provenance.scan_id}"),
        "description": "\n\n".join(
            (headline_of(document), visible(verdict_of(document)), visible(score_line(document)), *missed)
        ),
        "start": iso(provenance.started_at),
        "end": iso(provenance.ended_at),
        "props": _props(("state", str(provenance.state)), ("tool", f"Assay {provenance.tool_version}")),
        "local-definitions": {"components": [cluster]},
        "reviewed-controls": {"control-selections": [_select_reviewed(document)]},
    }


def _select_reviewed(document: Document) -> JsonObject:
    controls = [_control(framework, each) for framework in document.controls for each in framework.controls]
    return {"include-controls": [{"control-id": number} for number in controls]} if controls else {"include-all": {}}


def _control(framework: FrameworkSection, control: ControlSection) -> str:
    return _token(f"{framework.name}_{control.id}")


def _observations(document: Document, scan: UUID, writer: GroupWriter) -> Iterator[tuple[bytes]]:
    for stored in document.findings():
        number = str(uuid5(scan, stored.finding.fingerprint))
        for group in _groups(document, stored.finding):
            writer.add(group, number)
        yield (dump(_observation(document, stored, scan, number)),)


def _observation(document: Document, stored: StoredFinding, scan: UUID, number: str) -> JsonObject:
    finding, triage = stored.finding, document.triage
    evidence = "\n\n".join(visible(line) for line in evidence_lines(finding.evidence))
    waiver = triage.waiver(stored)
    return {
        "uuid": number,
        "title": _line(f"{document.title(finding.policy_key)}: {finding.kind} {object_name(finding)}"),
        "description": visible(message_of(finding), lines=True) or result_word(finding.outcome),
        "props": _props(
            ("id", stored.id),
            ("problem", stored.problem),
            ("outcome", result_word(finding.outcome)),
            ("severity", str(triage.severity(*finding.severity_key))),
            ("status", stored.status),
            ("owner", owner_title(triage.owner(stored))),
            ("cause", cause_text(stored.cause) if stored.cause else ""),
            ("waiver", waiver_text(waiver)),
            ("would-be-refused", "yes" if finding.denies else "no"),
            ("excepted-by", finding.excepted_by),
            ("policy", finding.policy),
            ("language", finding.language),
            ("binding", finding.binding),
            ("param", param_name(finding.param_namespace, finding.param_name)),
            ("check", check_title(finding.check)),
            ("first-seen", iso(stored.first_seen)),
        ),
        "methods": ["TEST"],
        "types": ["finding"],
        "subjects": [_subject(stored, scan)],
        **({"relevant-evidence": [{"description": evidence}]} if evidence else {}),
        "collected": iso(stored.last_seen),
    }


def _subject(stored: StoredFinding, scan: UUID) -> JsonObject:
    """The cluster is the subject, and its properties name the object: a list of all objects would have no end."""
    finding = stored.finding
    return {
        "subject-uuid": str(_cluster(scan)),
        "type": "component",
        "title": _line(f"{finding.kind} {object_name(finding)}"),
        "props": _props(
            ("api-version", finding.api_version),
            ("kind", finding.kind),
            ("namespace", finding.namespace),
            ("name", finding.name),
            ("uid", finding.uid),
            ("workload", workload_name(stored)),
        ),
    }


def _findings(document: Document, scan: UUID, observed: GroupReader) -> Iterator[Iterable[bytes]]:
    for target in _targets(document):
        related = observed.rows(target.group)
        references = ((b'{"observation-uuid":' + dump(number) + b"}",) for number in related)
        yield chain([dump(_finding(target, scan))[:-1]], _join_items("related-observations", references, b","), [b"}"])


def _finding(target: _OscalTarget, scan: UUID) -> JsonObject:
    state = "satisfied" if target.satisfied else "not-satisfied"
    return {
        "uuid": str(uuid5(scan, f"finding {target.id}")),
        "title": _line(target.title),
        "description": visible(target.why, lines=True) or "Every check passed.",
        "target": {
            "type": "objective-id",
            "target-id": target.id,
            "status": {"state": state, "reason": target.reason},
        },
    }


def _targets(document: Document) -> Iterator[_OscalTarget]:
    if document.controls:
        yield from _controls(document)
        return
    for section in document.policies:
        yield _policy(document, section)


def _controls(document: Document) -> Iterator[_OscalTarget]:
    for framework in document.controls:
        for control in framework.controls:
            yield _OscalTarget(
                id=_control(framework, control),
                title=f"{framework.heading}, {control.id} {control.title}",
                satisfied=control.state is ControlState.MET,
                reason=_REASONS.get(control.state, "other"),
                why="\n\n".join(control.why),
                group=_control_group(f"{framework.name}/{control.id}"),
            )


_REASONS: Final = {ControlState.MET: "pass", ControlState.VIOLATED: "fail"}


def _policy(document: Document, section: PolicySection) -> _OscalTarget:
    counts = document.count_in_force(section)
    why = _why(document, counts)
    return _OscalTarget(
        id=_token(f"{section.language}_{section.key[1]}"),
        title=document.title(section.key),
        satisfied=not why,
        reason="fail" if counts.failing else "other" if why else "pass",
        why=why,
        group=_group(section.key),
    )


def _why(document: Document, counts: CheckCounts) -> str:
    """The reason why a scan does not show that a policy is met; empty if it does. `counts` are those of its bindings in force."""
    if counts.failing or counts.would_change:
        numbers = plural(counts.failing, "check"), plural(counts.would_change, "mutation")
        return f"{numbers[0]} failed; {numbers[1]} would change an object."
    if not counts.passed:
        return "No check of this policy was evaluated."
    return "" if document.complete else "The scan is incomplete."


def _props(*pairs: tuple[str, str]) -> list[JsonObject]:
    """Properties with a value; those of no OSCAL name are in Assay's namespace."""
    return [{"name": name, "ns": NAMESPACE, "value": text} for name, value in pairs if (text := _line(value, ""))]


def _line(text: str, otherwise: str = "(empty)") -> str:
    """A text on one line that begins and ends with a printed character, as values in OSCAL must."""
    return visible(text).strip() or otherwise


def _token(text: str) -> str:
    """An identifier in the form of XML names. A name that is changed has a hash of the original one, so that two stay two."""
    plain = _TOKEN.sub("_", text)
    changed = f"-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}" if plain != text else ""
    return f"{plain if plain[:1].isalpha() else '_' + plain}{changed}"


def _cluster(scan: UUID) -> UUID:
    return uuid5(scan, "cluster")


def _group(policy: PolicyKey) -> str:
    return file_name("\n".join(policy))


def _control_group(control: str) -> str:
    return file_name(f"control {control}")


def _groups(document: Document, finding: Finding) -> Iterator[str]:
    """The groups of the observation of a finding: the targets to which it is related."""
    if document.controls:
        yield from map(_control_group, document.triage.controls(*finding.severity_key))
        return
    yield _group(finding.policy_key)
