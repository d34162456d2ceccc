"""The explanation of a finding or of a problem: what is wrong, where, whose it is, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, assert_never

from scanner.cli.explain_description import description_of, expression
from scanner.cli.settings import settings
from scanner.model.outcome import CheckKind, Errored, Violated, WouldChange
from scanner.model.reading import Auditability

if TYPE_CHECKING:
    from datetime import datetime

    from scanner.cli.explanation import Part
    from scanner.model.scans.scan import StoredFinding
    from scanner.report.text.screen import Screen
    from scanner.store.read.lookup import ExplainedFinding, ExplainedProblem

_LONGEST: Final = 120


def problem(explained: ExplainedProblem, screen: Screen) -> Iterator[Part]:
    """A problem: one of its findings, and the list of all of them."""
    from scanner.report.text.numbers import plural
    from scanner.report.text.printing import Command, command_line

    example = explained.findings[0]
    numbers = [f"{plural(explained.open, 'open finding')}"] if explained.open else []
    numbers += [f"{explained.resolved:,} resolved"] if explained.resolved else []
    numbers += [plural(explained.alone, "preview or outdated finding")] if explained.alone else []
    yield f"Problem {explained.id}: {', '.join(numbers)} of one check and one workload"
    yield from finding(example, of_problem=True)
    others = explained.findings[1:]
    if others:
        yield ""
        yield "Other findings of this problem:"
        yield from (f"    {line(each.stored)}" for each in others)
    if hidden := explained.open + explained.resolved + explained.alone - len(explained.findings):
        yield f"    and {hidden:,} more"
        command = f"findings {explained.id} --limit 0 --scan {example.scan.id}"
        yield Command(command_line(screen, command), "all findings of the problem")


def line(stored: StoredFinding) -> str:
    """A finding on one line."""
    from scanner.report.text.names import object_name
    from scanner.report.text.titles import message_of

    reason = " ".join(message_of(stored.finding).split())
    shown = reason if len(reason) <= _LONGEST else f"{reason[: _LONGEST - 1]}…"
    return f"{stored.id}  {_state(stored)}  {stored.finding.kind} {object_name(stored.finding)}: {shown}"


def finding(explained: ExplainedFinding, *, of_problem: bool = False) -> Iterator[str]:
    """A finding with its evidence, the effect on a request, and its history."""
    from scanner.posture.owners import Owners
    from scanner.report.text.evidence import lines_with_excerpt
    from scanner.report.text.names import object_name, owner_title, param_name, workload_name

    stored, posture = explained.stored, settings()
    found = stored.finding
    yield f"Finding {stored.id}: {found.api_version} {found.kind} {object_name(found)}"
    if workload := workload_name(stored):
        yield f"Workload {workload}"
    unknown = "" if stored.kept else " (an older version stored no labels of the object)"
    yield f"Owner {owner_title(Owners(posture.owners)(stored.kept))}{unknown}"
    yield f"Policy {found.policy}, binding {found.binding}, {_check(stored)}"
    if found.param_name:
        yield f"Param {param_name(found.param_namespace, found.param_name)}"
    if explained.policy is not None:
        yield from description_of(explained.policy)
    yield ""
    match found.outcome:
        case Violated(message=message, reason=reason, code=code):
            yield f"Violated: {message}  ({reason}, {code})"
        case WouldChange(message=message):
            yield "Drift: the policy would change the object."
            yield message
        case Errored(message=message):
            yield f"Errored: {message}"
        case _ as never:
            assert_never(never)
    yield from expression("Check:", found.check.expression or "(configuration of the policy or binding)")
    if found.evidence:
        yield "Evidence:"
        yield from (f"    {line}" for line in lines_with_excerpt(found.evidence))
    yield ""
    effect = "refused" if found.denies else "admitted"
    yield f"This object would be {effect} on {found.operation} (actions: {', '.join(found.actions)})."
    yield from _limits(explained)
    if stored.status == "preview":
        yield f"Preview of {_stamp(stored.last_seen)}: the policy is not bound, and the finding has no history."
        return
    if stored.status == "outdated":
        yield f"Outdated in the scan of {_stamp(stored.last_seen)}: a scan that began later shows that it is not open."
        return
    yield f"First seen {_stamp(stored.first_seen)}, last seen {_stamp(stored.last_seen)}, now {_state(stored)}."
    yield from _events(explained)
    if stored.problem and not of_problem:
        yield f"It belongs to the problem {stored.problem}: this check and the workload of the object."


def _events(explained: ExplainedFinding) -> Iterator[str]:
    """What scans changed about the finding, and why."""
    from scanner.report.text import titles

    for event in explained.events:
        name = (
            f"continues finding {event.continues}" if event.continues else titles.EVENTS.get(event.event, event.event)
        )
        why = f": {titles.cause_text(event.cause)}" if event.cause else ""
        yield f"    {_stamp(event.at)}  {name}{why}"


def _state(stored: StoredFinding) -> str:
    """The status, with the time and the reason of a resolution."""
    from scanner.report.text import titles

    reason = titles.RESOLUTIONS.get(stored.resolution, "")
    when = f" {_stamp(stored.resolved_at)}" if stored.resolved_at else ""
    moved = f", see {stored.moved_to}" if stored.moved_to else ""
    return f"{stored.status}{when}{f': {reason}' if reason else ''}{moved}"


def _limits(explained: ExplainedFinding) -> Iterator[str]:
    """The extent to which the finding predicts admission, for a check that is not fully auditable."""
    from scanner.report.text import titles

    user = explained.scan.requester.username or "the user that scanned"
    for auditability in explained.reading.of(explained.stored.finding.check):
        simulated = f" (here: {user})" if auditability is Auditability.REQUESTER else ""
        yield f"The check {titles.AUDITABILITY[auditability]}{simulated}: {titles.AUDITABILITY_MEANINGS[auditability]}"


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"


def _check(stored: StoredFinding) -> str:
    check = stored.finding.check
    indexed = check.kind in (CheckKind.VALIDATION, CheckKind.AUDIT_ANNOTATION, CheckKind.MUTATION)
    return f"{check.kind.value} {check.index}" if indexed else check.kind.value
