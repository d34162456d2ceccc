"""The charts of a report: what is drawn, and the numbers beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.policy import VALIDATING, PolicyKey
from scanner.model.scans.problem_history import FixedProblems, HistoryDay, ProblemAge, ProblemCell, ProblemHistory
from scanner.model.scans.register import DayCounts, Register
from scanner.report import FORMATS
from scanner.report.charts.columns import BOTTOM, TOP, WIDTH, Series, draw_columns
from scanner.report.charts.heat_map import MOST, make_heat_map
from scanner.report.charts.history_charts import draw_days, draw_history
from scanner.report.document.document import document_of

from .records import FINISHED, hostile_record, small_record

FIRST = date(2026, 2, 1)
LIMITS: PolicyKey = (VALIDATING, "require-limits")
_POINT = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)V([\d.]+)h-[\d.]+z")
Bars = list[tuple[float, float, float, float]]


def day(number: int, *counts: int, **more: object) -> HistoryDay:
    """A day with these numbers of open problems, or without any."""
    return HistoryDay(FIRST + timedelta(days=number), counts or None, **more)  # type: ignore[arg-type]


def bars(path: str) -> Bars:
    """The columns of a path: left, bottom, width and top."""
    return [tuple(map(float, each.groups())) for each in _POINT.finditer(path)]  # type: ignore[misc]


def test_a_column_is_as_high_as_its_number() -> None:
    """The axis begins at zero, and series stand on each other."""
    chart = draw_columns(
        "n", "Title", "Text", ["a", "b"], [Series("X", "x", (2, 0)), Series("Y", "y", (2, 4))], unit="", place_name="P"
    )
    [(_, bottom, _, top)] = bars(chart.series[0].path)
    (_, upper_bottom, _, upper_top), (_, _, _, other_top) = bars(chart.series[1].path)

    assert (BOTTOM, top) == (bottom, upper_bottom)
    assert upper_top == other_top == TOP
    assert (("P", "X", "Y"), (("a", "2", "2"), ("b", "0", "4"))) == (chart.heads, chart.rows)


@given(st.lists(st.tuples(st.none() | st.integers(0, 10**7), st.integers(0, 10**4)), min_size=1, max_size=120))
def test_nothing_is_drawn_outside(values: list[tuple[int | None, int]]) -> None:
    """For all numbers: the ticks are few, whole and within the plot, and every number above zero has a column."""
    ups, downs = zip(*values, strict=True)
    series = [Series("Up", "u", ups), Series("Down", "d", downs, below=True)]
    chart = draw_columns("n", "T", "", list(map(str, values)), series, unit="", place_name="P", gap_name="None")

    assert all(TOP <= tick.at <= BOTTOM for tick in chart.up)
    assert 2 <= len(chart.up) <= 9
    assert all(0 <= tick.at <= WIDTH for tick in chart.along)
    drawn = {each.name: bars(each.path) for each in chart.series}
    assert all(TOP <= edge <= BOTTOM for each in drawn.values() for _, low, _, high in each for edge in (low, high))
    assert sum(1 for value in ups if value) == len(drawn.get("Up", []))
    assert sum(1 for value in downs if value) == len(drawn.get("Down", []))


def test_flat_numbers_are_columns_that_stand_apart() -> None:
    """They end below the top of the plot, and are no slab."""
    chart = draw_history(ProblemHistory(tuple(day(number, 0, 0, 7, 0, 0) for number in range(10))), FINISHED).severity
    assert chart is not None
    drawn = bars(chart.series[0].path)

    assert 10 == len(drawn)
    assert 1 == len({top for *_, top in drawn})
    assert all(left + width < after for (left, _, width, _), (after, *_) in pairwise(drawn))
    assert all(top > TOP for *_, top in drawn)


def test_a_day_without_a_complete_scan_is_a_gap() -> None:
    """Whether it had another scan or none; the table says so."""
    history = ProblemHistory((day(0, 0, 0, 7, 0, 0), day(1), day(4, 0, 0, 5, 0, 0)))
    chart = draw_history(history, FINISHED).severity
    assert chart is not None

    assert 3 == chart.gaps.count("M")
    assert ("2026-02-02", "-", "no complete scan") == chart.rows[3]
    assert ("2026-02-05", "5", "") == chart.rows[0]
    assert "7 on 2026-02-01, 5 on 2026-02-05, at most 7. 3 days of 5 have no number." in chart.description


def test_a_day_with_other_rules_has_a_mark() -> None:
    """It names what changed."""
    history = ProblemHistory((day(0, 1, 0, 0, 0, 0), day(1, 2, 0, 0, 0, 0, rules_changed=("rules", "server"))))
    chart = draw_history(history, FINISHED).severity
    assert chart is not None

    assert ["Rules changed: policies, bindings, params, exceptions or namespace labels; the version of the server"] == [
        mark.text for mark in chart.marks
    ]


@pytest.mark.parametrize("history", [ProblemHistory(), ProblemHistory((day(0, 1, 0, 0, 0, 0),))])
def test_one_day_is_no_chart_over_time(history: ProblemHistory) -> None:
    """The page says how charts come about."""
    made = draw_history(history, FINISHED)
    assert (None, None) == (made.severity, made.changes)


def test_others_have_what_the_map_does_not_show() -> None:
    """The worst 20 namespaces and policies are shown, and no problem is lost."""
    cells = {(f"n{row:02}", (VALIDATING, f"p{column:02}")): row + column for row in range(30) for column in range(25)}
    heat = make_heat_map(cells)
    assert heat is not None

    assert (MOST + 1, MOST + 1, 10, 5) == (
        len(heat.rows), len(heat.policies), heat.other_namespaces, heat.other_policies,
    )  # fmt: skip
    assert sum(cells.values()) == sum(row.total for row in heat.rows) == sum(heat.totals)
    assert ("n29", None) == (heat.rows[0].namespace, heat.rows[-1].namespace)
    assert 5 == max(cell.shade for row in heat.rows[:-1] for cell in row.cells)


def charted() -> ProblemHistory:
    """A history with everything."""
    days = [
        day(0, 1, 2, 3, 0, 1),
        day(1, 1, 3, 3, 0, 1, new=1),
        day(3, 0, 3, 4, 0, 1, new=1, reopened=1, fixed=2, rules_changed=("rules",)),
    ]
    return ProblemHistory(
        days=tuple(days),
        ages=(ProblemAge(1, FINISHED - timedelta(hours=5), 3), ProblemAge(2, FINISHED - timedelta(days=40), 5)),
        cells=(
            ProblemCell("shop", LIMITS, 6),
            ProblemCell("", (VALIDATING, "owner"), 2),
            ProblemCell("pay", LIMITS, 1),
        ),
        fixed=(FixedProblems(LIMITS, timedelta(hours=30), 2), FixedProblems(LIMITS, timedelta(days=9), 1)),
    )


def test_the_page_has_every_chart_with_its_numbers(tmp_path: Path) -> None:
    """Each has a title, a description and a table, and its picture is part of the page."""
    FORMATS["html"].render(document_of(replace(small_record(), charted=charted())), tmp_path / "report")
    page = (tmp_path / "report" / "charts.html").read_text("utf-8")

    assert (
        5 == page.count("<figure") == page.count("<desc>") == page.count('role="img"') == page.count("</details>") - 1
    )
    for words in (
        "Open problems by severity",
        "2 new and 1 reopened problems stand above the axis, 2 fixed ones below",
        "5 of 8 open problems have been open for 30 days or longer",
        "Of 3 problems that scans of these days saw fixed, half were open for 30 hours at most, nine tenths for 9 days.",
        "cluster-scoped",
    ):
        assert words in page
    assert "<script" not in page
    assert " style=" not in page


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """In the labels of a map, too."""
    cells = (ProblemCell("<script>alert(1)</script>", (VALIDATING, "</text><image href=x>"), 3),)
    record = replace(hostile_record(), charted=ProblemHistory(cells=cells))
    FORMATS["html"].render(document_of(record), tmp_path / "report")
    page = (tmp_path / "report" / "charts.html").read_text("utf-8")

    assert "<script>" not in page
    assert "<image" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_chart_of_days_has_the_numbers_beside_it(tmp_path: Path) -> None:
    """On the first page, the newest day first."""
    days = tuple(DayCounts(FIRST + timedelta(days=place), number, 1, 0) for place, number in ((0, 5), (2, 6)))
    FORMATS["html"].render(document_of(replace(small_record(), history=Register(days=days))), tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text("utf-8")

    assert "At the end of each day with a complete scan: 5 on 2026-02-01, 6 on 2026-02-03, at most 6." in page
    assert page.index(">2026-02-03</th>") < page.index(">2026-02-02</th>") < page.index(">2026-02-01</th>")
    assert draw_days(days[:1], "Open findings") is None
