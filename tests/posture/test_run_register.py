"""The run register: every expected time has one state, and no run is lost."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.scans.run import Run, RunDetails
from scanner.model.scans.scan import Scope
from scanner.posture.run_register import RegisterEntry, RunState, make_register, write_duration

FIRST = datetime(2026, 11, 20, 2, 17, tzinfo=UTC)
DAY = timedelta(days=1)
TIMES = (FIRST, FIRST + DAY)
NOW = FIRST + DAY + timedelta(hours=1)
TEN_MINUTES = timedelta(minutes=10)
RUNNING = None


def run(number: int, minutes: float, exit_code: int | None, *, gone: bool = False, **facts: object) -> RunDetails:
    """A run that began some minutes after the first expected time."""
    started = FIRST + timedelta(minutes=minutes)
    complete = {0: True, 1: True, 3: False}.get(-1 if exit_code is None else exit_code)
    recorded = Run(number, "prod", started, exit_code=exit_code, reason=str(facts.pop("reason", "")))
    details = {"complete": complete, "last_sign": started if gone else None, **facts}
    return RunDetails(recorded, **details)  # type: ignore[arg-type] # facts of the right types


def registered(
    *runs: RunDetails, now: datetime = NOW, times: tuple[datetime, ...] = TIMES
) -> tuple[RegisterEntry, ...]:
    """The register of these runs."""
    return make_register(runs, times, now=now, tolerance=TEN_MINUTES)


def shown(entries: tuple[RegisterEntry, ...]) -> str:
    """The entries in a line: `+` before expected ones, the number of the run, the state."""
    return " ".join(
        f"{'+' if entry.expected else ''}{entry.run.run.number if entry.run else ''}{entry.state.value}"
        for entry in entries
    )


SECOND = run(9, 24 * 60, 0)
"""A run at the second expected time."""


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], "+missed +missed"),
        ([run(1, 0, 0)], "+1complete +missed"),
        ([run(1, 10, 0), SECOND], "+1complete +9complete"),
        ([run(1, 10.1, 0), SECOND], "+1late +9complete"),
        ([run(1, 23 * 60, 0), SECOND], "+1late +9complete"),
        ([run(1, -1, 0), SECOND], "1complete +missed +9complete"),
        ([run(1, 0, 1), SECOND], "+1complete +9complete"),
        ([run(1, 0, 3), SECOND], "+1incomplete +9complete"),
        ([run(1, 30, 3), SECOND], "+1incomplete +9complete"),
        ([run(1, 0, 0, complete=False), SECOND], "+1incomplete +9complete"),
        ([run(1, 0, 4), SECOND], "+1failed +9complete"),
        ([run(1, 0, 2), SECOND], "+1failed +9complete"),
        ([run(1, 30, 4), SECOND], "+1failed +9complete"),
        ([run(1, 0, RUNNING, gone=True), SECOND], "+1failed +9complete"),
        ([run(1, 0, RUNNING), SECOND], "+1running +9complete"),
        # A retried run, and runs besides the schedule.
        ([run(1, 0, 4), run(2, 1, 0), SECOND], "+2complete 1failed +9complete"),
        ([run(1, 0, 4), run(2, 60, 0), SECOND], "+2late 1failed +9complete"),
        ([run(1, 0, 4), run(2, 1, RUNNING), SECOND], "+2running 1failed +9complete"),
        ([run(1, 0, 3), run(2, 1, RUNNING), SECOND], "+1incomplete 2running +9complete"),
        ([run(1, 0, 0), run(2, 60, 0), SECOND], "+1complete 2complete +9complete"),
        ([run(1, 0, 4), run(2, 1, 4), SECOND], "+1failed 2failed +9complete"),
    ],
)
def test_every_expected_time_has_a_state(runs: list[RunDetails], expected: str) -> None:
    """That of the best run from this time until the next one; the other runs are listed besides."""
    assert expected == shown(registered(*runs))


def test_a_run_is_due_within_the_tolerance() -> None:
    """It is missed when the tolerance has passed."""
    assert "+due" == shown(registered(now=FIRST + TEN_MINUTES, times=(FIRST,)))
    assert "+missed" == shown(registered(now=FIRST + TEN_MINUTES + timedelta(seconds=1), times=(FIRST,)))


def test_a_run_of_2030_stands_for_no_expected_time() -> None:
    """Else it would hide until then that no run begins any more; it is listed last."""
    assert "+1complete +missed 3complete" == shown(registered(run(3, 4 * 365 * 24 * 60, 0), run(1, 0, 0)))


@pytest.mark.parametrize(
    ("details", "why"),
    [
        (run(1, 0, 0), ()),
        (run(1, 0, 1), ("a gate failed",)),
        (run(1, 0, 4, reason="https://10.0.0.1 cannot be reached."), ("https://10.0.0.1 cannot be reached",)),
        (run(1, 0, 2, reason="--kind Pud matches nothing"), ("usage or configuration: --kind Pud matches nothing",)),
        (run(1, 0, 3, gaps=("v1/Secret",)), ("1 gap: v1/Secret",)),
        (run(1, 0, 3, gaps=("a", "b", "a", "c", "d")), ("5 gaps: a, b, c and 1 more",)),
        (run(1, 0, 3, reason="No policies were found."), ("No policies were found",)),
        (run(1, 0, 1, complete=False, gaps=("v1/Pod",)), ("1 gap: v1/Pod", "a gate failed")),
        (
            run(1, 0, RUNNING, gone=True),
            ("the process ended without a result after 2026-11-20 02:17:00Z",),
        ),
        (run(1, 125, 0), ("it began 2 h 5 min after the expected time",)),
        (run(1, 0, 0, scope=Scope(namespaces=("a", "b"), skip_kinds=("secrets",))), ("limited by --namespace a,b",)),
        (run(1, 0, 0, scope=Scope(selector="app=web")), ("limited by --selector app=web",)),
    ],
)
def test_a_state_has_its_reason(details: RunDetails, why: tuple[str, ...]) -> None:
    """Delay, gaps, the recorded reason, and a scope that is only a part of the cluster."""
    [entry] = registered(details, times=(FIRST,))

    assert why == entry.why


def test_a_missed_time_says_until_when() -> None:
    """Before the next expected time, or until now."""
    assert [
        ("no run began before the next expected time, 2026-11-21 02:17Z",),
        ("no run began in 1 h",),
    ] == [entry.why for entry in registered()]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (90_000, "1 d 1 h"), (86_460, "1 d")],
)
def test_lengths_are_short(seconds: int, words: str) -> None:
    """The two largest units."""
    assert words == write_duration(timedelta(seconds=seconds))


MINUTES = st.integers(-60, 5 * 24 * 60)
RUNS = st.builds(
    lambda number, minutes, code, gone: run(number, minutes, code, gone=gone),
    st.integers(1, 10_000),
    MINUTES,
    st.sampled_from([0, 1, 2, 3, 4, RUNNING]),
    st.booleans(),
)


@given(
    st.lists(RUNS, max_size=12, unique_by=lambda details: details.run.number),
    st.lists(MINUTES, max_size=8, unique=True),
    st.integers(0, 600),
)
def test_no_time_and_no_run_is_lost(runs: list[RunDetails], minutes: list[int], tolerance: int) -> None:
    """Each expected time and each run has one entry; a run belongs to the last expected time before its start."""
    times = [FIRST + timedelta(minutes=number) for number in sorted(minutes)]
    now = FIRST + timedelta(days=6)
    entries = make_register(runs, times, now=now, tolerance=timedelta(minutes=tolerance))

    assert times == [entry.expected for entry in entries if entry.expected]
    assert Counter(details.run.number for details in runs) == Counter(
        entry.run.run.number for entry in entries if entry.run
    )
    for entry in entries:
        if entry.expected and entry.run:
            assert entry.expected == max(time for time in times if time <= entry.run.run.started_at)
        if entry.expected and not entry.run:
            own = [time for time in times if time > entry.expected][:1]
            assert not any(
                entry.expected <= details.run.started_at < (own[0] if own else now + DAY) for details in runs
            )
            assert entry.state in {RunState.MISSED, RunState.DUE}
