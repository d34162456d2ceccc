"""The list of a scan's problems equals one that is made finding by finding."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.policy import PolicyKey
from scanner.model.scans.finding_index import CommonFacts, CommonPlace, FindingIndex
from scanner.report.lists.filters import SEVERITIES, ListFilter
from scanner.report.lists.problem_facts import COUNTED, FindingFacts, problem_facts
from scanner.store.read.search_query import WordMatches
from scanner.web.views.problem_list import ListedProblem, ProblemList

POLICIES: tuple[PolicyKey, ...] = (
    ("ValidatingAdmissionPolicy", "a"),
    ("ValidatingAdmissionPolicy", "b"),
    ("Kyverno", "a"),
)
NOTHING = WordMatches("", *(frozenset[int]() for _ in range(6)))


class Made(NamedTuple):
    """A finding; its row is its place in the index."""

    problem: int
    facts: CommonFacts
    place: CommonPlace
    name: str
    unchecked: bool
    waived: bool


def facts(policy: PolicyKey, status: str, episode: str, opened: int, *, denies: bool, excepted: bool) -> CommonFacts:
    """Facts with a check and a verdict of their policy."""
    number = POLICIES.index(policy)
    actions = ("Deny",) if denies else ("Audit", "Warn") if number else ()
    return CommonFacts(
        number,
        number + 10,
        policy,
        "true",
        status,
        episode,
        opened,
        "violated",
        denies,
        actions,
        excepted,
        None,
        "fixed",
    )


FACTS = st.builds(
    facts,
    st.sampled_from(POLICIES),
    st.sampled_from(("new", "open", "resolved", "preview")),
    st.sampled_from(("new", "open", "reopened")),
    st.integers(1, 3),
    denies=st.booleans(),
    excepted=st.booleans(),
)
PLACES = st.builds(
    CommonPlace,
    namespace=st.sampled_from(("", "shop", "team")),
    owner=st.sampled_from(("", "payments")),
    kind=st.sampled_from(("Pod", "Deployment")),
    workload=st.sampled_from(("", "shop/web")),
    workload_row=st.integers(0, 1),
    kept=st.integers(0, 1),
    object_kind=st.sampled_from(("Pod", "ReplicaSet")),
)
FINDINGS = st.lists(
    st.builds(Made, st.integers(-3, 5), FACTS, PLACES, st.sampled_from("xyz"), st.booleans(), st.booleans()),
    max_size=12,
)


def listed(findings: list[Made]) -> ProblemList:
    """The list of some findings."""
    index = FindingIndex(unchecked=frozenset(row for row, each in enumerate(findings) if each.unchecked))
    common_facts = list(dict.fromkeys(each.facts for each in findings))
    common_places = list(dict.fromkeys(each.place for each in findings))
    for row, each in enumerate(findings):
        index.rows.append(row)
        index.problems.append(each.problem)
        index.ids.append(0xABC000 + row)
        index.objects.append(100 + row)
        index.names.append(each.name)
        index.facts.append(common_facts.index(each.facts))
        index.places.append(common_places.index(each.place))
    index.common_facts, index.common_places = common_facts, common_places
    waived = frozenset(row for row, each in enumerate(findings) if each.waived)
    return ProblemList(index, rank, {key: f"{key[1]} of {key[0]}\n{key[1]}" for key in POLICIES}, waived)


def by(field: str, *values: str) -> ListFilter:
    """A filter of one field."""
    fields: dict[str, Any] = {field: values}
    return ListFilter(**fields)


def rank(policy: PolicyKey, _: str) -> int:
    """The rank of the severity of the checks of a policy."""
    return int(policy[0] == "Kyverno")


def facts_of(each: Made) -> FindingFacts:
    """The facts that decide about the row of a problem."""
    own, is_resolved = each.facts, each.facts.status == "resolved"
    return FindingFacts(
        own.status,
        own.episode,
        not each.unchecked or is_resolved,
        own.outcome,
        own.denies,
        own.actions,
        own.excepted,
        each.waived and not is_resolved,
    )


class Simple(NamedTuple):
    """A problem, and its findings."""

    problem: ListedProblem
    members: list[Made]


def simple(findings: list[Made]) -> list[Simple]:
    """The problems in the order of the list, found one by one."""
    groups = defaultdict[tuple[bool, int], list[int]](list)
    for row, each in enumerate(findings):
        groups[each.facts.status == "preview", each.problem].append(row)
    problems = []
    for (_, number), rows in groups.items():
        rows.sort(key=lambda row: (facts_of(findings[row]).badness, row))
        members = [findings[row] for row in rows]
        worst = members[0].facts.policy
        own = problem_facts(list(map(facts_of, members)))
        order, place = own.order(rank(worst, "true")), members[0].place
        path = place.workload or "/".join(filter(None, (place.namespace, members[0].name)))
        key = order[0], (path, place.kind), order, worst[1], worst[0], number
        opened = min(each.facts.opened for each in members)
        still_open = sum(each.facts.status != "resolved" for each in members)
        problems.append(
            (key, Simple(ListedProblem(number, tuple(rows), 0, still_open, opened, rank(worst, "true"), own), members))
        )
    best = {key[:2]: min(other[2] for other, _ in problems if other[:2] == key[:2]) for key, _ in problems}
    return [problem for _, problem in sorted(problems, key=lambda each: (best[each[0][:2]], *each[0]))]


def shown(problems: list[Simple]) -> list[ListedProblem]:
    """The problems alone."""
    return [each.problem for each in problems]


def without_places(problems: list[ListedProblem]) -> list[ListedProblem]:
    """The problems without the places of their findings."""
    return [each._replace(first=0) for each in problems]


@given(FINDINGS)
def test_findings_are_joined_to_problems(findings: list[Made]) -> None:
    """With their facts, in the order of the list; every finding is in one problem."""
    made = listed(findings)
    everything = made.choose(ListFilter())
    assert shown(simple(findings)) == without_places(list(everything))
    assert list(range(len(findings))) == sorted(row for each in everything for row in each.rows)
    assert len(findings) == everything.count_findings(resolved=True)
    assert sum(each.facts.status != "resolved" for each in findings) == everything.count_findings(resolved=False)
    assert [[0xABC000 + row for row in each.rows] for each in everything] == [
        list(made.ids(each)) for each in everything
    ]


@given(FINDINGS)
def test_a_problem_is_found_by_its_number(findings: list[Made]) -> None:
    """A preview with the same number is another one."""
    everything = listed(findings).choose(ListFilter())
    for place, each in enumerate(everything):
        assert place == everything.find_place(each.number, is_preview=each.is_preview)
    assert everything.find_place(99) is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", "a"),
        ("policy", "b of ValidatingAdmissionPolicy"),
        ("namespace", "shop"),
        ("namespace", "_cluster"),
        ("owner", "unowned"),
        ("owner", "payments"),
        ("severity", "high"),
        ("severity", "none"),
        ("action", "Deny"),
        ("status", "open"),
        ("status", "unresolved"),
        ("status", "resolved"),
        ("status", "preview"),
        ("workload", "Pod shop/web"),
        ("workload", "Pod/web"),
        ("kind", "ReplicaSet"),
    ],
)
@given(FINDINGS)
def test_a_filter_chooses_problems_one_by_one(field: str, value: str, findings: list[Made]) -> None:
    """By what the list shows of them, which is that of the worst finding."""
    chosen = listed(findings).choose(by(field, value))
    expected = [each for each in simple(findings) if _has(each, field, value)]
    assert shown(expected) == without_places(list(chosen))


def _has(each: Simple, field: str, value: str) -> bool:
    worst, own = each.members[0], each.problem.facts
    language, policy = worst.facts.policy
    path = "/".join(filter(None, (worst.place.namespace, worst.name)))
    values: dict[str, tuple[str, ...]] = {
        "policy": (policy, f"{policy} of {language}"),
        "namespace": (worst.place.namespace or "_cluster",),
        "owner": (worst.place.owner or "unowned",),
        "severity": (SEVERITIES[each.problem.severity],),
        "action": (own.action,),
        "workload": (
            f"{worst.place.kind} {worst.place.workload or path}",
            f"{worst.place.kind}/{(worst.place.workload or path).rpartition('/')[2]}",
        ),
        "kind": (worst.place.object_kind,),
    }
    if field in values:
        return value in values[field]
    if value == "open":
        return own.status in COUNTED and not own.waived and not own.excepted
    return own.status != "resolved" if value == "unresolved" else own.status == value


GLOBS = {"policy": "[ab]*", "namespace": "s?op", "owner": "pay*", "workload": "deployment/w*", "kind": "*Set"}


@pytest.mark.parametrize("field", GLOBS)
@given(FINDINGS)
def test_a_glob_chooses_each_problem_of_a_name_that_it_matches(field: str, findings: list[Made]) -> None:
    """A glob of owners does not choose objects without an owner."""
    names = {
        "policy": ("a", "b"),
        "namespace": ("shop",),
        "owner": ("payments",),
        "workload": ("Deployment shop/web",),
        "kind": ("ReplicaSet",),
    }
    listing = listed(findings)
    chosen = listing.choose(by(field, GLOBS[field]))
    assert list(listing.choose(by(field, *names[field]))) == list(chosen)


@given(
    FINDINGS, st.sampled_from(("x", "shop", "pay", "kyverno", "pod", "p-0", "abc", "000000abc", "b shop", "word shop"))
)
def test_words_are_those_of_one_finding(findings: list[Made], text: str) -> None:
    """Or names of its problem; `word` is in the message of a verdict, and of objects with odd numbers."""
    odd = frozenset(range(101, 120, 2))
    words = [
        NOTHING._replace(verdicts=frozenset({11}), objects=odd) if each == "word" else NOTHING for each in text.split()
    ]
    chosen = listed(findings).choose(ListFilter(text=text), words)
    expected = [each for each in simple(findings) if _matches(each, text.split(), odd)]
    assert shown(expected) == without_places(list(chosen))


def _matches(each: Simple, asked: list[str], odd: frozenset[int]) -> bool:
    worst = each.members[0]
    language, policy = worst.facts.policy
    path = worst.place.workload or "/".join(filter(None, (worst.place.namespace, worst.name)))
    names = f"{policy} of {language}\n{policy} {worst.place.owner} {worst.place.kind} {path}".casefold()
    ids = f"p-{each.problem.number:012x}", f"{0xABC000 + each.problem.rows[0]:012x}"
    return any(
        all(
            word in names
            or any(one.startswith(word) for one in ids)
            or (word == "word" and (made.facts.verdict == 11 or 100 + row in odd))
            for word in asked
        )
        for row, made in zip(each.problem.rows, each.members, strict=True)
    )
