"""The pages, the API and the metrics of a cluster whose only check was replaced by one about something else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scanner.model.json import dig
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.store import SqlStore
from scanner.web.server.metrics import ClusterMetrics
from tests.store.made import ended
from tests.store.test_waived_checks import BY_ID, FEW, OWNED, Story
from tests.web.api.asking import Api
from tests.web.served import Served, counted, served
from tests.web.test_metrics import samples


@pytest.fixture
def replaced(store: SqlStore, url: str) -> Iterator[Served]:
    """The application over two scans: the waiver applies in the first one, and is of an unknown check in the second one."""
    story = Story(store)
    story.scan(1, FEW, BY_ID)
    story.scan(2, OWNED, BY_ID)
    with served(url, clock=lambda: ended(2)) as opened:
        counted(opened)
        yield opened


def test_the_pages_of_each_scan_have_the_waiver_of_its_day(replaced: Served) -> None:
    """The list of findings marks the one that is waived, and the page of waivers has the state."""
    pages = [replaced.get(f"{replaced.cluster}/scans/scan-{number}/waivers.html").rows("w") for number in (1, 2)]
    found = [replaced.get(f"{replaced.cluster}/scans/scan-{number}/findings.html").text for number in (1, 2)]

    assert [True, False] == ["| active |" in rows[0] for rows in pages]
    assert "unknown check the check asks something else than in the first scan that used the waiver." in pages[1][0]
    assert [True, False] == ["Waived</span>" in text for text in found]


def test_the_list_of_clusters_counts_the_problem_again(replaced: Served) -> None:
    """One problem would be refused."""
    [row] = replaced.get("/").rows("prod")
    assert "1" == row.split(" | ")[4]


def test_the_api_shows_the_problem_without_a_waiver(replaced: Served) -> None:
    """As of the earlier scan, it has one."""
    answers = [Api(replaced).answer("/clusters/{cluster}/problems", scan=f"scan-{number}") for number in (1, 2)]
    assert [["w"], [None]] == [[dig(each, "waiver", "name") for each in answer["problems"]] for answer in answers]


def test_the_metrics_count_the_problem_and_the_state_of_the_waiver(replaced: Served) -> None:
    """Of the newest scan."""
    with replaced.library.use_reader() as reader:
        text = ClusterMetrics(lambda: reader, DEFAULT_SETTINGS, clock=lambda: ended(2)).text(5)
    waivers, problems = samples(text, "assay_waivers"), samples(text, "assay_problems")
    assert (1, 0, 1) == (waivers["prod", "unknownCheck"], waivers["prod", "active"], sum(problems.values()))
