"""The problems of a scan in the order of the list, from which filters choose: without texts, which are read for one page.

A filter (`report.lists.filters`) decides once about all problems that have the same in common.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from heapq import nsmallest
from itertools import chain, compress, repeat
from operator import and_, or_
from typing import Any, Final, NamedTuple, assert_never, overload

from scanner.model.list_fields import SortOrder
from scanner.model.policy import PolicyKey
from scanner.model.scans.finding_index import CommonPlace, FindingIndex
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES
from scanner.report.html.change_counts import ChangeCounts
from scanner.report.lists.filters import ListFilter
from scanner.report.lists.problem_facts import (
    CommonProblem,
    FindingOrder,
    ProblemFacts,
    order_by_workload,
    workload_order,
)
from scanner.store.read.search_query import WordMatches
from scanner.web.views.problem_columns import ProblemColumns, Ranks, rank_values

_BEGIN_OF_ID: Final = re.compile(r"p|p-[0-9a-f-]*|[0-9a-f]+")

Test = Callable[[CommonProblem], bool]
TestOfPlace = Callable[[CommonPlace], bool]


class ListedProblem(NamedTuple):
    """A problem of a list: the ids of the rows of its findings, the worst first, of which the first `open` are not resolved.

    `first` is the place of its findings in the columns of the list; `severity` a rank, 0 for the worst; `opened` are seconds since 1970.
    """

    number: int
    rows: tuple[int, ...]
    first: int
    open: int
    opened: int
    severity: int
    facts: ProblemFacts

    @property
    def is_preview(self) -> bool:
        """Return whether the problem is that of an assumed binding."""
        return self.facts.status in SINGLE_SCAN_STATUSES

    @property
    def key(self) -> str:
        """The key of the problem in the list: a preview has the number of the problem that it would be."""
        return f"preview-{self.number}" if self.is_preview else str(self.number)


class ProblemList:
    """All problems of a scan, in the order of the list."""

    def __init__(
        self,
        index: FindingIndex,
        ranks: Ranks,
        names: Mapping[PolicyKey, str],
        waived: Collection[int] = frozenset(),
    ) -> None:
        """`ranks` has the rank of a check's severity, `names` the title and the name of policies, `waived` the rows of waived findings."""
        self._columns: Final = ProblemColumns(index, ranks, waived)
        self._names = names

    def __len__(self) -> int:
        return len(self._columns.numbers)

    @property
    def changes(self) -> ChangeCounts:
        """The numbers of changed findings."""
        return self._columns.changes

    @property
    def places(self) -> Iterator[CommonPlace]:
        """The places of the problems, each once."""
        return map(self._columns.common_places.__getitem__, set(self._columns.where))

    def get(self, place: int) -> ListedProblem:
        """The problem at a place of the list."""
        columns = self._columns
        first = columns.firsts[place]
        common = columns.common_problems[columns.common[place]]
        return ListedProblem(
            number=columns.numbers[place],
            rows=tuple(columns.rows[first : first + columns.sizes[place]]),
            first=first,
            open=columns.open[place],
            opened=columns.opened[place],
            severity=common.severity,
            facts=common.facts,
        )

    def of_workload_or_objects(self, kind: str, path: str, objects: Collection[int]) -> list[ListedProblem]:
        """The problems of a workload (`namespace/name`) and of some objects, in the order of the list."""
        columns = self._columns
        kinds = [each.kind == kind for each in columns.common_places]
        own = {place for place, name in enumerate(columns.workloads) if name == path and kinds[columns.where[place]]}
        if objects:
            problem_of = chain.from_iterable(map(repeat, range(len(self)), columns.sizes))
            own.update(place for place, each in zip(problem_of, columns.objects, strict=True) if each in objects)
        return [self.get(place) for place in sorted(own)]

    def choose_worst(self, places: Iterable[int], most: int) -> list[ListedProblem]:
        """The worst problems at some places, those of a workload together."""
        columns = self._columns
        orders = [(each.facts.order(each.severity), each.policy) for each in columns.common_problems]
        kinds = [each.kind for each in columns.common_places]

        def place_of(each: int) -> tuple[FindingOrder, str, PolicyKey, int]:
            order, policy = orders[columns.common[each]]
            return (
                order,
                workload_order(columns.workloads[each], kinds[columns.where[each]]),
                policy,
                columns.numbers[each],
            )

        worst = nsmallest(most, places, key=place_of)
        keys = list(map(place_of, worst))
        order = order_by_workload([key[0] for key in keys], [key[1] for key in keys], keys)
        return [self.get(worst[each]) for each in order]

    def find_place(self, number: int, *, is_preview: bool = False) -> int | None:
        """The place of a problem, or of the preview with its number; None if the list does not have it."""
        columns, place = self._columns, -1
        while True:
            try:
                place = columns.numbers.index(number, place + 1)
            except ValueError:
                return None
            if columns.common_problems[columns.common[place]].is_preview == is_preview:
                return place

    def problem(self, number: int) -> ListedProblem | None:
        """A problem by its number, or else the preview with that number."""
        places = (self.find_place(number, is_preview=is_preview) for is_preview in (False, True))
        return next((self.get(place) for place in places if place is not None), None)

    def ids(self, problem: ListedProblem) -> Sequence[int]:
        """The ids of the findings of a problem, in the order of its rows."""
        return self._columns.ids[problem.first : problem.first + len(problem.rows)]

    def count_by_object(self, objects: Collection[int]) -> Counter[int]:
        """The numbers of open findings that the scan checked, by object, for some objects."""
        columns = zip(self._columns.objects, self._columns.counted, strict=True)
        return Counter(each for each, counted in columns if each in objects and counted)

    def rows_with_prefix(self, prefix: str) -> list[int]:
        """The rows of the findings whose ids begin with at most 12 hex digits."""
        low, high = int(prefix.ljust(12, "0"), 16), int(prefix.ljust(12, "f"), 16)
        columns = self._columns
        return [row for row, number in zip(columns.rows, columns.ids, strict=True) if low <= number <= high]

    def count_findings(self, places: Sequence[int], *, resolved: bool) -> int:
        """The number of findings of the problems at some places, with or without the `resolved` ones."""
        numbers = self._columns.sizes if resolved else self._columns.open
        return sum(map(numbers.__getitem__, places))

    def find_places(self, test: Test = lambda _: True, test_of_place: TestOfPlace = lambda _: True) -> Iterator[int]:
        """The places of the problems of which both tests hold."""
        columns = self._columns
        flags = bytes(map(test, columns.common_problems))
        place_flags = bytes(map(test_of_place, columns.common_places))
        every = iter(range(len(self)))
        chosen = every if all(flags) else compress(every, map(flags.__getitem__, columns.common))
        return chosen if all(place_flags) else filter(lambda place: place_flags[columns.where[place]], chosen)

    def choose(self, wanted: ListFilter, words: Sequence[WordMatches] = ()) -> ListedProblems:
        """The problems that a filter chooses, in its order; `words` are those of its text."""
        places = self.find_places(
            lambda each: wanted.has_facts(each, self._names.get(each.policy, "")),
            lambda each: wanted.has_place(namespace=each.namespace, owner=each.owner, kind=each.object_kind),
        )
        if wanted.workload:
            workloads, kinds = self._columns.workloads, [each.kind for each in self._columns.common_places]
            # Many problems have one workload.
            where, is_wanted = self._columns.where, cache(wanted.has_workload)
            places = (each for each in places if is_wanted(kinds[where[each]], workloads[each]))
        if wanted.text:
            matching = self._find_matching(wanted.words, words)
            places = (each for each in places if each in matching)
        key = self._key(wanted.sort)
        return ListedProblems(self, array("l", sorted(places, key=key) if key else places))

    def _find_matching(self, texts: Sequence[str], words: Sequence[WordMatches]) -> Collection[int]:
        """The places of the problems of which one finding has each word, in a text of it or in the names of its problem."""
        columns = self._columns
        problem_of = array("l", chain.from_iterable(map(repeat, range(len(self)), columns.sizes)))
        flags = bytes(repeat(1, len(problem_of)))
        known_words: Sequence[WordMatches | None] = words if len(words) == len(texts) else [None] * len(texts)
        for word, matches in zip(texts, known_words, strict=True):
            named = self._flag_names(word)
            word_flags: Iterator[int] = map(named.__getitem__, problem_of)
            if matches is not None:
                word_flags = map(or_, word_flags, self._flag_texts(matches))
            flags = bytes(map(and_, flags, word_flags))
        return frozenset(compress(problem_of, flags))

    def _flag_names(self, word: str) -> bytes:
        """For each problem: 1 if a word is a part of the names of its policy, owner, kind or workload, or begins its id."""
        columns = self._columns
        policies = [word in self._names.get(each.policy, "").casefold() for each in columns.common_problems]
        places = [word in f"{each.owner} {each.kind}".casefold() for each in columns.common_places]
        workloads = {each: word in each.casefold() for each in set(columns.workloads)}
        named = map(or_, map(policies.__getitem__, columns.common), map(places.__getitem__, columns.where))
        named = map(or_, named, map(workloads.__getitem__, columns.workloads))
        if not _BEGIN_OF_ID.fullmatch(word):
            return bytes(named)
        ids = (
            f"p-{number:012x}".startswith(word) or f"{columns.ids[first]:012x}".startswith(word)
            for number, first in zip(columns.numbers, columns.firsts, strict=True)
        )
        return bytes(map(or_, named, ids))

    def _flag_texts(self, word: WordMatches) -> Iterator[bool]:
        """For each finding: whether a text of it has a word."""
        columns = self._columns
        facts = [each.verdict in word.verdicts or each.check in word.checks for each in columns.common_facts]
        places = [each.workload_row in word.workloads or each.kept in word.kept for each in columns.common_places]
        finding_flags = map(or_, map(facts.__getitem__, columns.facts), map(places.__getitem__, columns.places))
        return (
            map(or_, finding_flags, map(word.objects.__contains__, columns.objects)) if word.objects else finding_flags
        )

    def _key(self, sort: str) -> Callable[[int], Any] | None:
        """The key of the place of a problem in an order; None for the order of the list, in which those of a workload stand together."""
        if not sort:
            return None
        ranks, value = self._ranks, self._sort_value(sort)
        return lambda place: (value(place), ranks[place])

    @cached_property
    def _ranks(self) -> array[int]:
        """The rank of each problem, 0 for the worst; of those that are equally bad, the workload decides."""
        columns = self._columns
        worst = rank_values([each.order for each in columns.common_problems])
        keys = list(zip(map(worst.__getitem__, columns.common), columns.workloads, strict=True))
        ranks = array("l", bytes(array("l").itemsize * len(keys)))
        for rank, place in enumerate(sorted(range(len(keys)), key=keys.__getitem__)):
            ranks[place] = rank
        return ranks

    def _sort_value(self, sort: str) -> Callable[[int], Any]:
        """The value of the place of a problem by which an order sorts; of those with equal values the worst comes first."""
        columns = self._columns
        match SortOrder(sort):
            case SortOrder.WORST:
                return self._ranks.__getitem__
            case SortOrder.OLDEST:
                return columns.opened.__getitem__
            case SortOrder.NEWEST:
                return lambda place: -columns.opened[place]
            case SortOrder.WORKLOAD:
                return columns.workloads.__getitem__
            case SortOrder.OWNER:
                owners = [(not each.owner, each.owner) for each in columns.common_places]
                return lambda place: owners[columns.where[place]]
            case SortOrder.SEVERITY:
                severities = [each.severity for each in columns.common_problems]
                return lambda place: severities[columns.common[place]]
            case SortOrder.POLICY:
                names = [self._names.get(each.policy, "") for each in columns.common_problems]
                return lambda place: names[columns.common[place]]
            case _ as never:
                assert_never(never)


