"""One stored scan as pages: its document is made once, its lists are read when a page needs them.

A finished scan never changes, so all of this can be kept while there is memory for it (see `library`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from threading import RLock
from typing import Final

from scanner.model.policy import PolicyKey
from scanner.model.scans.register import PolicyDays
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.model.scans.stored_scan import StoredScan
from scanner.report.document.document import Document
from scanner.report.document.policy_text import MarkedText
from scanner.report.html.change_counts import ChangeLines
from scanner.report.html.finding_rows import MOST, RowMaker, Subject, move_into_folder
from scanner.report.html.pages import HtmlPage, HtmlPages, OwnerRow, owners_with_scores
from scanner.report.html.place_pages import PlacePages
from scanner.report.html.places import PlaceRenderer, PlaceTexts
from scanner.report.html.resolved import ResolvedProblems
from scanner.report.html.row_files import ListedRow, mark_workloads
from scanner.report.html.site import Site, site_of
from scanner.report.lists.problem_facts import CommonProblem, FindingGroup
from scanner.web.views.problem_list import ListedProblem, ProblemList

OBJECTS: Final = 50
"""The objects that the row of a problem shows; the page of the problem lists all."""


class ScanView:
    """The pages and lists of a scan. Its methods may be called by several threads."""

    def __init__(self, record: StoredScan, document: Document) -> None:
        self.record: Final = record
        self.document: Final = document
        self.names: Final[Mapping[PolicyKey, str]] = {
            section.key: f"{document.title(section.key)}\n{section.title}" for section in document.policies
        }
        self.lock: Final = RLock()
        self._marked: Final[dict[int, MarkedText]] = {}
        """The texts of policies on the pages of findings, which take long to make."""

    @property
    def scan_id(self) -> str:
        """The id of the scan."""
        return self.record.scan.id

    @property
    def cluster(self) -> str:
        """The UID of the cluster of the scan, or its name."""
        return self.record.scan.cluster.uid or self.record.scan.cluster.name

    @property
    def end(self) -> datetime:
        """The end of the scan, or its beginning if it did not end."""
        return self.record.scan.finished_at or self.record.scan.started_at

    @property
    def size(self) -> int:
        """The number of its problems and policies: its share of memory."""
        return self.document.problems.open + self.document.problems.resolved + 100 * len(self.document.policies)

    def site(self, **shared: object) -> Site:
        """The site of the report, with further names for its templates."""
        return replace(self._site, shared={**self._site.shared, **shared})

    def find_page(self, site: Site, path: str) -> HtmlPage | None:
        """The page at a path, of those besides findings; None if the report does not have it."""
        pages = HtmlPages(
            site,
            self._owners,
            lambda subject, names: self._worst(site, subject, names),
            lambda: self.changes,
            lambda: self._policy_days,
            lambda: ResolvedProblems.of(site),
        )
        return pages.find(path)

    @cached_property
    def _owners(self) -> Sequence[OwnerRow]:
        with self.lock:
            return owners_with_scores(self.document)

    @cached_property
    def _site(self) -> Site:
        return site_of(self.document, [row.owner for row in self._owners])

    @cached_property
    def _policy_days(self) -> PolicyDays:
        """The days of all policies: those of one take as long to read."""
        with self.lock:
            return self.document.stored.policy_days()

    @cached_property
    def problems(self) -> ProblemList:
        """The problems of the scan."""
        with self.lock:
            triage = self.document.triage
            return ProblemList(
                self.record.index_findings(triage.owner_of),
                triage.ranks.of,
                self.names,
                triage.waived.rows,
            )

    @property
    def changes(self) -> ChangeLines:
        """The numbers of changed findings."""
        return self.problems.changes.lines()

    def groups(self, problems: Sequence[ListedProblem], objects: int = OBJECTS) -> Iterator[tuple[FindingGroup, int]]:
        """Problems with their first findings, and the numbers of all their findings, in the given order."""
        rows = [row for problem in problems for row in problem.rows[:objects]]
        by_row = dict(self.record.findings_of_rows(rows))
        for problem in problems:
            members = tuple(by_row[row] for row in problem.rows[:objects] if row in by_row)
            if members:
                yield _group(problem, members), len(problem.rows)

    def rows(self, site: Site, problems: Sequence[ListedProblem], objects: int = OBJECTS) -> list[ListedRow]:
        """The rows of problems as HTML, each with so many objects at most."""
        maker = RowMaker(site, histories=True)
        made = (row for group, total in self.groups(problems, objects) for row in maker.rows(group, total))
        return [ListedRow(row.place, row.html) for row in made]

    def places(self, site: Site, prefix: str, known: Sequence[StoredFinding] = ()) -> Mapping[str, str]:
        """The pages of the findings whose ids begin with three hex digits, by file name; none without such a finding.

        `known` are findings of other scans in their last state: those that this scan does not have follow, and a link to the problem
        stands for those whose policy it does not have.
        """
        read = [each for _, each in self.record.findings_of_rows(self.problems.rows_with_prefix(prefix))]
        own = {each.stored.id for each in read}
        read += [
            ProblemFinding(each, checked=each.status == "resolved", episode="open")
            for each in known
            if each.id not in own and each.finding.policy_key in site.sections
        ]
        elsewhere = {
            each.id: f"../problems/{each.problem}.html"
            for each in known
            if each.id not in own and each.problem and each.finding.policy_key not in site.sections
        }
        with self.lock:
            texts = PlaceTexts(site, self._marked)
            placed = sorted(map(PlaceRenderer(site, texts).render_place, read))
            return dict(PlacePages(site, texts).pages(prefix, placed, elsewhere)) if placed or elsewhere else {}

    def _worst(self, site: Site, subject: Subject, names: Sequence[str]) -> str:
        """The rows of the worst open problems of some policies (by the names of their pages), namespaces, owners or controls."""
        controls, chosen = self.document.triage.controls, frozenset(names)

        def is_chosen(each: CommonProblem) -> bool:
            if each.facts.status == "resolved":
                return False
            match subject:
                case "policy":
                    return site.policies.get(each.policy) in chosen
                case "control":
                    return not chosen.isdisjoint(controls(each.policy, each.expression))
                case _:
                    return True

        places = self.problems.find_places(
            is_chosen,
            lambda each: (
                subject in ("policy", "control") or (each.namespace if subject == "namespace" else each.owner) in chosen
            ),
        )
        worst = self.problems.choose_worst(places, MOST)
        return move_into_folder(mark_workloads(self.rows(site, worst)))


def _group(problem: ListedProblem, members: tuple[ProblemFinding, ...]) -> FindingGroup:
    return FindingGroup(
        members,
        problem.facts,
        opened_at=datetime.fromtimestamp(problem.opened, UTC),
        severity=problem.severity,
    )
