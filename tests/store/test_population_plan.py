"""Facts about the rows of the population that a scan closes and opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scanner.store.population_plan import (
    Close,
    Group,
    GroupSum,
    GroupSums,
    Identity,
    InForce,
    Keep,
    Open,
    Repeat,
    Seen,
    Step,
    plan,
    unequal,
)

KEY = b"key of a test"
NEVER = 10**9

identities = st.builds(
    Identity,
    st.sampled_from(["v1", "apps/v1"]),
    st.just("Thing"),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["x", "y", "é", "\U0001f600"]),
    st.sampled_from(["", "1", "2"]),
)
digests = st.sampled_from([b"d0", b"d1", b"d2"])
lists = st.lists(st.tuples(identities, digests), max_size=12)
scans = st.lists(st.tuples(lists, st.frozensets(st.sampled_from(["v1", "apps/v1"]))), max_size=6)


@dataclass
class Row:
    """A row of a table of the population."""

    identity: Identity
    digest: bytes
    since: int
    until: int = NEVER


@dataclass
class Table:
    """The population as a store keeps it: rows, and the sums of the rows in force."""

    rows: list[Row] = field(default_factory=list)
    sums: GroupSums = field(default_factory=lambda: GroupSums(KEY))

    def scan(self, revision: int, objects: Sequence[tuple[Identity, bytes]], reached: frozenset[str]) -> list[int]:
        """Apply a scan, and return the row of each object, in the order of the list."""
        seen = [Seen(identity, digest, place) for place, (identity, digest) in enumerate(objects)]
        own: dict[int, int] = {}
        current = -1
        for step in plan(self.in_force(), sorted(seen, key=lambda each: each.identity), lambda identity: identity.api_version in reached):  # fmt: skip
            current = self.apply(step, revision, current)
            if not isinstance(step, Close):
                own[step.seen.item] = current
        return [own[place] for place in range(len(objects))]

    def in_force(self) -> list[InForce]:
        """The open rows, sorted."""
        return sorted(InForce(row.identity, row.digest, number) for number, row in enumerate(self.rows) if row.until == NEVER)  # fmt: skip

    def apply(self, step: Step[int], revision: int, current: int) -> int:
        """Apply a step. Return the row of its object, which a `Repeat` shares with the step before it."""
        match step:
            case Close(number):
                self.rows[number].until = revision
                self.sums.remove(self.rows[number].identity, self.rows[number].digest)
            case Open(seen):
                self.rows.append(Row(seen.identity, seen.digest, revision))
                self.sums.add(seen.identity, seen.digest)
                return len(self.rows) - 1
            case Keep(number, _):
                return number
            case Repeat():
                pass
        return current


def replayed(history: Sequence[tuple[Sequence[tuple[Identity, bytes]], frozenset[str]]]) -> set[tuple[object, ...]]:
    """The intervals after some scans, computed simply: the state of each object at each revision, then the changes."""
    moments: list[dict[Identity, bytes]] = []
    state: dict[Identity, bytes] = {}
    for objects, reached in history:
        state = {identity: digest for identity, digest in state.items() if identity.api_version not in reached}
        for identity in {identity for identity, _ in objects}:
            state[identity] = min(digest for other, digest in objects if other == identity)
        moments.append(state)
    intervals: set[tuple[object, ...]] = set()
    for identity in {identity for moment in moments for identity in moment}:
        begun, last = 0, None
        for revision, moment in enumerate([*moments, None]):
            now = moment.get(identity) if moment is not None else None
            if now == last and moment is not None:
                continue
            if last is not None:
                intervals.add((identity, last, begun, NEVER if moment is None else revision))
            begun, last = revision, now
    return intervals


@given(scans)
def test_any_sequence_of_scans_gives_the_intervals_of_a_replay(
    history: list[tuple[list[tuple[Identity, bytes]], frozenset[str]]],
) -> None:
    """Objects come, change, go and come back; kinds are not reached, or not to their end; an object comes twice."""
    table = Table()
    for revision, (objects, reached) in enumerate(history):
        own = table.scan(revision, objects, reached)
        assert [identity for identity, _ in objects] == [table.rows[number].identity for number in own]
        assert all(table.rows[number].until == NEVER for number in own)
    assert replayed(history) == {(row.identity, row.digest, row.since, row.until) for row in table.rows}


@given(scans)
def test_an_unchanged_scan_keeps_every_row(
    history: list[tuple[list[tuple[Identity, bytes]], frozenset[str]]],
) -> None:
    """No row is closed, and none is opened."""
    table = Table()
    everything = frozenset(["v1", "apps/v1"])
    for revision, (objects, _) in enumerate(history):
        table.scan(revision, objects, everything)
        before = [(row.since, row.until) for row in table.rows]
        table.scan(revision + 100, objects, everything)
        assert before == [(row.since, row.until) for row in table.rows]


@given(lists, lists)
def test_a_group_with_an_equal_sum_needs_no_plan(first: list[tuple[Identity, bytes]], second: list[tuple[Identity, bytes]]) -> None:  # fmt: skip
    """Every step that closes or opens a row is in a group that is not equal, and each such group has one."""
    before, after = dict(first), dict(second)
    changed = {identity[:3] for identity in before.keys() | after.keys() if before.get(identity) != after.get(identity)}
    assert changed == unequal(summed(before), summed(after))


@given(scans)
def test_sums_follow_the_rows_in_force(history: list[tuple[list[tuple[Identity, bytes]], frozenset[str]]]) -> None:
    """Sums updated with each closed and opened row equal the sums of the rows in force."""
    table = Table()
    for revision, (objects, reached) in enumerate(history):
        table.scan(revision, objects, reached)
        assert summed({row.identity: row.digest for row in table.in_force()}) == table.sums.sums()


def summed(objects: Mapping[Identity, bytes]) -> Mapping[Group, GroupSum]:
    """The sums of some objects, in reverse order."""
    sums = GroupSums(KEY)
    for identity, digest in reversed([*objects.items()]):
        sums.add(identity, digest)
    return sums.sums()


@given(lists, st.integers(0, 12))
def test_sums_of_pages_add_up(objects: list[tuple[Identity, bytes]], place: int) -> None:
    """The result has the sums of all objects, with repeated objects counted twice."""
    whole, pages = GroupSums(KEY), [GroupSums(KEY), GroupSums(KEY)]
    for number, (identity, digest) in enumerate(objects):
        whole.add(identity, digest)
        pages[number < place].add(identity, digest)
    together = GroupSums(KEY)
    for page in pages:
        together.include(page.sums())
    assert whole.sums() == together.sums()


def test_a_sum_separates_the_parts_of_an_identity() -> None:
    """`ab` + `c` and `a` + `bc` have different sums."""
    first, second = (Identity("v1", "Thing", "", name, uid) for name, uid in (("ab", "c"), ("a", "bc")))
    assert summed({first: b"d"}) != summed({second: b"d"})


def test_the_sums_of_two_databases_differ() -> None:
    """The key of the database is part of every hash."""
    sums = [GroupSums(key) for key in (b"one", b"two")]
    for each in sums:
        each.add(Identity("v1", "Thing", "", "\ud800", ""), b"d")
    assert sums[0].sums() != sums[1].sums()


def numbered(name: str) -> Identity:
    """The identity of an object with a name."""
    return Identity("v1", "Thing", "", name, "")


@pytest.mark.parametrize(
    "streams",
    [
        lambda: plan([InForce(numbered("b"), b"", 1), InForce(numbered("a"), b"", 2)], []),
        lambda: plan([], [Seen(numbered("b"), b"", 1), Seen(numbered("a"), b"", 2)]),
    ],
)
def test_a_stream_that_is_not_sorted_raises(streams: Callable[[], object]) -> None:
    """Otherwise rows would open and close with each scan."""
    with pytest.raises(ValueError, match="not in order"):
        list(streams())  # type: ignore[call-overload]


@given(st.integers(1, 50))
@example(1)
def test_a_plan_is_lazy(count: int) -> None:
    """The first step is returned before the streams are read to their end."""
    read = []

    def objects() -> object:
        for number in range(count):
            read.append(number)
            yield Seen(numbered(f"{number:03}"), b"", number)

    assert Open(Seen(numbered("000"), b"", 0)) == next(plan([], objects()))  # type: ignore[arg-type]
    assert min(count, 2) == len(read)
