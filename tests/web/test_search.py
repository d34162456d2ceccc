"""The page of the search: hits of each kind with links to where they stand."""

from __future__ import annotations

import pytest

from scanner.web.requests.addresses import ScanMoment
from tests.web.fleets import PROD
from tests.web.served import Served

_OK, _BAD = 200, 400


def _sections(fleet: Served, query: str) -> list[str]:
    """The ids of the sections of a search."""
    text = fleet.get(f"/search?q={query}").text
    return [part.partition('"')[0] for part in text.split('<h2 id="')[1:]]


def test_a_word_finds_policies_workloads_and_messages(fleet: Served) -> None:
    """By the beginning of a word."""
    page = fleet.get("/search?q=repl")
    assert page.rows("replicas ValidatingAdmissionPolicy | ")
    assert page.rows("too many replicas | replicas | ")
    assert "policies" in _sections(fleet, "repl")


def test_every_link_of_a_search_leads_to_a_page(fleet: Served) -> None:
    """Of a policy, an object, a message, a problem, a finding and a scan."""
    view = fleet.library.view(fleet.library.scan(fleet.library.clusters()[1], ScanMoment()))
    problem = view.problems.get(0)
    for query in (
        "replicas",
        "web",
        "too+many",
        f"p-{problem.number:012x}",
        f"{view.problems.ids(problem)[0]:012x}",
        PROD[1].id[:15],
    ):
        page = fleet.get(f"/search?q={query}")
        links = [link for link in page.links("/") if link not in ("/", "/policies", "/workloads")]
        assert links, query
        assert {_OK} == {fleet.get(link.partition("#")[0]).status for link in links}, query


def test_ids_are_found_by_their_beginning(fleet: Served) -> None:
    """Of problems, findings and scans."""
    assert ["scans"] == _sections(fleet, PROD[1].id[:15])
    view = fleet.library.view(fleet.library.scan(fleet.library.clusters()[1], ScanMoment()))
    problem = view.problems.get(0)
    assert "problems" in _sections(fleet, f"p-{problem.number:012x}")
    assert "findings" in _sections(fleet, f"{view.problems.ids(problem)[0]:012x}")


def test_a_search_without_a_hit_states_the_rule(fleet: Served) -> None:
    """And an empty one shows the form alone."""
    assert "Nothing has these words" in fleet.get("/search?q=nothingofthisname").text
    assert "Write the beginnings of words" in fleet.get("/search").text


def test_one_kind_has_a_page_of_its_own(fleet: Served) -> None:
    """With more hits."""
    assert ["policies"] == _sections(fleet, "replicas&only=policies")
    assert _BAD == fleet.get("/search?q=replicas&only=nothing").status


@pytest.mark.parametrize("query", ["%27%20OR%201=1--", "%22%2A", "%00", "AND OR NOT NEAR(", "%F0%9F%98%80", "a" * 256])
def test_hostile_words_are_words(fleet: Served, query: str) -> None:
    """No character of a search is a part of a statement."""
    assert _OK == fleet.get(f"/search?q={query}").status


def test_a_search_is_bounded(fleet: Served) -> None:
    """Longer texts are refused."""
    assert _BAD == fleet.get("/search?q=" + "a" * 257).status


def test_the_list_of_findings_is_searched_by_words(fleet: Served) -> None:
    """A message, an object and a policy in one text; each word must match the same finding."""
    prod = f"/clusters/{fleet.library.key(fleet.library.clusters()[1])}/latest/findings.html"
    assert fleet.get(f"{prod}?text=too+many+web").text.count('class="fid"') == 1
    assert "No row matches" in fleet.get(f"{prod}?text=too+many+nothing").text
    assert _BAD == fleet.get(f"{prod}?text=" + "+".join("abcdefghi")).status
