"""The answer as JUnit XML, for the test views of CI servers: a test case for each manifest.

A refusal is a failure, and what could not be decided an error, so that a view is green only where the command ends with code 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from scanner.preview.verdict import CheckedObject, Verdict
from scanner.report.check.document import VERDICT_TEXTS, CheckDocument, describe_rule, name_object
from scanner.report.text.safe_text import visible

_ELEMENTS: Final = {Verdict.REFUSED: "failure", Verdict.PODS_REFUSED: "failure", Verdict.UNDECIDED: "error"}


def render(document: CheckDocument) -> str:
    """One `testsuites` element."""
    return "\n".join(('<?xml version="1.0" encoding="UTF-8"?>', *_list_elements(document), ""))


def _list_elements(document: CheckDocument) -> Iterator[str]:
    result, counts = document.result, document.counts
    failures = counts[Verdict.REFUSED] + counts[Verdict.PODS_REFUSED]
    errors = counts[Verdict.UNDECIDED] + len(result.gaps)
    tests = len(result.objects) + len(result.gaps)
    yield f"<testsuites name={_attribute(result.cluster.name)}>"
    yield f'<testsuite name="assay check" tests="{tests}" failures="{failures}" errors="{errors}">'
    for checked in result.objects:
        yield from _list_case(document, checked)
    for gap in result.gaps:
        yield f'  <testcase name={_attribute(gap.where)} classname="not read">'
        yield f"    <error message={_attribute(gap.why)}/>"
        yield "  </testcase>"
    yield "</testsuite>"
    yield "</testsuites>"


def _list_case(document: CheckDocument, checked: CheckedObject) -> Iterator[str]:
    lines = [
        f"{describe_rule(decision)}: {decision.message} (line {document.find_line(checked, decision)})"
        for decision in checked.decisions
    ]
    yield f"  <testcase name={_attribute(name_object(checked))} classname={_attribute(checked.place.source)}>"
    if element := _ELEMENTS.get(checked.verdict):
        yield f"    <{element} message={_attribute(VERDICT_TEXTS[checked.verdict])}>{_text(lines)}</{element}>"
    elif lines:
        yield f"    <system-out>{_text(lines)}</system-out>"
    yield "  </testcase>"


def _text(lines: list[str]) -> str:
    return escape(visible("\n".join(lines), lines=True))


def _attribute(text: str) -> str:
    return quoteattr(visible(text))
