"""Pages of any length that follow each other have every item once, and are about one scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.report.lists.filters import STATUSES
from scanner.store import open_store
from tests.store.made import Round, finding
from tests.thorough import examples
from tests.web.api.asking import LISTS, Api
from tests.web.api.history import NOW, api_at, fill

_BAD, _OK = 400, 200
_FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["", "unresolved", *(value for value, _ in STATUSES)]),
        "policy": st.sampled_from(["replicas", "labels", "none"]),
        "namespace": st.sampled_from(["shop", "bank", "team-1", "_cluster"]),
        "action": st.sampled_from(["Deny", "Errored"]),
        "sort": st.sampled_from(["oldest", "newest", "workload", "policy", "owner", "severity"]),
    },
)


@pytest.mark.long
@pytest.mark.parametrize("path", LISTS)
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 50))
def test_pages_have_every_item_once(history: Api, path: str, limit: int) -> None:
    """The items of short pages, one after the other, are those of one long page; each page has as many as it may have."""
    whole = history.answer(path, limit=1000)
    pages = list(history.pages(path, limit=limit))
    assert whole[LISTS[path]] == [item for page in pages for item in page[LISTS[path]]]
    assert {whole["total"]} == {page["total"] for page in pages} == {len(whole[LISTS[path]])}
    assert [limit] * (len(pages) - 1) == [len(page[LISTS[path]]) for page in pages[:-1]]


@pytest.mark.parametrize("path", ["/clusters/{cluster}/problems", "/clusters/{cluster}/findings"])
@settings(max_examples=examples(60))
@given(limit=st.integers(1, 20), filters=_FILTERS)
def test_filtered_pages_have_every_item_once(history: Api, path: str, limit: int, filters: dict[str, Any]) -> None:
    """Also where a preview and a problem have one id."""
    whole = history.answer(path, limit=1000, **filters)
    assert whole[LISTS[path]] == history.items(path, limit=limit, **filters)
    assert whole["total"] == len(whole[LISTS[path]])


def test_the_findings_of_problems_are_those_of_the_filter(history: Api) -> None:
    """Each filter gives the findings of its problems; all statuses together are all problems."""
    every = history.items("/clusters/{cluster}/problems")
    by_status = {
        status: history.items("/clusters/{cluster}/problems", status=status)
        for status in ("new", "reopened", "resolved", "preview", "unchecked")
    }
    assert {"new": 7, "reopened": 1, "resolved": 5, "preview": 1, "unchecked": 1} == {
        status: len(items) for status, items in by_status.items()
    }
    still_open = history.items("/clusters/{cluster}/problems", status="unresolved")
    assert len(every) == len(still_open) + len(by_status["resolved"])
    [unseen] = history.items("/clusters/{cluster}/findings", status="unchecked")
    assert (False, "2026-03-02T06:05:00Z") == (unseen["checked"], unseen["lastSeen"])


def test_ids_choose_problems_and_findings(history: Api) -> None:
    """The id of a problem chooses all its findings, that of a finding the finding alone, and its problem."""
    one, other = history.items("/clusters/{cluster}/findings", namespace="team-1")[:2]
    ids = [one["id"], other["problem"]]
    found = history.answer("/clusters/{cluster}/findings", id=ids)
    assert sorted([one["id"], other["id"]]) == sorted(each["id"] for each in found["findings"])
    assert len(ids) == found["total"]
    problems = history.items("/clusters/{cluster}/problems", id=ids)
    assert sorted([one["problem"], other["problem"]]) == sorted(each["id"] for each in problems)


def test_pages_stay_about_their_scan(tmp_path: Path) -> None:
    """A scan that ends between two pages does not change the later page; a first page is about the new scan."""
    url = f"sqlite:///{tmp_path / 'moving.db'}"
    fill(url)
    with api_at(url) as api:
        path = "/clusters/{cluster}/findings"
        expected = api.items(path, limit=9)
        first = api.answer(path, limit=9)
        with open_store(url, lambda: NOW) as store:
            Round((finding("later"),)).record(store, 8)
        rest = [item for page in _following(api, path, first) for item in page["findings"]]
        assert expected == first["findings"] + rest
    with api_at(url) as api:
        assert ("scan-5", "scan-8") == (first["scan"], api.answer(path)["scan"])


def _following(api: Api, path: str, page: dict[str, str]) -> list[dict[str, list[object]]]:
    pages = []
    while page["next"]:
        page = api.answer(path, limit=9, after=page["next"])
        pages.append(page)
    return pages  # type: ignore[return-value]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "after",
    [
        "x",
        "WzFd",  # [1]
        "WyIiLFs5OTk5OTk5OTk5OTk5XV0",  # ["",[9999999999999]]
        "WyIiLFstMV1d",  # ["",[-1]]
        "WyIiLFtdXQ",  # ["",[]]
        "WyJzY2FuLTUiLFsxLDIsMyw0XV0",  # ["scan-5",[1,2,3,4]]
        "WyJzY2FuLTUiLFs5OTksOTk5LDk5OV1d",  # ["scan-5",[999,999,999]]
        "WyJzY2FuLTEiLFswLDk5OTk5OTk5OTk5XV0",  # ["scan-1",[0,99999999999]]
    ],
)
def test_a_cursor_of_another_list_is_refused(history: Api, path: str, after: str) -> None:
    """The answer is an error that says what to do, or a page if the list has the place by chance; never a failure."""
    got = history.get(path, after=after)
    assert got.status in (_OK, _BAD, 404), got.text
    assert got.status == _OK or json.loads(got.text)["error"]["status"] == got.status
