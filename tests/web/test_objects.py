"""An object and its workload have a page: every check that matched, passes included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.served import Served, scan_examples, served

_POSTGRES = "objects/object.html?kind=StatefulSet&namespace=data&name=postgres"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The second state of the example cluster."""
    home: Path = tmp_path_factory.mktemp("objects")
    url = f"sqlite:///{home}/assay.db"
    scan_examples(url, home, "before", "after")
    with served(url) as opened:
        yield opened


def test_every_check_has_an_outcome(site: Served) -> None:
    """Those with a finding first, then the checks that the object passed."""
    page = site.get(_POSTGRES)
    assert (200, "StatefulSet data/postgres") == (page.status, page.heading)
    rows = [row for row in page.rows() if " | " in row]
    assert any(row.startswith("memory-limits validations[0] | refused | memory-limits-production") for row in rows)
    assert any(row.startswith("owner validations[1] | ✓passed | owner") for row in rows)
    assert "13 checks: 11 passed, 1 refused, 1 warned" in page.text
    assert "not what they contained" in page.text


def test_the_numbers_of_a_page_are_those_of_the_population(site: Served) -> None:
    """Passed and failed checks together are the checks that evaluated the object."""
    [line] = [each for each in site.get("population.csv").text.splitlines() if ",StatefulSet,data,postgres," in each]
    assert ",13," in line


def test_a_passing_object_is_in_the_list_of_its_policy(site: Served) -> None:
    """To which the number on the page of the policy leads; each object leads to its page."""
    policy = site.get("policies/owner.html")
    [link] = policy.links("../objects/passed.html")
    passed = site.get(link.removeprefix("../"))
    assert "passed every check of <bdi>owner</bdi>" in passed.text
    objects = passed.links("object.html?")
    assert objects
    assert all(200 == site.get(f"objects/{each}").status for each in objects)


def test_a_failing_object_did_not_pass(site: Served) -> None:
    """One finding of the policy is enough."""
    passed = site.get("objects/passed.html?language=ValidatingAdmissionPolicy&policy=memory-limits")
    assert "kind=StatefulSet&amp;namespace=data&amp;name=postgres" not in passed.text


def test_a_search_leads_to_the_page(site: Served) -> None:
    """Of an object that passes, too."""
    links = [link for link in site.get("/search?q=postgres").links("") if "/objects/object.html?" in link]
    assert links
    assert all(200 == site.get(link).status for link in links)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("objects/object.html?kind=Pod&namespace=data&name=nobody", 404),
        ("objects/object.html?kind=Pod", 400),
        (f"objects/object.html?kind=Pod&name={'x' * 300}", 400),
        ("objects/object.html?kind=%00%3Cscript%3E&name=%00", 404),
        ("objects/passed.html?language=X&policy=%3Cscript%3E", 404),
        ("objects/passed.html?language=ValidatingAdmissionPolicy&policy=owner&after=-1", 400),
        ("objects/passed.html?language=ValidatingAdmissionPolicy&policy=owner&after=99999999999999", 400),
    ],
)
def test_a_wrong_address_is_refused(site: Served, address: str, status: int) -> None:
    """With a sentence, and no error of the program."""
    page = site.get(address)
    assert status == page.status
    assert "<script>" not in page.text
