"""An answer has a tag that changes with its content, so that a client asks again without receiving it again."""

from __future__ import annotations

import pytest

from scanner.web.api.routes import ENDPOINTS
from tests.web.api.asking import ROOT, Api

_OK, _UNCHANGED = 200, 304
_ANY = pytest.mark.parametrize("path", [each.path for each in ENDPOINTS if "{problem}" not in each.path])


def _address(api: Api, path: str) -> str:
    return f"{ROOT}{path}".format(cluster=api.key, run="1")


@_ANY
def test_an_equal_answer_is_not_sent_again(history: Api, path: str) -> None:
    """The tag of an answer, also as one of several and as a weak one, gives 304 without a body."""
    client, address = history.site.client, _address(history, path)
    tag = client.get(address).headers["etag"]
    for asked in (tag, f'"other", {tag}', f"W/{tag}"):
        answer = client.get(address, headers={"If-None-Match": asked})
        assert (_UNCHANGED, b"", tag) == (answer.status_code, answer.content, answer.headers["etag"])


@_ANY
def test_another_tag_receives_the_answer(history: Api, path: str) -> None:
    """A tag of another answer is no reason to send nothing."""
    answer = history.site.client.get(_address(history, path), headers={"If-None-Match": '"other"'})
    assert _OK == answer.status_code


def test_tags_differ_with_the_content(history: Api) -> None:
    """Two scans, two filters and two pages have different tags."""
    client, findings = history.site.client, f"{ROOT}/clusters/{history.key}/findings"
    queries = ("", "?scan=scan-1", "?status=open", "?limit=2")
    assert len(queries) == len({client.get(f"{findings}{query}").headers["etag"] for query in queries})


def test_an_answer_about_a_named_scan_may_be_kept(history: Api) -> None:
    """A finished scan never changes; the newest scan does. No shared cache may keep either."""
    client, findings = history.site.client, f"{ROOT}/clusters/{history.key}/findings"
    assert "private, no-cache" == client.get(findings).headers["cache-control"]
    assert "private, max-age=60" == client.get(f"{findings}?scan=scan-1").headers["cache-control"]
    problem = client.get(f"{findings}?scan=scan-1").json()["findings"][0]["problem"]
    history_of = f"{ROOT}/clusters/{history.key}/problems/{problem}?scan=scan-1"
    assert "private, no-cache" == client.get(history_of).headers["cache-control"]
