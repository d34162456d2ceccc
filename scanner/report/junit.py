"""Findings as JUnit XML: a suite for each policy, a test case for each finding, for the test views of CI servers.

A violation is a failure and an error is an error. A finding that is waived, excepted, previewed or drift is skipped, because a
test view would show it red. A policy without findings has one case that passes. What the scan could not examine is a suite of
errors, so that an incomplete scan is never green. Shape: the schema of the Jenkins xUnit plugin.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import Final, TextIO
from xml.sax.saxutils import escape, quoteattr

from scanner.model.outcome import Errored, Violated, WouldChange
from scanner.model.policy import PolicyKey
from scanner.model.scan import ALONE, StoredFinding
from scanner.report.document import Document
from scanner.report.evidence import evidence_lines
from scanner.report.missed import Missed, missed
from scanner.report.sentences import verdict_of
from scanner.report.waivers import waiver_text
from scanner.report.words import (
    cause_text,
    check_title,
    iso,
    listed,
    message_of,
    object_name,
    owner_title,
    param_name,
    visible,
    workload_name,
)

_MEMORY: Final = 4_000_000
"""The bytes of a suite that are kept in memory until its numbers are known."""


def render(document: Document, out: TextIO) -> None:
    """Write one `testsuites` element."""
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(f"<testsuites name={_attribute(document.provenance.cluster.name)}>\n")
    _write_missed(document, out)
    seen = set()
    for policy, findings in groupby(document.findings(), key=lambda stored: stored.finding.policy_key):
        seen.add(policy)
        _write_suite(document, out, policy, findings)
    for section in document.policies:
        if section.key not in seen:
            name = f"{section.counts.passed:,} checks passed"
            case = f"    <testcase name={_attribute(name)} classname={_attribute(document.title(section.key))}/>\n"
            _write_element(document, out, document.title(section.key), Counter(tests=1), [case])
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
    parts = missed(document)
    if not parts and not document.complete:
        parts = (Missed("Not complete", verdict_of(document), "the scan", verdict_of(document)),)
    cases = (
        f"    <testcase name={_attribute(text)} classname={_attribute(title)}>"
        f"<error type={_attribute(title)} message={_attribute(text)}/></testcase>\n"
        for title, text, *_ in parts
    )
    if parts:
        _write_element(document, out, "Not examined", Counter(tests=len(parts), errors=len(parts)), cases)


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
    if by := listed(filter(None, (finding.binding, param_name(finding.param_namespace, finding.param_name)))):
        name += f" ({by})"
    result, element, kind = _result(document, stored)
    text = _text("\n".join(_facts(document, stored)))
    case = (
        f"    <testcase name={_attribute(name)} classname={_attribute(document.title(finding.policy_key))}>"
        f"<{element} {kind}message={_attribute(message_of(finding))}>{text}</{element}></testcase>\n"
    )
    return result, case


def _result(document: Document, stored: StoredFinding) -> tuple[str, str, str]:
    """The name of the count, the element, and its attribute `type` if it may have one."""
    finding = stored.finding
    if finding.excepted_by or stored.status in ALONE or document.triage.waiver(stored):
        return "skipped", "skipped", ""
    kind = f"type={_attribute(','.join(finding.actions) or 'none')} "
    match finding.outcome:
        case Violated():
            return "failures", "failure", kind
        case Errored():
            return "errors", "error", kind
        case WouldChange():
            return "skipped", "skipped", ""


def _facts(document: Document, stored: StoredFinding) -> Iterator[str]:
    finding, triage = stored.finding, document.triage
    facts = (
        ("id", stored.id),
        ("problem", stored.problem),
        ("severity", str(triage.severity(finding.policy_key))),
        ("owner", owner_title(triage.owner(stored))),
        ("workload", workload_name(stored)),
        ("status", stored.status),
        ("first seen", iso(stored.first_seen)),
        ("cause", cause_text(stored.cause) if stored.cause else ""),
        ("waiver", waiver_text(triage.waiver(stored))),
        ("would be refused", "yes" if finding.denies else "no"),
        ("controls", ", ".join(triage.controls(finding.policy_key))),
    )
    own = (f"{name}: {value}" for name, value in facts if value)
    return chain(own, evidence_lines(finding.evidence))


def _attribute(text: str) -> str:
    return quoteattr(visible(text))


def _text(text: str) -> str:
    return escape(visible(text, lines=True))
