"""`docs/api.md` names every endpoint, parameter and address as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from scanner.report.lists.filters import STATUSES
from scanner.web.api.queries import ProblemQuery, fields_of
from scanner.web.api.routes import ENDPOINTS
from tests.web.api.asking import Api

_PAGE: Final = (Path(__file__).parents[3] / "docs" / "api.md").read_text()
_OK: Final = 200
_ADDRESSES: Final = sorted(set(re.findall(r"(/(?:api/v1|clusters)/[^\s`'\"|){}$]*)(?=[\s`'\"|])", _PAGE)))


def test_every_endpoint_is_in_the_table() -> None:
    """No other one is."""
    table = re.findall(r"^\| `(/[^`]*)` \|", _PAGE, re.MULTILINE)
    assert sorted(endpoint.path for endpoint in ENDPOINTS) == sorted(table)


def test_every_filter_is_in_the_table() -> None:
    """With the values of `status`."""
    table = _PAGE.partition("## Filters")[2].partition("\n## ")[0]
    own = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert fields_of(ProblemQuery).keys() - {"scan", "at", "limit", "after"} == own
    assert all(f"`{value}`" in table for value, _ in STATUSES)


@pytest.mark.parametrize("address", _ADDRESSES)
def test_an_address_of_the_page_is_answered(history: Api, address: str) -> None:
    """With the key, a scan and a problem of this database in place of those of the page."""
    problem = history.answer("/clusters/{cluster}/problems", limit=1)["problems"][0]["id"]
    asked = address.replace("prod-eu-1.3fa29c1b", history.key).replace("20260331T021704Z-9f3c2a", "scan-3")
    got = history.site.client.get(asked.replace("p-5b7c0f3e9a21", problem))
    assert _OK == got.status_code, got.text


def test_addresses_are_found() -> None:
    """The test above covers the examples of each chapter."""
    assert 14 < len(_ADDRESSES)
    assert {"problems", "summary", "trend", "findings", "download"} <= {
        part for each in _ADDRESSES for part in re.split(r"[/?]", each)
    }
