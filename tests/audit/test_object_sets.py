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
    SetKey,
    concatenate,
    list_places,
    pack,
    unpack,
)
from scanner.model.outcome import Check, CheckKind

A, B, C = (InvocationKey("validating", name, f"bind-{name}", "", "limits") for name in "abc")
EVALUATED = ((Check(CheckKind.VALIDATION, 0, "true"), ""),)
SKIPPED = ((Check(CheckKind.VALIDATION, 0, "true"), "conditionFalse"), (Check(CheckKind.MUTATION, 1), "notAuditable"))
KEYS = [SetKey(A, EVALUATED), SetKey(B, EVALUATED), SetKey(B, SKIPPED), SetKey(C, ())]
keys = st.sampled_from(KEYS)
parts = st.integers(0, 90).flatmap(
    lambda count: st.builds(
        ObjectSets, st.just(count), st.dictionaries(keys, st.integers(0, (1 << count) - 1), max_size=5)
    )
)


def invocation(number: int) -> SetKey:
    """The key of an invocation of policy `number`."""
    return SetKey(InvocationKey("validating", f"policy-{number}", f"policy-{number}"), EVALUATED)


def bits_of(members: frozenset[int] | set[int]) -> int:
    """A set of places as an int."""
    return sum(1 << place for place in members)


def members(sets: ObjectSets[SetKey]) -> Mapping[SetKey, frozenset[int]]:
    """The sets that are not empty, computed bit by bit."""
    return {key: frozenset(place for place in range(sets.count) if bits >> place & 1) for key, bits in sets.sets.items() if bits}  # fmt: skip


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
    assert concatenate(pages) == kind.finish()


def test_equal_sets_are_one_int() -> None:
    """A kind whose policies all match everything has a single set."""
    kind: KindSets[SetKey] = KindSets()
    for _ in range(200):
        kind.add(ObjectSets(500, {invocation(number): (1 << 500) - 1 for number in range(50)}))
    assert 1 == len({id(bits) for bits in kind.finish().sets.values()})


@given(parts)
def test_staged_sets_are_read_unchanged(sets: ObjectSets[SetKey]) -> None:
    """The number of objects and every set are the same; an empty set is left out."""
    again = unpack(pack(sets))
    assert (sets.count, members(sets)) == (again.count, members(again))


def test_staged_sets_are_small() -> None:
    """The sets of 500 policies that match nearly all of 100,000 objects take less than 11 bytes for each policy."""
    everything = (1 << 100_000) - 1
    sets = {invocation(number): everything ^ (1 << number // 100) for number in range(500)}
    assert 5_500 > len(pack(ObjectSets(100_000, sets)))


@given(st.frozensets(st.integers(0, 300)))
def test_the_places_of_a_set_are_ascending(numbers: frozenset[int]) -> None:
    """Each place appears once."""
    assert sorted(numbers) == [*list_places(bits_of(numbers))]
