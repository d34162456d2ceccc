"""The pages of the list of findings follow each other, and have every row once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from scanner.web.pages import findings
from tests.web.api.history import NOW, fill
from tests.web.served import served

_OK = 200
_ROW = re.compile(r'class="fid" href="([^"]+)"')
_NEXT = re.compile(r'href="(findings\.html\?[^"]*)" rel="next"')


def test_a_preview_and_the_problem_with_its_number_are_two_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of one row lead through the whole list."""
    url = f"sqlite:///{tmp_path}/assay.db"
    fill(url)
    with served(url, lambda: NOW) as site:
        whole = _ROW.findall(site.get("findings.html?sort=workload").text)
    monkeypatch.setattr(findings, "ROWS", 1)
    with served(url, lambda: NOW) as site:
        found, page = list[str](), "findings.html?sort=workload"
        while page and len(found) <= len(whole):
            answer = site.get(page)
            assert answer.status == _OK
            found += _ROW.findall(answer.text)
            following = _NEXT.search(answer.text)
            page = following[1].replace("&amp;", "&") if following else ""

    assert Counter(whole) == Counter(found)
    assert whole
