"""Facts about the sets of objects that policies matched and did not evaluate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from scanner.audit.object_sets import (
    InvocationKey,
    KindSets,
    ObjectSets,
    PageSets,
    SetKey,
    concatenate,
    packed,
    places,
    unpacked,
)

A, B, C = (InvocationKey("validating", name, f"bind-{name}", "", "\ud800") for name in "abc")
KEYS = [SetKey(A), SetKey(B), SetKey(B, 2), SetKey(B, 2, "condition"), SetKey(C, -1, "no param")]
keys = st.sampled_from(KEYS)
namespaces = st.sampled_from(["", "a", "b"])
marks = st.lists(st.tuples(keys, st.integers(0, 30)), max_size=20)
wholes = st.lists(st.tuples(st.lists(keys, max_size=4), namespaces), max_size=6)
parts = st.integers(0, 90).flatmap(
    lambda count: st.builds(
        ObjectSets, st.just(count), st.dictionaries(keys, st.integers(0, (1 << count) - 1), max_size=5)
    )
)


def invocation(number: int) -> SetKey:
    """The key of an invocation of policy `number`."""
    return SetKey(InvocationKey("validating", f"policy-{number}", f"policy-{number}"))


def bits_of(members: frozenset[int] | set[int]) -> int:
    """A set of places as an int."""
    return sum(1 << place for place in members)


def members(sets: ObjectSets[SetKey]) -> Mapping[SetKey, frozenset[int]]:
    """The sets that are not empty, computed bit by bit."""
    return {key: frozenset(place for place in range(sets.count) if bits >> place & 1) for key, bits in sets.sets.items() if bits}  # fmt: skip


@given(st.lists(namespaces, max_size=31), marks, marks, wholes)
def test_a_page_has_the_sets_that_were_marked(
    objects: list[str],
    marked: list[tuple[SetKey, int]],
    left_out: list[tuple[SetKey, int]],
    whole: list[tuple[list[SetKey], str]],
) -> None:
    """A set has the marked namespaces without the objects left out, and the marked objects, in any order of the calls."""
    page = PageSets()
    expected: defaultdict[SetKey, set[int]] = defaultdict(set)
    for several, namespace in whole:
        page.mark_namespace(several, namespace)
        for key in several:
            expected[key] |= {place for place, home in enumerate(objects) if home == namespace}
    for key, place in left_out:
        page.leave_out(key, place)
        expected[key].discard(place)
    assert [*range(len(objects))] == [page.add(namespace) for namespace in objects]
    for key, place in marked:
        if place < len(objects):
            page.mark(key, place)
            expected[key].add(place)
    assert {key: places for key, places in expected.items() if places} == members(page.finished())


@given(st.lists(parts, max_size=6))
def test_sets_of_pages_are_joined_in_their_order(pages: list[ObjectSets[SetKey]]) -> None:
    """The result is that of a single page with the objects of all pages."""
    expected: defaultdict[SetKey, set[int]] = defaultdict(set)
    offset = 0
    for page in pages:
        for key, own in members(page).items():
            expected[key] |= {offset + place for place in own}
        offset += page.count
    joined = concatenate(pages)
    assert offset == joined.count
    assert {key: frozenset(own) for key, own in expected.items()} == members(joined)


@given(parts, parts, st.integers(0, 200))
def test_a_kind_of_many_pages_has_the_sets_of_its_pages(
    first: ObjectSets[SetKey], second: ObjectSets[SetKey], count: int
) -> None:
    """The result does not depend on how pages are joined on the way."""
    pages = [first if number % 3 else second for number in range(count)]
    kind: KindSets[SetKey] = KindSets()
    for page in pages:
        kind.add(page)
    assert concatenate(pages) == kind.finished()


def test_equal_sets_are_one_int() -> None:
    """A kind whose policies all match everything has a single set."""
    kind: KindSets[SetKey] = KindSets()
    for _ in range(200):
        kind.add(ObjectSets(500, {invocation(number): (1 << 500) - 1 for number in range(50)}))
    assert 1 == len({id(bits) for bits in kind.finished().sets.values()})


@given(parts)
def test_staged_sets_are_read_unchanged(sets: ObjectSets[SetKey]) -> None:
    """The number of objects and every set are the same; an empty set is left out."""
    again = unpacked(packed(sets))
    assert (sets.count, members(sets)) == (again.count, members(again))


def test_staged_sets_are_small() -> None:
    """The sets of 500 policies that match nearly all of 100,000 objects take less than 10 bytes for each policy."""
    everything = (1 << 100_000) - 1
    sets = {invocation(number): everything ^ (1 << number // 100) for number in range(500)}
    assert 5_000 > len(packed(ObjectSets(100_000, sets)))


@given(st.frozensets(st.integers(0, 300)))
def test_the_places_of_a_set_are_ascending(numbers: frozenset[int]) -> None:
    """Each place appears once."""
    assert sorted(numbers) == [*places(bits_of(numbers))]
