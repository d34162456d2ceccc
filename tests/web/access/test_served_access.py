"""The pages behind the guard: real pages, with the headers and the log of a server."""

from __future__ import annotations

import re
from contextlib import closing

from scanner.web.server.application import application
from scanner.web.views.library import ScanLibrary
from tests.web.access.conftest import TOKEN, TOKENS
from tests.web.access.running import access, running


def test_pages_are_read_by_those_who_may(examples: str) -> None:
    """A page, and nothing of it without a token."""
    with closing(ScanLibrary(examples)) as library, running(access(tokens=TOKENS), app=application(library)) as server:
        page = server.get("/", authorization=f"Bearer {TOKEN}", accept="text/html")
        refused = server.get("/", accept="text/html")
        assert (200, True) == (page.status_code, "shop" in page.text)
        assert 'href="/logout"' in page.text
        assert "grafana" not in page.text
        assert (303, False) == (refused.status_code, "shop" in refused.text)


def test_kept_pages_are_for_authenticated_readers_alone(examples: str) -> None:
    """Pages and answers that are in memory, also with their entity tags, have nothing for a request without a token."""
    with closing(ScanLibrary(examples)) as library:
        key = library.key(library.clusters()[0])
        report, api = f"/clusters/{key}/latest", f"/api/v1/clusters/{key}"
        paths = ("/", f"{report}/index.html", f"{report}/findings.html", f"/clusters/{key}/runs", f"{api}/findings")
        with running(access(tokens=TOKENS), app=application(library)) as server:
            for path in paths:
                kept = server.get(path, authorization=f"Bearer {TOKEN}")
                refused = server.get(path, if_none_match=kept.headers["etag"])

                assert 200 == kept.status_code
                assert refused.status_code in {303, 401}
                assert "etag" not in refused.headers
                assert not {"shop", "grafana"} & set(re.findall(r"[a-z]+", refused.text))


def test_a_page_may_run_no_script(examples: str) -> None:
    """The policy in the header forbids all, and the one in the page allows one style sheet."""
    with closing(ScanLibrary(examples)) as library, running(access(), app=application(library)) as server:
        page = server.get("/", accept="text/html")
        assert "/logout" not in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src" not in policy
    assert re.search(r"style-src 'sha256-", page.text)


def test_an_unchanged_page_keeps_its_policy(examples: str) -> None:
    """The headers of 304 replace those that a browser keeps, so they name no policy."""
    with closing(ScanLibrary(examples)) as library, running(access(), app=application(library)) as server:
        # A page about one scan: the lists of clusters change once their numbers are counted, in the background.
        path = f"/clusters/{library.key(library.clusters()[0])}/latest/index.html"
        page = server.get(path, accept="text/html")
        unchanged = server.get(path, if_none_match=page.headers["etag"])
    assert (304, "nosniff") == (unchanged.status_code, unchanged.headers["x-content-type-options"])
    assert "content-security-policy" not in unchanged.headers
