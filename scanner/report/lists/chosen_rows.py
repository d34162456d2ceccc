"""The findings and problems of a stored scan that `assay findings` prints: chosen and ordered as every list (`filters`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import chain, count, groupby, repeat
from typing import Any, Final, Literal, assert_never

from scanner.model.list_fields import FindingStatus, SortOrder
from scanner.model.policy import PolicyKey
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.problem_rows import Problem, join_findings, select_alone
from scanner.posture.triage import Triage
from scanner.report.document.document import titles_of
from scanner.report.lists.filters import ListFilter
from scanner.report.lists.problem_facts import CommonProblem, FindingGroup, group_of
from scanner.report.text.names import object_name
from scanner.report.text.titles import message_of


class ChosenRows:
    """Chooses and orders rows by a filter, and by ids: beginnings of those of findings, or those of problems."""

    def __init__(self, wanted: ListFilter, ids: tuple[str, ...], record: StoredScan, triage: Triage) -> None:
        """Choose from a scan; without an order, the rows have that of the report."""
        self.triage: Final = triage
        self._wanted, self._ids, self._record = wanted, ids, record
        policies = [used.policy.key for used in record.policies]
        titles = titles_of(policies)
        self._names = {key: f"{titles.get(key, key[1])}\n{triage.description(key).title}" for key in policies}

    def findings(self, limit: int) -> Iterator[StoredFinding]:
        """The chosen findings; those that the scan did not check only by this status. See `_order` for the limit."""
        every = chain(self._record.findings(), self._record.resolved_findings())
        rows: Iterator[ProblemFinding] = (
            ProblemFinding(stored, checked=True, episode=_episode(stored)) for stored in every
        )
        if FindingStatus.UNCHECKED in self._wanted.status:
            rows = chain(rows, (each for each in self._record.findings_by_problem() if not each.checked))
        return (each.stored for [each] in self._order(([each] for each in rows), limit))

    def problems(self, limit: int) -> Iterator[Problem]:
        """The chosen problems, previews and outdated ones included; those that the scan did not check only by this status."""
        of_scan = groupby(self._record.findings_by_problem(), key=lambda each: each.stored.problem or each.stored.id)
        groups = (list(group) for _, group in of_scan)
        all_shown = FindingStatus.UNCHECKED in self._wanted.status
        shown = (own for own in groups if all_shown or any(each.checked for each in own))
        rows = self._order(chain(shown, select_alone(self._record.findings())), limit)
        return (join_findings(own, self.triage.waiver) for own in rows)

    def _order(self, rows: Iterable[list[ProblemFinding]], limit: int) -> Iterator[list[ProblemFinding]]:
        """The chosen rows in the order. Memory holds the first `limit` of them, or all if it is 0; of the others only the number is right."""
        chosen = ((group, row) for row in rows if self._has(group := group_of(row, self.triage)))
        if not self._wanted.sort:
            yield from (row for _, row in chosen)
            return
        numbers = count()
        keyed = ((*self._key(group), number, row) for (group, row), number in zip(chosen, numbers, strict=False))
        first = sorted(keyed) if not limit else nsmallest(limit, keyed)
        yield from (row for *_, row in first)
        if limit and first:
            yield from repeat(first[-1][-1], next(numbers) - len(first))

    def _has(self, group: FindingGroup) -> bool:
        """Return whether the findings of a row are chosen."""
        stored, wanted = group.example, self._wanted
        finding, (kind, path) = stored.finding, _place(stored)
        return (
            (not self._ids or any(map(self._has_id, group.findings)))
            and wanted.has_facts(_common(group), self._get_names(finding.policy_key))
            and wanted.has_place(namespace=finding.namespace, owner=self.triage.owner(stored), kind=finding.kind)
            and wanted.has_workload(kind, path)
            and (not wanted.text or any(map(self._has_words, group.findings)))
        )

    def _get_names(self, policy: PolicyKey) -> str:
        """The names of a policy, and its title, a line for each."""
        return self._names.get(policy, policy[1])

    def _has_id(self, each: ProblemFinding) -> bool:
        stored = each.stored
        return any(
            stored.finding.fingerprint.startswith(wanted_id) or stored.problem == wanted_id for wanted_id in self._ids
        )

    def _has_words(self, each: ProblemFinding) -> bool:
        stored, finding = each.stored, each.stored.finding
        names = self._get_names(finding.policy_key), self.triage.owner(stored)
        places = finding.kind, object_name(finding), *_place(stored)
        text = "\n".join((*names, *places, message_of(finding), stored.id, stored.problem)).casefold()
        return all(word in text for word in self._wanted.words)

    def _key(self, group: FindingGroup) -> tuple[Any, Any]:
        """The key of a row: of rows that are equal in the order, the worst comes first."""
        return self._get_sort_value(group), _common(group).order

    def _get_sort_value(self, group: FindingGroup) -> Any:
        match SortOrder(self._wanted.sort):
            case SortOrder.WORST:
                return 0
            case SortOrder.OLDEST:  # in whole seconds, as the lists of the pages keep them
                return int(group.opened_at.timestamp())
            case SortOrder.NEWEST:
                return -int(group.opened_at.timestamp())
            case SortOrder.SEVERITY:
                return group.severity
            case SortOrder.WORKLOAD:
                return _place(group.example)[1]
            case SortOrder.POLICY:
                return self._get_names(group.example.finding.policy_key)
            case SortOrder.OWNER:
                owner = self.triage.owner(group.example)
                return not owner, owner
            case _ as never:
                assert_never(never)


def _common(group: FindingGroup) -> CommonProblem:
    policy, expression = group.example.finding.severity_key
    return CommonProblem(policy, group.severity, group.facts, expression)


def _place(stored: StoredFinding) -> tuple[str, str]:
    """The kind of a workload, and its namespace and name."""
    top = stored.workload or stored.finding
    return top.kind, "/".join(filter(None, (top.namespace, top.name)))


def _episode(stored: StoredFinding) -> Literal["new", "reopened", "open"]:
    """The status of the problem that a finding alone would be."""
    return stored.status if stored.status in ("new", "reopened") else "open"
