"""Findings as JUnit XML: a suite for each policy, a test case for each finding, for the test views of CI servers.

A test view is red for what a gate (`--fail-on`) names: a violation is a failure, an error is an error. Other findings are skipped,
and so are waived, excepted and previewed ones; with `--junit-fail-all` every violation and error fails. A policy without findings
has one case that passes. What the scan could not examine is a suite of errors, so that an incomplete scan is never green. Shape:
the schema of the Jenkins xUnit plugin.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, groupby
from typing import Final, TextIO, assert_never
from xml.sax.saxutils import escape, quoteattr

from scanner.model.gate import Gate
from scanner.model.outcome import Errored, Finding, Violated, WouldChange
from scanner.model.policy import PolicyKey
from scanner.model.scans.health import HealthKind
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES, StoredFinding
from scanner.report.document.below_severity import find_below, findings_left_out, left_out_line
from scanner.report.document.document import Document
from scanner.report.document.notes import Missed, list_missed
from scanner.report.document.sentences import verdict_of
from scanner.report.document.waivers import waiver_text
from scanner.report.text.evidence import evidence_lines
from scanner.report.text.names import object_name, owner_title, param_name, workload_name
from scanner.report.text.numbers import join_texts
from scanner.report.text.safe_text import visible
from scanner.report.text.times import iso
from scanner.report.text.titles import HEALTH_TITLES, cause_text, check_title, message_of, sentence_of

_MEMORY: Final = 4_000_000
"""The bytes of a suite that are kept in memory until its numbers are known."""


def render(document: Document, out: TextIO) -> None:
    """Write one `testsuites` element."""
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(f"<testsuites name={_attribute(document.provenance.cluster.name)}>\n")
    _write_missed(document, out)
    _write_health(document, out)
    seen, below = set[PolicyKey](), find_below(document)
    shown = (stored for stored in document.findings() if not below(*stored.finding.severity_key))
    for policy, findings in groupby(shown, key=lambda stored: stored.finding.policy_key):
        seen.add(policy)
        _write_suite(document, out, policy, findings)
    for section in document.policies:
        if section.key not in seen and not below.has_policy(section.key):
            name = f"{section.counts.passed:,} checks passed"
            case = f"    <testcase name={_attribute(name)} classname={_attribute(document.title(section.key))}/>\n"
            _write_element(document, out, document.title(section.key), Counter(tests=1), [case])
    _write_left_out(document, out)
    out.write("</testsuites>\n")


def _write_suite(document: Document, out: TextIO, policy: PolicyKey, findings: Iterable[StoredFinding]) -> None:
    """Keep the cases of a suite in a file until they are counted: the numbers come first."""
    counts: Counter[str] = Counter()
    with tempfile.SpooledTemporaryFile(_MEMORY, "w+", encoding="utf-8", newline="") as cases:
        for stored in findings:
            result, case = _case(document, stored)
            counts.update(("tests", result))
            cases.write(case)
        cases.seek(0)
        _write_element(document, out, document.title(policy), counts, cases)


def _write_missed(document: Document, out: TextIO) -> None:
    parts = list_missed(document)
    if not parts and not document.complete:
        parts = (Missed("Not complete", verdict_of(document), "the scan", verdict_of(document)),)
    cases = (
        f"    <testcase name={_attribute(text)} classname={_attribute(title)}>"
        f"<error type={_attribute(title)} message={_attribute(text)}/></testcase>\n"
        for title, text, *_ in parts
    )
    if parts:
        _write_element(document, out, "Not examined", Counter(tests=len(parts), errors=len(parts)), cases)


def _write_health(document: Document, out: TextIO) -> None:
    """The entries for which the gate `health` fails."""
    if Gate.HEALTH not in document.options.gates:
        return
    below = find_below(document)
    entries = [
        each for each in document.health if each.kind is not HealthKind.NOTE and not below.has_policy(each.policy_key)
    ]
    cases = (
        f"    <testcase name={_attribute(f'{HEALTH_TITLES[each.kind]}: {each.detail}')} classname={_attribute(each.policy)}>"
        f"<failure type={_attribute(each.kind)} message={_attribute(each.detail)}/></testcase>\n"
        for each in entries
    )
    if entries:
        _write_element(document, out, "Policy health", Counter(tests=len(entries), failures=len(entries)), cases)


def _write_left_out(document: Document, out: TextIO) -> None:
    """The number of findings below the severity that the user asks for, as a skipped case."""
    if not (text := left_out_line(document, findings_left_out(document), "finding")):
        return
    name = _attribute(text)
    case = f'    <testcase name={name} classname="Left out"><skipped message={name}/></testcase>\n'
    _write_element(document, out, "Left out", Counter(tests=1, skipped=1), [case])


def _write_element(document: Document, out: TextIO, name: str, counts: Counter[str], cases: Iterable[str]) -> None:
    numbers = " ".join(f'{kind}="{counts[kind]}"' for kind in ("tests", "failures", "errors", "skipped"))
    stamp = document.provenance.started_at.strftime("%Y-%m-%dT%H:%M:%S")
    out.write(f'  <testsuite name={_attribute(name)} {numbers} time="0" timestamp="{stamp}">\n')
    out.writelines(cases)
    out.write("  </testsuite>\n")


def _case(document: Document, stored: StoredFinding) -> tuple[str, str]:
    """The name under which a case is counted, and its element."""
    finding = stored.finding
    name = f"{finding.kind} {object_name(finding)}: {check_title(finding.check)}"
    if by := join_texts(filter(None, (finding.binding, param_name(finding.param_namespace, finding.param_name)))):
        name += f" ({by})"
    result, element, kind = _result(document, stored)
    text = _text("\n".join(_facts(document, stored)))
    case = (
        f"    <testcase name={_attribute(name)} classname={_attribute(document.title(finding.policy_key))}>"
        f"<{element} {kind}message={_attribute(_sentence(document, finding))}>{text}</{element}></testcase>\n"
    )
    return result, case


def _sentence(document: Document, finding: Finding) -> str:
    return sentence_of(finding, document.triage.description(finding.policy_key).title)


def _result(document: Document, stored: StoredFinding) -> tuple[str, str, str]:
    """The name of the count, the element, and its attribute `type` if it may have one."""
    finding = stored.finding
    if (
        finding.excepted_by
        or stored.status in SINGLE_SCAN_STATUSES
        or document.triage.waiver(stored)
        or not _fails(document, stored)
    ):
        return "skipped", "skipped", ""
    kind = f"type={_attribute(','.join(finding.actions) or 'none')} "
    if isinstance(finding.outcome, Errored):
        return "errors", "error", kind
    return "failures", "failure", kind


def _fails(document: Document, stored: StoredFinding) -> bool:
    """Return whether a finding that counts fails its case: a gate names it, or every violation and error fails."""
    options, baseline = document.options, document.baseline
    if options.fail_all and not isinstance(stored.finding.outcome, WouldChange):
        return True
    new = baseline.new if baseline else frozenset()
    return any(_names(gate, stored, new) for gate in options.gates)


def _facts(document: Document, stored: StoredFinding) -> Iterator[str]:
    finding, triage = stored.finding, document.triage
    message = message_of(finding)
    facts = (
        ("message", message if message != _sentence(document, finding) else ""),
        ("id", stored.id),
        ("problem", stored.problem),
        ("severity", str(triage.severity(*finding.severity_key))),
        ("owner", owner_title(triage.owner(stored))),
        ("workload", workload_name(stored)),
        ("status", stored.status),
        ("first seen", iso(stored.first_seen)),
        ("cause", cause_text(stored.cause) if stored.cause else ""),
        ("waiver", waiver_text(triage.waiver(stored))),
        ("would be refused", "yes" if finding.denies else "no"),
        ("controls", ", ".join(triage.controls(*finding.severity_key))),
    )
    lines = (f"{name}: {value}" for name, value in facts if value)
    return chain(lines, evidence_lines(finding.evidence))


def _attribute(text: str) -> str:
    return quoteattr(visible(text))


def _text(text: str) -> str:
    return escape(visible(text, lines=True))


def _names(gate: Gate, stored: StoredFinding, new: Collection[str]) -> bool:
    """Return whether a gate fails for an open finding that counts. `new` are the ids of the new problems."""
    outcome = stored.finding.outcome
    match gate:
        case Gate.NEW:
            return stored.problem in new if stored.problem else stored.status == "new"
        case Gate.DENY:
            return stored.finding.denies
        case Gate.VIOLATED:
            return isinstance(outcome, Violated)
        case Gate.ERRORED:
            return isinstance(outcome, Errored)
        case Gate.DRIFT:
            return isinstance(outcome, WouldChange)
        case Gate.HEALTH:
            return False
        case _ as never:
            assert_never(never)
