"""Runs: when a schedule expects one, the state of every expected run, and when a cluster is silent.

Every expected time has one state, and every run has one entry. A run belongs to the last expected time before its start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

from scanner.model.scans.run import RunDetails, explain_kill
from scanner.model.scans.scan import Scope
from scanner.model.schedule import Schedule

_PASSED: Final = 0
_GATE: Final = 1
_USAGE: Final = 2
_INCOMPLETE: Final = 3
_SHOWN: Final = 3
_WHOLE: Final = Scope()
_FLAGS: Final = {
    "namespaces": "--namespace",
    "kinds": "--kind",
    "policies": "--policy",
    "bindings": "--binding",
    "selector": "--selector",
}


class RunState(StrEnum):
    """The state of an expected run, or of another run. `due` is an expected run that is not late yet."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    LATE = "late"
    MISSED = "missed"
    FAILED = "failed"
    RUNNING = "running"
    DUE = "due"


_PREFERENCE: Final = (RunState.COMPLETE, RunState.INCOMPLETE, RunState.RUNNING, RunState.FAILED)
"""Of several runs in the time of one expected run, the first in this order decides; the job may have retried a failed one."""


@dataclass(frozen=True, slots=True)
class RegisterEntry:
    """A line of the register. `expected` is None for a run that no schedule expects; `run` is None if none began.

    `late` is the time between the expected time and the start of the run, if it is more than the tolerance. `why` are sentences
    about the state, each without a full stop.
    """

    state: RunState
    expected: datetime | None = None
    run: RunDetails | None = None
    late: timedelta | None = None
    why: tuple[str, ...] = ()

    @property
    def moment(self) -> datetime:
        """The place of the entry in the register: the expected time, else the start of the run."""
        if self.expected is not None:
            return self.expected
        assert self.run is not None  # noqa: S101 - an entry is about an expected time or a run
        return self.run.run.started_at


def make_register(
    runs: Iterable[RunDetails], times: Sequence[datetime], *, now: datetime, tolerance: timedelta
) -> tuple[RegisterEntry, ...]:
    """The entries of runs and expected times, the oldest first. `times` increase, and none is later than `now`.

    A run that began in the future, by a wrong clock, stands for no expected time, for as long as that may be.
    """
    by_time: dict[int, list[RunDetails]] = {}
    in_order = sorted(runs, key=lambda run: (run.run.started_at, run.run.number))
    future = [run for run in in_order if run.run.started_at > now + tolerance]
    # Runs of the future are the last ones.
    for run in in_order[: len(in_order) - len(future)]:
        by_time.setdefault(bisect_right(times, run.run.started_at) - 1, []).append(run)
    entries = [run_entry(run) for run in by_time.get(-1, ())]
    for place, expected in enumerate(times):
        following = times[place + 1] if place + 1 < len(times) else None
        runs_of_time = by_time.get(place, [])
        if runs_of_time:
            entries.extend(_list_with_runs(expected, runs_of_time, tolerance))
        else:
            entries.append(_note_missing_run(expected, following, now, tolerance))
    return (*entries, *map(run_entry, future))


def run_entry(run: RunDetails) -> RegisterEntry:
    """The entry of a run that no schedule expects."""
    state, why = _state_of(run)
    return RegisterEntry(state, None, run, None, (*why, *_scope_of(run)))


def _list_with_runs(expected: datetime, runs: list[RunDetails], tolerance: timedelta) -> Iterator[RegisterEntry]:
    """The entry of an expected time, and those of the other runs until the next one."""
    chosen = min(runs, key=lambda run: _PREFERENCE.index(_state_of(run)[0]))
    state, why = _state_of(chosen)
    delay = chosen.run.started_at - expected
    late = delay if delay > tolerance else None
    if late is not None:
        why = (f"it began {write_duration(late)} after the expected time", *why)
    if late is not None and state is RunState.COMPLETE:
        state = RunState.LATE
    yield RegisterEntry(state, expected, chosen, late, (*why, *_scope_of(chosen)))
    yield from (run_entry(run) for run in runs if run is not chosen)


def _note_missing_run(
    expected: datetime, following: datetime | None, now: datetime, tolerance: timedelta
) -> RegisterEntry:
    if following is not None:
        why = f"no run began before the next expected time, {following:%Y-%m-%d %H:%MZ}"
        return RegisterEntry(RunState.MISSED, expected, why=(why,))
    if now - expected > tolerance:
        return RegisterEntry(RunState.MISSED, expected, why=(f"no run began in {write_duration(now - expected)}",))
    return RegisterEntry(RunState.DUE, expected, why=("no run has begun yet",))


def _state_of(details: RunDetails) -> tuple[RunState, tuple[str, ...]]:
    """The state of a run by its exit code, and the reasons. Without an exit code, its last sign of life decides."""
    run = details.run
    if run.exit_code is None:
        if details.last_sign is None:
            return RunState.RUNNING, ()
        return RunState.FAILED, (explain_kill(details.last_sign),)
    if run.exit_code == _INCOMPLETE and details.complete:
        return RunState.COMPLETE, ((run.reason or "interrupted").rstrip("."),)
    if run.exit_code == _INCOMPLETE:
        return RunState.INCOMPLETE, (_explain_incomplete(details),)
    if run.exit_code in {_PASSED, _GATE}:
        gate = ("a gate failed",) if run.exit_code == _GATE else ()
        if details.complete is False:
            return RunState.INCOMPLETE, (_explain_incomplete(details), *gate)
        return RunState.COMPLETE, gate
    about = "usage or configuration: " if run.exit_code == _USAGE else ""
    return RunState.FAILED, (f"{about}{run.reason or 'no reason was recorded'}".rstrip("."),)


