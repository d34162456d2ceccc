"""What a list shows of a problem follows from those of its findings that the numbers of a report count."""

from __future__ import annotations

import pytest

from scanner.report.lists.problem_facts import FindingFacts, problem_facts

REFUSED = FindingFacts(
    status="open",
    episode="open",
    checked=True,
    outcome="violated",
    denies=True,
    actions=("Deny",),
    excepted=False,
    waived=False,
)
WARNED = REFUSED._replace(denies=False, actions=("Warn",))
WAIVED = REFUSED._replace(waived=True)
EXCEPTED = REFUSED._replace(denies=False, excepted=True)
PREVIEW = REFUSED._replace(status="preview")
UNCHECKED = REFUSED._replace(checked=False)
RESOLVED = REFUSED._replace(status="resolved")


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([REFUSED], ("open", "Deny", True, "deny", False, False)),
        ([REFUSED, WARNED], ("open", "Deny", True, "deny", False, False)),
        ([WARNED, WAIVED], ("open", "Warn", False, "warn", False, False)),
        ([WARNED, EXCEPTED], ("open", "Warn", False, "warn", False, False)),
        ([WAIVED], ("open", "Deny", True, "deny", True, False)),
        ([EXCEPTED], ("open", "Deny", False, "excepted", False, True)),
        ([EXCEPTED, WAIVED], ("open", "Deny", True, "deny", True, False)),
        ([PREVIEW], ("preview", "Deny", True, "preview-deny", False, False)),
        ([UNCHECKED], ("unchecked", "Deny", True, "deny", False, False)),
        ([REFUSED, RESOLVED], ("open", "Deny", True, "deny", False, False)),
        ([RESOLVED], ("resolved", "", False, "resolved", False, False)),
    ],
)
def test_the_counted_findings_decide(findings: list[FindingFacts], expected: tuple[object, ...]) -> None:
    """Waived and excepted findings decide only about a problem that has no others."""
    assert expected == problem_facts(findings)


def test_what_counts_comes_first() -> None:
    """The findings of a problem, and the problems of a list, are ordered alike."""
    ordered = [REFUSED, WARNED, WAIVED, UNCHECKED, RESOLVED]
    assert ordered == sorted((*ordered[2:], *ordered[:2]), key=lambda finding: finding.badness)


def test_the_list_begins_with_what_the_verdict_counts() -> None:
    """A waived refusal comes after every problem that counts, and a resolved one last."""
    problems = [problem_facts([each]) for each in (REFUSED, WARNED, WAIVED, EXCEPTED, PREVIEW, UNCHECKED, RESOLVED)]
    assert problems == sorted((*problems[3:], *problems[:3]), key=lambda problem: problem.order(2))
