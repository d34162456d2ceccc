"""Addresses last: what a reader cited goes on to answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest

from tests.web.served import Served, scan_examples, served

_MOVED = 302
_START = attrgetter("started_at")
"""Ids of scans of one second have no order."""
_FID = re.compile(r'class="fid" href="(f/[0-9a-f]{3}\.html)#(f-[0-9a-f]+)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Three scans: the second one resolved findings of the first, the third one found nothing else."""
    home: Path = tmp_path_factory.mktemp("lasting")
    url = f"sqlite:///{home}/assay.db"
    scan_examples(url, home, "before", "after", "after")
    with served(url) as opened:
        yield opened


@pytest.fixture(scope="module")
def second(site: Served) -> str:
    """The path of the second scan."""
    cluster = site.library.clusters()[0]
    with site.library.use_reader() as reader:
        [_, second, _] = sorted(reader.scans(10), key=_START)
    return f"{site.cluster}/scans/{second.id}" if cluster else ""


def test_a_finding_that_is_fixed_goes_on_to_answer(site: Served, second: str) -> None:
    """With its last state, and when and why it was resolved."""
    path, anchor = _FID.findall(site.get(f"{second}/findings.html?status=resolved").text)[0]
    assert anchor not in site.get("findings.html").text

    page = site.get(path)

    assert 200 == page.status
    [place] = re.findall(rf'<article[^>]* id="{anchor}".*?</article>', page.text, re.DOTALL)
    assert "Resolved" in place
    assert "was last evaluated before the finding was resolved" in place


def test_a_resolved_problem_is_told_in_the_past(site: Served, second: str) -> None:
    """The page of the problem has no open finding, and the time of its end."""
    [link, *_] = site.get(f"{second}/findings.html?status=resolved").links("problems/")
    page = site.get(link)
    assert "<dt>Last opened</dt>" in page.text
    assert re.search(r"<dt>Now</dt><dd>Resolved, <time", page.text)


def test_a_name_leads_to_the_address_that_lasts(site: Served) -> None:
    """With the rest of the address."""
    answer = site.get("/clusters/shop/latest/findings.html?text=memory&status=open")
    assert (_MOVED, f"{site.cluster}/latest/findings.html?text=memory&status=open") == (
        answer.status,
        answer.headers["location"],
    )


@pytest.mark.parametrize("path", ["/clusters/shpo/latest/index.html", "/compare?left=shop", "/clusters/sho/compare"])
def test_another_name_is_not_there(site: Served, path: str) -> None:
    """Nor does the name lead anywhere outside of a path."""
    assert 404 == site.get(path).status


@pytest.mark.parametrize("path", ["at/2020-01-31/findings.html?text=a", "?at=2020-01-31&page=findings.html"])
def test_a_date_before_the_first_scan_leads_to_that_scan(site: Served, path: str) -> None:
    """By its id, so that the page does not claim another date."""
    with site.library.use_reader() as reader:
        first = min(reader.scans(10), key=_START).id
    answer = site.get(f"{site.cluster}/{path}" if path.startswith("at") else f"{site.cluster}{path}")
    assert _MOVED == answer.status
    assert answer.headers["location"].startswith(f"{site.cluster}/scans/{first}/findings.html")