def _explain_incomplete(details: RunDetails) -> str:
    """The places of the gaps, or the recorded reason of a scan without gaps."""
    if not details.gaps:
        return (details.run.reason or "the scan is incomplete").rstrip(".")
    places = list(dict.fromkeys(details.gaps))
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    number = len(details.gaps)
    return f"{number} gap{'s' if number > 1 else ''}: {', '.join(places[:_SHOWN])}{more}"


def _scope_of(details: RunDetails) -> tuple[str, ...]:
    """The flags that limit the scan to a part: a scan of one namespace may not be the expected scan of a cluster."""
    scope = details.scope or _WHOLE
    limits = [
        f"{flag} {value if isinstance(value, str) else ','.join(value)}"
        for name, flag in _FLAGS.items()
        if (value := getattr(scope, name))
    ]
    return (f"limited by {' '.join(limits)}",) if limits else ()


def write_duration(length: timedelta) -> str:
    """A length of time in its two largest units: `2 d 3 h`, `1 h 5 min`, `12 min`, `40 s`."""
    seconds = int(length.total_seconds())
    units = (("d", seconds // 86400), ("h", seconds // 3600 % 24), ("min", seconds // 60 % 60), ("s", seconds % 60))
    first = next((place for place, (_, number) in enumerate(units) if number), len(units) - 1)
    shown = units[first : first + (1 if units[first][0] == "min" else 2)]
    return " ".join(f"{number} {unit}" for unit, number in shown if number) or "0 s"


# The last time at which a schedule expected a run, and how long the schedule lets pass between two runs around it.

_PERIODS: Final = tuple(timedelta(hours=hours) for hours in (1, 24, 24 * 8, 24 * 40, 24 * 400, 24 * 366 * 5))
"""How far back to search, the shortest first: a schedule may have a time each minute, or one in five years."""


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """The last expected time `at`, and the `following` one, None if there is none within five years.

    `interval` is the longer one of the times before and after `at`: after a weekend without runs, the first run is still due when
    the next day has begun. None if the schedule has one time only.
    """

    at: datetime
    following: datetime | None
    interval: timedelta | None

    def is_last(self, moment: datetime) -> bool:
        """Return whether no other time was expected by a moment."""
        return self.at <= moment and (self.following is None or moment < self.following)


def find_expected_run(schedule: Schedule, moment: datetime) -> ExpectedRun | None:
    """The last expected run at a moment, None if there was none within five years."""
    times: list[datetime] = []
    for period in _PERIODS:
        times = list(schedule.list_times(moment - period, moment))
        if len(times) > 1:
            break
    if not times:
        return None
    following = schedule.find_next(moment)
    around = [*times[-2:], *([following] if following else [])]
    lengths = [later - earlier for earlier, later in pairwise(around)]
    return ExpectedRun(times[-1], following, max(lengths, default=None))


_EARLY: Final = timedelta(minutes=1)
"""A run may begin so long before its time, by a clock that is behind."""


def find_following_run(schedule: Schedule, begun: datetime) -> datetime | None:
    """The first time after the begin of a run at which another one is expected, None if there is none within five years."""
    return schedule.find_next(begun + _EARLY)


# Detect a cluster without runs: its last run began longer ago than one and a half times the interval between runs.
#
# With a schedule, the interval is that between the two next expected times after the run, so that a schedule without
# runs at weekends calls no cluster silent on a Sunday. Without a schedule, runs are expected daily. A cluster that is
# scanned again and again, and never completely, is not silent: it is *never complete*.

DAILY: Final = timedelta(days=1)
"""The expected interval between runs where no schedule is configured."""
FACTOR: Final = 1.5


class ClusterState(StrEnum):
    """The faults of the runs of a cluster, independent of their findings. A cluster may have the first two.

    A cluster that left the fleet has no other one: no run of it is expected.
    """

    SILENT = "silent"
    NEVER_COMPLETE = "neverComplete"
    LEFT = "left"


def cluster_states(
    last_run: datetime | None, now: datetime, schedule: Schedule | None, *, has_complete_scan: bool
) -> Iterator[ClusterState]:
    """The states of a cluster whose last run began at a moment; None if no run of it is recorded."""
    silence = None if last_run is None else find_silence(last_run, schedule)
    if last_run is None or (silence is not None and now > silence):
        yield ClusterState.SILENT
    if not has_complete_scan:
        yield ClusterState.NEVER_COMPLETE


def find_silence(started: datetime, schedule: Schedule | None) -> datetime | None:
    """The moment from which a cluster is silent whose last run began at `started`; None if no further run is expected."""
    if schedule is None:
        return started + FACTOR * DAILY
    expected = schedule.find_next(started)
    following = schedule.find_next(expected) if expected else None
    if expected is None or following is None:
        return None
    interval = following - expected
    return max(started + FACTOR * interval, expected + (FACTOR - 1) * interval)