class ListedProblems(Sequence[ListedProblem]):
    """Some problems of a list in an order. Each is made when a caller reads its place."""

    def __init__(self, source: ProblemList, places: Sequence[int]) -> None:
        """The problems at some places of a list."""
        self._source: Final = source
        self._places: Final = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> ListedProblem: ...

    @overload
    def __getitem__(self, place: slice) -> ListedProblems: ...

    def __getitem__(self, place: int | slice) -> ListedProblem | ListedProblems:
        if isinstance(place, slice):
            return ListedProblems(self._source, self._places[place])
        return self._source.get(self._places[place])

    def __iter__(self) -> Iterator[ListedProblem]:
        return map(self._source.get, self._places)

    def find_place(self, number: int, *, is_preview: bool = False) -> int | None:
        """The place of a problem, or of the preview with its number; None if it is not there."""
        place = self._source.find_place(number, is_preview=is_preview)
        try:
            return None if place is None else self._places.index(place)
        except ValueError:
            return None

    def select(self, test: Callable[[ListedProblem], bool]) -> ListedProblems:
        """The problems of which a test holds, in their order."""
        return ListedProblems(
            self._source, array("l", [place for place in self._places if test(self._source.get(place))])
        )

    def count_findings(self, *, resolved: bool) -> int:
        """The number of their findings, with or without the `resolved` ones."""
        return self._source.count_findings(self._places, resolved=resolved)
