"""Facts about the intervals of the population that a scan closes and opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.store.history.population import (
    ChangeInterval,
    CloseInterval,
    Content,
    Identity,
    IntervalInForce,
    KeepInterval,
    OpenInterval,
    RepeatObject,
    SeenObject,
    Step,
    plan_steps,
)

NEVER = 10**9

identities = st.builds(
    Identity,
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["x", "y", "é", "\U0001f600"]),
    st.sampled_from(["", "1", "2"]),
)
contents = st.sampled_from([(0, 0), (1, 0), (0, 1)])
lists = st.lists(st.tuples(identities, contents), max_size=12)
scans = st.lists(st.tuples(lists, st.frozensets(st.sampled_from(["", "a", "b"]))), max_size=6)
History = Sequence[tuple[Sequence[tuple[Identity, Content]], frozenset[str]]]


@dataclass
class Interval:
    """An interval of a table of the population."""

    number: int
    identity: Identity
    content: Content
    since: int
    until: int = NEVER


@dataclass
class Table:
    """The population as a store keeps it."""

    intervals: list[Interval] = field(default_factory=list)
    objects: int = 0

    def scan(self, revision: int, objects: Sequence[tuple[Identity, Content]], reached: frozenset[str]) -> list[int]:
        """Apply a scan, and return the object of each place of the list."""
        seen = [SeenObject(identity, content, place) for place, (identity, content) in enumerate(objects)]
        ordered = sorted(seen, key=lambda each: each.identity)
        own: dict[int, int] = {}
        current = -1
        for step in plan_steps(self.in_force(), ordered, lambda row: row.identity.namespace in reached):
            current = self.apply(step, revision, current)
            if not isinstance(step, CloseInterval):
                own[step.seen.item] = current
        return [own[place] for place in range(len(objects))]

    def in_force(self) -> list[IntervalInForce]:
        """The open intervals, sorted."""
        return sorted(
            IntervalInForce(each.identity, each.content, each.number, each.since)
            for each in self.intervals
            if each.until == NEVER
        )

    def apply(self, step: Step[int], revision: int, current: int) -> int:
        """Apply a step. Return its object, which a `RepeatObject` shares with the step before it."""
        match step:
            case CloseInterval(number):
                self.end(number, revision)
            case OpenInterval(seen):
                self.objects += 1
                self.intervals.append(Interval(self.objects, seen.identity, seen.content, revision))
                return self.objects
            case ChangeInterval(number, seen):
                self.end(number, revision)
                self.intervals.append(Interval(number, seen.identity, seen.content, revision))
                return number
            case KeepInterval(number, _):
                return number
            case RepeatObject():
                pass
        return current

    def end(self, number: int, revision: int) -> None:
        """End the open interval of an object."""
        [interval] = [each for each in self.intervals if each.number == number and each.until == NEVER]
        interval.until = revision


def replayed(history: History) -> set[tuple[object, ...]]:
    """The intervals after some scans, naively: the content of each object at each revision, then the changes."""
    moments: list[dict[Identity, Content]] = []
    state: dict[Identity, Content] = {}
    for objects, reached in history:
        state = {identity: content for identity, content in state.items() if identity.namespace not in reached}
        for identity in {identity for identity, _ in objects}:
            state[identity] = min(content for other, content in objects if other == identity)
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
def test_any_sequence_of_scans_gives_the_intervals_of_a_replay(history: History) -> None:
    """Objects appear, change, disappear and return; namespaces are out of reach; an object appears twice."""
    table = Table()
    for revision, (objects, reached) in enumerate(history):
        own = table.scan(revision, objects, reached)
        open_now = {each.number: each.identity for each in table.intervals if each.until == NEVER}
        assert [identity for identity, _ in objects] == [open_now[number] for number in own]
    assert replayed(history) == {(each.identity, each.content, each.since, each.until) for each in table.intervals}


@given(scans)
def test_an_unchanged_scan_keeps_every_interval(history: History) -> None:
    """It closes no interval and opens none."""
    table = Table()
    everything = frozenset(["", "a", "b"])
    for revision, (objects, _) in enumerate(history):
        table.scan(revision, objects, everything)
        before = [(each.since, each.until) for each in table.intervals]
        table.scan(revision + 100, objects, everything)
        assert before == [(each.since, each.until) for each in table.intervals]


def named(name: str) -> Identity:
    """The identity of a cluster-scoped object."""
    return Identity("", name, "")


@pytest.mark.parametrize(
    "steps",
    [
        lambda: plan_steps([IntervalInForce(named("b"), (0, 0), 1, 1), IntervalInForce(named("a"), (0, 0), 2, 1)], []),
        lambda: plan_steps([], [SeenObject(named("b"), (0, 0), 1), SeenObject(named("a"), (0, 0), 1)]),
    ],
)
def test_a_stream_that_is_not_sorted_raises(steps: Callable[[], object]) -> None:
    """A merge of unsorted streams would close and open intervals with each scan."""
    with pytest.raises(ValueError, match="not in order"):
        list(steps())  # type: ignore[call-overload]


@given(st.integers(1, 50))
def test_a_plan_is_lazy(count: int) -> None:
    """The first step comes before the streams are read to their end."""
    read: list[int] = []

    def objects() -> object:
        for number in range(count):
            read.append(number)
            yield SeenObject(named(f"{number:03}"), (0, 0), number)

    next(plan_steps([], objects()))  # type: ignore[arg-type]
    assert 2 >= len(read)
