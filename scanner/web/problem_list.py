"""The problems of a scan in the order of the list, from which filters choose: without texts, which are read for one page.

The rules are those of the static list: `report.finding_groups` and `reports_templates/findings.js`.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from scanner.model.finding_index import IndexedFinding
from scanner.model.policy import PolicyKey
from scanner.report.change_counts import ChangeCounts
from scanner.report.chips import REFUSED
from scanner.report.list_filters import COUNTED, UNRESOLVED
from scanner.report.problem_facts import FindingFacts, FindingOrder, ProblemFacts, problem_facts
from scanner.store.search_words import WordMatches

CLUSTER_SCOPED: Final = "_cluster"
UNOWNED: Final = "unowned"
_CHIPS: Final = {
    "Errored": ("refused-error", "error", "preview-refused-error", "preview-error"),
    "change": ("drift", "preview-drift"),
}


class ListedProblem(NamedTuple):
    """A problem: the ids of the rows of its findings, the worst first, and what it is filtered and ordered by.

    `first` is the place of its findings in the columns of the list; `severity` a rank, 0 for the worst; `opened` are seconds since 1970.
    The first `open` findings are not resolved.
    """

    number: int
    id: int
    rows: tuple[int, ...]
    first: int
    policy: PolicyKey
    namespace: str
    owner: str
    kind: str
    workload: str
    facts: ProblemFacts
    severity: int
    opened: int
    open: int

    @property
    def order(self) -> FindingOrder:
        """The place of the problem in the list."""
        return self.facts.order(self.severity)

    @property
    def key(self) -> str:
        """What tells the problem from all others of the list: a preview has the number of the problem that it would be."""
        return f"preview-{self.number}" if self.facts.status == "preview" else str(self.number)

    @property
    def counted(self) -> bool:
        """Return whether the verdict counts the problem."""
        return self.facts.status in COUNTED and not self.facts.waived and not self.facts.excepted


@dataclass(frozen=True, slots=True)
class ProblemFilter:
    """The filter of the list. Empty texts choose everything, resolved problems included."""

    text: str = ""
    policy: str = ""
    namespace: str = ""
    owner: str = ""
    severity: str = ""
    action: str = ""
    status: str = ""
    sort: str = ""
    workload: str = ""
    """Kind, namespace and name as the list shows them, `Deployment shop/web`: exact."""


@dataclass(slots=True)
class _Columns:
    """The ids of shared texts by finding, for the search of words."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    ids: array[int] = field(default_factory=lambda: array("q"))
    checks: array[int] = field(default_factory=lambda: array("q"))
    verdicts: array[int] = field(default_factory=lambda: array("q"))
    objects: array[int] = field(default_factory=lambda: array("q"))
    workloads: array[int] = field(default_factory=lambda: array("q"))
    kept: array[int] = field(default_factory=lambda: array("q"))
    counted: array[int] = field(default_factory=lambda: array("b"))

    def add(self, finding: IndexedFinding) -> None:
        self.rows.append(finding.row)
        self.ids.append(finding.id)
        self.checks.append(finding.check)
        self.verdicts.append(finding.verdict)
        self.objects.append(finding.object)
        self.workloads.append(finding.workload_row)
        self.kept.append(finding.kept)
        self.counted.append(finding.checked and finding.status != "resolved")

    def has(self, place: int, word: WordMatches) -> bool:
        """Return whether a text of a finding has a word."""
        return (
            self.objects[place] in word.objects
            or self.verdicts[place] in word.verdicts
            or self.checks[place] in word.checks
            or self.workloads[place] in word.workloads
            or self.kept[place] in word.kept
        )


