"""The waivers of a report and the policy exceptions of Kyverno, with the findings that each of them concerns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import Final

from scanner.model.json import Json
from scanner.model.selector import Requirement, Selector
from scanner.model.waiver import WaiverSet
from scanner.posture.triage import Triage
from scanner.posture.waivers.waivers import AppliedWaiver, WaiverRules, WaiverState, state_on
from scanner.posture.waivers.waiving import WaiverUse

EXCEPTED: Final = "excepted"
"""The state of a policy exception of Kyverno."""

STATE_WORDS: Final = {
    WaiverState.ACTIVE: "active",
    WaiverState.EXPIRING: "expiring",
    WaiverState.EXPIRED: "expired",
    WaiverState.NOT_YET_ACTIVE: "not yet active",
    WaiverState.UNUSED: "unused",
    WaiverState.TOO_BROAD: "too broad",
    WaiverState.TOO_LONG: "too long",
    WaiverState.SELF_APPROVED: "self-approved",
    WaiverState.UNKNOWN_POLICY: "unknown policy",
    WaiverState.UNKNOWN_CHECK: "unknown check",
}
_WHY: Final = {
    WaiverState.TOO_BROAD: "it names no namespace, workload, object or selector",
    WaiverState.TOO_LONG: "it applies for more days than the configuration allows, or has no first day",
    WaiverState.SELF_APPROVED: "the requester approved it",
}


@dataclass(frozen=True, slots=True)
class WaiverLine:
    """A waiver on the day of the report. `findings` are those that it waives; of a waiver that has lapsed, those that it would waive."""

    name: str
    state: WaiverState
    why: str
    findings: int
    problems: int
    cluster: str
    policy: str
    check: str
    check_digest: str
    namespace: str
    workload: str
    object: str
    selector: str
    reason: str
    requested_by: str
    approved_by: str
    ticket: str
    since: date | None
    until: date
    control: str
    source: str

    @property
    def scope(self) -> str:
        """The fields that restrict the waiver, besides the policy, as a text."""
        named = {
            "check": self.check,
            "namespace": self.namespace,
            "workload": self.workload,
            "object": self.object,
            "selector": self.selector,
        }
        return ", ".join(f"{key} {value}" for key, value in named.items() if value)


@dataclass(frozen=True, slots=True)
class ExceptionLine:
    """A policy exception of Kyverno. It is no waiver: outcomes under it are excepted."""

    name: str
    findings: int
    state: str = EXCEPTED


@dataclass(frozen=True, slots=True)
class WaiversSection:
    """The waivers of a report as of `day`. `findings` and `problems` are waived; `lapsed` findings only a waiver that has lapsed matches.

    `given` is false for a report without waivers, which is not the same as a report with none. `faults` are documents that could
    not be read as waivers, `notes` what else was left out. `counted` is false if no scan was read: the numbers of findings and
    problems are not known then.
    """

    day: date
    given: bool
    findings: int
    problems: int
    lapsed: int
    lines: tuple[WaiverLine, ...]
    exceptions: tuple[ExceptionLine, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    counted: bool = True

    @property
    def states(self) -> Counter[WaiverState]:
        """The number of waivers in each state."""
        return Counter(line.state for line in self.lines)


def waivers_of(triage: Triage) -> WaiversSection:
    """The waivers of the report of a scan."""
    waived, waivers = triage.waived, triage.waiving.waivers
    return WaiversSection(
        day=triage.day,
        given=waivers is not None,
        findings=waived.findings,
        problems=waived.problems,
        lapsed=sum(lapsed.findings for lapsed in waived.lapsed),
        lines=tuple(map(_line, waived.uses)),
        exceptions=tuple(ExceptionLine(use.name, use.findings) for use in triage.waiving.exceptions),
        faults=waivers.faults if waivers else (),
        notes=waivers.notes if waivers else (),
    )


def waivers_of_files(waivers: WaiverSet, day: date, rules: WaiverRules) -> WaiversSection:
    """The waivers of some files on a day, for every cluster, as far as their states do not depend on a scan."""
    return WaiversSection(
        day=day,
        given=True,
        findings=0,
        problems=0,
        lapsed=0,
        lines=tuple(_line(WaiverUse(waiver, state_on(waiver, day, rules))) for waiver in waivers.waivers),
        exceptions=(),
        faults=waivers.faults,
        notes=waivers.notes,
        counted=False,
    )


def _line(use: WaiverUse) -> WaiverLine:
    waiver = use.waiver
    return WaiverLine(
        name=waiver.name,
        state=use.state,
        why=use.why or _WHY.get(use.state, ""),
        findings=use.findings,
        problems=use.problems,
        cluster=waiver.cluster,
        policy=waiver.policy,
        check=waiver.check,
        check_digest=waiver.check_digest,
        namespace=waiver.namespace,
        workload=waiver.workload,
        object=waiver.object,
        selector=selector_text(waiver.selector),
        reason=waiver.reason,
        requested_by=waiver.requested_by,
        approved_by=waiver.approved_by,
        ticket=waiver.ticket,
        since=waiver.since,
        until=waiver.until,
        control=waiver.control,
        source=waiver.source,
    )


def waiver_text(waiver: AppliedWaiver | None) -> str:
    """The waiver of a finding with its end, such as `legacy until 2026-03-31`; empty without one."""
    return f"{waiver.name} until {waiver.until}" if waiver else ""


def selector_text(selector: Selector) -> str:
    """A selector in the form of `-l`, empty for one that selects everything."""
    return ",".join(map(_requirement_text, selector.requirements))


def _requirement_text(requirement: Requirement) -> str:
    values = ", ".join(requirement.values)
    match requirement.operator:
        case "In":
            return f"{requirement.key}={values}" if len(requirement.values) == 1 else f"{requirement.key} in ({values})"
        case "NotIn":
            return f"{requirement.key} notin ({values})"
        case "Exists":
            return requirement.key
        case _:
            return f"!{requirement.key}"


def section_json(section: WaiversSection) -> dict[str, Json]:
    """The section as a JSON object; empty texts and unknown numbers are null."""
    counted = section.counted
    return {
        "day": section.day.isoformat(),
        "given": section.given,
        "findings": section.findings if counted else None,
        "problems": section.problems if counted else None,
        "lapsed": section.lapsed if counted else None,
        "waivers": [line_json(line, counted=counted) for line in section.lines],
        "exceptions": [
            {"name": line.name, "state": line.state, "findings": line.findings} for line in section.exceptions
        ],
        "faults": list(section.faults),
        "notes": list(section.notes),
    }


def line_json(line: WaiverLine, *, counted: bool) -> dict[str, Json]:
    """A waiver as a JSON object; empty texts and unknown numbers are null."""
    return {
        "name": line.name,
        "state": line.state.value,
        "why": line.why or None,
        "findings": line.findings if counted else None,
        "problems": line.problems if counted else None,
        "cluster": line.cluster or None,
        "policy": line.policy,
        "check": line.check or None,
        "checkDigest": line.check_digest or None,
        "namespace": line.namespace or None,
        "workload": line.workload or None,
        "object": line.object or None,
        "selector": line.selector or None,
        "reason": line.reason,
        "requestedBy": line.requested_by,
        "approvedBy": line.approved_by,
        "ticket": line.ticket or None,
        "from": line.since.isoformat() if line.since else None,
        "until": line.until.isoformat(),
        "control": line.control or None,
        "source": line.source,
    }
