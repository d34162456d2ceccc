"""Waivers and time: each day has the waivers of that day, also after later edits."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.model.waiver import Waiver, WaiverSet
from scanner.posture.settings import Settings
from scanner.posture.triage import Triage
from scanner.store import SqlStore, open_store
from tests.posture.waivers import waiver
from tests.store.made import DAWN, Round, clock, ended, finding

FIRST = DAWN.date()
_DAYS = st.integers(0, 6).map(lambda days: FIRST + timedelta(days=days))
_WAIVERS = st.builds(
    lambda name, since, until: waiver(f"w-{name}", namespace="", object=name, since=since, until=until),
    *(st.sampled_from(["a", "b"]), st.none() | _DAYS, _DAYS),
)
_SETS = st.none() | st.lists(_WAIVERS, max_size=2, unique_by=lambda each: each.name)
"""The waivers of a scan; None for a scan that reads none."""
OBJECTS = finding("a"), finding("b")


def naive(history: list[list[Waiver] | None], day: date) -> set[str]:
    """The objects that are waived on a day, given the waivers of each scan, one a day."""
    end = datetime.combine(day, time(), UTC) + timedelta(days=1)
    known = [waivers for number, waivers in enumerate(history, 1) if waivers is not None and ended(number) < end]
    return {each.object for each in (known or [[]])[-1] if (each.since or date.min) <= day <= each.until}


def shown(store: SqlStore, day: date) -> set[str]:
    """The objects that the report as of a day shows as waived; the counts agree."""
    moment = datetime.combine(day, time(), UTC) + timedelta(days=1, microseconds=-1)
    record = store.read_scan(store.find_scan_at(moment).id)
    triage = Triage(Settings(waivers=store.find_waivers_at(record.scan.id, moment)), record, day)
    objects = {stored.finding.name for stored in record.findings() if triage.waiver(stored)}
    assert len(objects) == triage.waived.findings
    assert 2 == sum(record.tallies.values())
    return objects


@pytest.mark.long
@given(st.lists(_SETS, min_size=1, max_size=4))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_report_of_a_day_has_the_waivers_of_that_day(tmp_path: Path, history: list[list[Waiver] | None]) -> None:
    """As a naive evaluation finds them, and no later scan changes an earlier report."""
    days = [FIRST + timedelta(days=number) for number in range(7)]
    with open_store(f"sqlite:///{tmp_path / uuid.uuid4().hex}.db", clock) as store:
        for number, waivers in enumerate(history, 1):
            made = Round(OBJECTS)
            given_waivers = None if waivers is None else WaiverSet(tuple(waivers))
            store.begin(replace(made.start(number), waivers=given_waivers))
            store.write_page(f"scan-{number}", made.page())
            store.finish(f"scan-{number}", made.end(number))
            for day in (day for day in days if day >= ended(1).date()):
                assert naive(history[:number], day) == shown(store, day)
