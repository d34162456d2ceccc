"""What scans of the last days resolved, before the scan of a report: `resolved.html`, and the places of these findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final, NamedTuple

from scanner.model.scans.stored_finding import StoredFinding
from scanner.report.html.place_pages import place_path
from scanner.report.html.site import Site, split_pages, weight
from scanner.report.html.templates import NAME
from scanner.report.text.names import object_name
from scanner.report.text.titles import RESOLUTIONS, sentence_of

PAGE: Final = "resolved.html"


class ResolvedLine(NamedTuple):
    """A problem whose findings a scan resolved. `id` is that of the problem, or of the only finding; `place` is empty if no page has it."""

    id: str
    place: str
    at: datetime
    why: str
    severity: str
    kind: str
    name: str
    message: str
    title: str
    policy_path: str
    check: str
    findings: int


@dataclass(frozen=True, slots=True)
class ResolvedProblems:
    """The findings that earlier scans resolved, the last resolved first."""

    findings: Sequence[StoredFinding] = ()

    @classmethod
    def of(cls, site: Site) -> ResolvedProblems:
        """Those of the scan of a report."""
        return cls(tuple(site.document.stored.resolved_before()))

    def lines(self, site: Site) -> Sequence[ResolvedLine]:
        """The lines of the page, which has room for some hundreds."""
        first = next(split_pages(_lines(site, self.findings), lambda line: weight(line.name, line.message, line.title)))
        return first.rows

    def elsewhere(self, site: Site) -> Mapping[str, str]:
        """The addresses, from a folder, of findings whose policy the scan does not have, by id: their lines on the page of resolved problems."""
        gone = [each for each in self.findings if each.finding.policy_key not in site.sections]
        shown = {line.id for line in self.lines(site)} if gone else set[str]()
        keys = {each.id: each.problem or each.id for each in gone}
        return {identifier: f"../{PAGE}{f'#{key}' if key in shown else ''}" for identifier, key in keys.items()}


def _lines(site: Site, findings: Iterable[StoredFinding]) -> Iterator[ResolvedLine]:
    """A line for each problem that a scan resolved; a problem that was resolved twice has its last line alone."""
    shown: set[str] = set()
    for key, members in groupby(findings, key=lambda each: each.problem or each.id):
        if key not in shown:
            shown.add(key)
            yield _make_line(site, key, list(members))


def _make_line(site: Site, key: str, members: Sequence[StoredFinding]) -> ResolvedLine:
    document, stored = site.document, members[0]
    finding, workload = stored.finding, stored.workload
    policy, is_known = finding.policy_key, finding.policy_key in site.sections
    title = document.triage.description(policy).title if is_known else finding.policy
    return ResolvedLine(
        id=key,
        place=f"{place_path(stored.id)}#f-{stored.id}" if is_known else "",
        at=stored.resolved_at or stored.last_seen,
        why=RESOLUTIONS.get(stored.resolution, ""),
        severity=str(document.triage.severity(*finding.severity_key)),
        kind=(workload.kind if workload else finding.kind)[:NAME],
        name=("/".join(filter(None, (workload.namespace, workload.name))) if workload else object_name(finding))[:NAME],
        message=sentence_of(finding, title),
        title=document.title(policy) if is_known else finding.policy,
        policy_path=site.policy_path(policy) if is_known else "",
        check=document.name_check(policy, finding.check) if is_known else "",
        findings=len(members),
    )
