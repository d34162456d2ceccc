"""One workload across clusters: its open problems in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from scanner.web.pages.workloads import WorkloadQuery, find_workloads
from scanner.web.views.fleet_rows import FleetRow
from scanner.web.views.scan_counts import CountedWorkload
from tests.web.served import Served

_BAD = 400


def test_a_name_is_found_in_every_cluster_with_a_problem_of_it(fleet: Served) -> None:
    """With its problems, and with those that would be refused."""
    rows = fleet.get("/workloads?name=web").rows("Deployment shop/web")
    assert [row.split(" | ")[1].split(" ")[0] for row in rows] == ["partial", "prod", "silent", "stage"]
    assert [row.split(" | ")[2:4] for row in rows] == [["high", "1"], ["high", "1"], ["high", "1"], ["high", "0"]]


def test_stars_stand_for_any_characters(fleet: Served) -> None:
    """Also where the name does not begin."""
    for name in ("c*", "*art", "c?rt", "[c]art"):
        assert ["Deployment team-a/cart"] == [
            row.split(" | ")[0] for row in fleet.get(f"/workloads?name={name}").rows("Deployment")
        ]


def test_namespace_and_kind_restrict_the_list(fleet: Served) -> None:
    """Case does not count in the kind."""
    assert fleet.get("/workloads?name=web&namespace=shop&kind=deployment").rows("Deployment")
    assert not fleet.get("/workloads?name=web&namespace=team-a").rows("Deployment")
    assert not fleet.get("/workloads?name=web&kind=Pod").rows("Deployment")


def test_an_exact_workload_has_a_line_for_every_other_cluster(fleet: Served) -> None:
    """Where scans did not see the object, it is not called free of problems."""
    page = fleet.get("/workloads?name=cart&namespace=team-a&kind=Deployment")
    assert [row for row in page.rows() if "not among the objects" in row] == [
        f"{name} | not among the objects that scans have seen" for name in ("partial", "silent", "stage")
    ]


def test_a_workload_whose_problems_are_waived_is_seen_and_has_none(fleet: Served) -> None:
    """The waiver leaves it without an open problem; the other cluster's scan never saw it."""
    page = fleet.get("/workloads?name=waived-app&namespace=shop&kind=Deployment")
    assert not page.rows("Deployment")
    assert page.rows("prod") == ["prod | no open problem"]


def test_the_number_of_a_workload_leads_to_its_rows(fleet: Served) -> None:
    """And to those alone."""
    for link in fleet.get("/workloads?name=web").links("/clusters/"):
        if "workload=" in link:
            assert fleet.get(link).text.count('class="fid"') == 1


def test_names_are_bounded(fleet: Served) -> None:
    """Long names, many stars and places that are none are refused."""
    for query in ("name=" + "x" * 257, "name=" + "*a" * 9, "name=a&after=nonsense", "name=a&after=[1,2,3,4]"):
        assert _BAD == fleet.get(f"/workloads?{query}").status, query


class _Row:
    """A cluster with some workloads."""

    def __init__(self, key: str, workloads: Sequence[CountedWorkload]) -> None:
        self.key = key
        self.counts = self
        self.workloads = tuple(sorted(workloads))


_NAMES = st.sampled_from(["", "a", "ab", "b", "ba", "a-b", "*"])
_WORKLOADS = st.lists(
    st.builds(CountedWorkload, _NAMES, _NAMES, _NAMES, st.just(1), st.just(0), st.just(2)), max_size=8
)


@given(st.lists(_WORKLOADS, max_size=3), st.sampled_from(["a", "a*", "*b", "*", "?"]), st.integers(1, 4))
def test_pages_have_every_workload_once(clusters: list[list[CountedWorkload]], name: str, most: int) -> None:
    """The pages after each other are the whole list: nothing is left out, and nothing comes twice."""
    rows = [cast("FleetRow", _Row(f"c{number}", set(own))) for number, own in enumerate(clusters)]  # type: ignore[arg-type]
    query = WorkloadQuery(name)
    whole = find_workloads(query, rows, None, 1000)
    pages = []
    after = None
    while page := find_workloads(query, rows, after, most):
        pages += page
        after = page[-1].place
    assert whole == pages