class ProblemList:
    """All problems of a scan, in the order of the list."""

    def __init__(
        self,
        findings: Iterable[IndexedFinding],
        ranks: Callable[[PolicyKey], int],
        names: Mapping[PolicyKey, str],
        waived: Container[int] = frozenset(),
    ) -> None:
        """`ranks` has the rank of a policy's severity, `names` the title and the name of policies, `waived` the rows of waived findings."""
        self._columns = _Columns()
        self._names = names
        self.changes: Final = ChangeCounts()
        ordered = sorted(findings, key=attrgetter("problem", "row"))
        grouped = (
            list(members) for _, members in groupby(ordered, key=lambda each: (each.status == "preview", each.problem))
        )
        problems = sorted(
            ((_key_of(members), self._listed(members, ranks, waived)) for members in grouped),
            key=lambda pair: (pair[1].order, pair[0]),
        )
        self.problems: Final = tuple(problem for _, problem in problems)
        # Of a preview and a problem with the same number, the number is that of the problem.
        previews_first = sorted(enumerate(self.problems), key=lambda pair: pair[1].facts.status != "preview")
        self._places: Final = {problem.number: place for place, problem in previews_first}

    def _listed(
        self, members: list[IndexedFinding], ranks: Callable[[PolicyKey], int], waived: Container[int]
    ) -> ListedProblem:
        own = [(_facts(finding, waived), finding) for finding in members]
        if len(own) > 1:
            own.sort(key=lambda pair: pair[0].badness)
        first = len(self._columns.checks)
        for _, finding in own:
            self._columns.add(finding)
            if finding.checked:
                self.changes.count(finding.status, finding.cause, finding.resolution)
        _, worst = own[0]
        return ListedProblem(
            number=worst.problem,
            id=worst.id,
            rows=tuple(finding.row for _, finding in own),
            first=first,
            policy=worst.policy,
            namespace=worst.namespace,
            owner=worst.owner,
            kind=worst.kind,
            workload=worst.workload,
            facts=problem_facts([facts for facts, _ in own]),
            severity=ranks(worst.policy),
            opened=min(finding.opened for finding in members),
            open=sum(finding.status != "resolved" for finding in members),
        )

    def __len__(self) -> int:
        return len(self.problems)

    def problem(self, number: int) -> ListedProblem | None:
        """A problem by its number."""
        place = self._places.get(number)
        return None if place is None else self.problems[place]

    def ids(self, problem: ListedProblem) -> Sequence[int]:
        """The ids of the findings of a problem, in the order of its rows."""
        return self._columns.ids[problem.first : problem.first + len(problem.rows)]

    def findings_of(self, objects: Collection[int]) -> Counter[int]:
        """The numbers of open findings that the scan checked, by object, for some objects."""
        columns = zip(self._columns.objects, self._columns.counted, strict=True)
        return Counter(each for each, counted in columns if each in objects and counted)

    def rows_with_prefix(self, prefix: str) -> list[int]:
        """The rows of the findings whose ids begin with at most 12 hex digits."""
        low, high = int(prefix.ljust(12, "0"), 16), int(prefix.ljust(12, "f"), 16)
        columns = self._columns
        return [row for row, number in zip(columns.rows, columns.ids, strict=True) if low <= number <= high]

    def chosen(
        self, wanted: ProblemFilter, words: Sequence[WordMatches] = (), severities: Sequence[str] = ()
    ) -> list[ListedProblem]:
        """The problems that a filter chooses, in its order; `words` are those of its text, `severities` the names of ranks."""
        chosen: Iterable[ListedProblem] = self.problems
        for test in self._tests(wanted, severities):
            chosen = filter(test, chosen)
        found = list(chosen)
        if wanted.text:
            asked = wanted.text.casefold().split()
            found = [problem for problem in found if self._matches(problem, asked, words)]
        key = self._key(wanted.sort)
        return sorted(found, key=key) if key else found

    def _tests(self, wanted: ProblemFilter, severities: Sequence[str]) -> Iterator[Callable[[ListedProblem], bool]]:
        if wanted.policy:
            policies = {key for key, name in self._names.items() if wanted.policy in name.split("\n")}
            yield lambda each: each.policy in policies
        if wanted.namespace:
            namespace = "" if wanted.namespace == CLUSTER_SCOPED else wanted.namespace
            yield lambda each: each.namespace == namespace
        if wanted.owner:
            owner = "" if wanted.owner == UNOWNED else wanted.owner
            yield lambda each: each.owner == owner
        if wanted.workload:
            yield lambda each: f"{each.kind} {each.workload}" == wanted.workload
        if wanted.severity:
            rank = severities.index(wanted.severity) if wanted.severity in severities else -1
            yield lambda each: each.severity == rank
        if wanted.action == "refused":
            yield lambda each: each.facts.chip in REFUSED and each.counted
        elif chips := _CHIPS.get(wanted.action):
            yield lambda each: each.facts.chip in chips
        elif wanted.action:
            yield lambda each: each.facts.action == wanted.action
        yield from _status_tests(wanted.status)

    def _matches(self, problem: ListedProblem, asked: Sequence[str], words: Sequence[WordMatches]) -> bool:
        """Return whether each word is in a text of one finding of a problem, or in its names."""
        names = f"{self._names.get(problem.policy, '')} {problem.owner} {problem.kind} {problem.workload}".casefold()
        known = [
            word in names or f"p-{problem.number:012x}".startswith(word) or f"{problem.id:012x}".startswith(word)
            for word in asked
        ]
        if all(known):
            return True
        if len(words) != len(asked):
            return False
        places = range(problem.first, problem.first + len(problem.rows))
        return any(
            all(there or self._columns.has(place, word) for there, word in zip(known, words, strict=True))
            for place in places
        )

    def _key(self, sort: str) -> Callable[[ListedProblem], Any] | None:
        keys: dict[str, Callable[[ListedProblem], Any]] = {
            "oldest": lambda each: each.opened,
            "newest": lambda each: -each.opened,
            "severity": lambda each: each.severity,
            "workload": lambda each: each.workload,
            "rule": lambda each: self._names.get(each.policy, ""),
            "owner": lambda each: (not each.owner, each.owner),
        }
        return keys.get(sort)


def _status_tests(status: str) -> Iterator[Callable[[ListedProblem], bool]]:
    match status:
        case "":
            return
        case "waived":
            yield lambda each: each.facts.waived
        case "excepted":
            yield lambda each: each.facts.excepted
        case "open":
            yield lambda each: each.counted
        case "new" | "reopened":
            yield lambda each: each.facts.status == status and each.counted
        case _ if status == UNRESOLVED:
            yield lambda each: each.facts.status != "resolved"
        case _:
            yield lambda each: each.facts.status == status


def _key_of(members: Sequence[IndexedFinding]) -> tuple[str, str, str, str, int]:
    """The order of problems of one rank, as `store.findings.by_problem` has it."""
    language, policy = members[0].policy
    first = min(each.namespace for each in members), min(each.name for each in members)
    return policy, language, *first, members[0].problem


def _facts(finding: IndexedFinding, waived: Container[int]) -> FindingFacts:
    return FindingFacts(
        status=finding.status,
        episode=finding.episode,
        checked=finding.checked,
        outcome=finding.outcome,
        denies=finding.denies,
        actions=tuple(finding.actions.split(",")) if finding.actions else (),
        excepted=finding.excepted,
        waived=finding.status != "resolved" and finding.row in waived,
    )
