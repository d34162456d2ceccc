"""Hostile requests are refused or answered: no failure, no trace, and nothing about the machine in an answer."""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.web.api.endpoints import Endpoint
from scanner.web.api.queries import LONGEST_QUERY
from scanner.web.api.routes import ENDPOINTS
from tests.thorough import examples
from tests.web.api.asking import ROOT, Api

_OK, _BAD, _MISSING, _NOT_ALLOWED, _TOO_LONG = 200, 400, 404, 405, 414
_LEAKS: Final = re.compile(
    r"Traceback|site-packages|\.py\b|/work/|/tmp/|/home/|sqlite|postgres|psycopg|SELECT |syntax error|select\(",
    re.IGNORECASE,
)
_TEXTS: Final = (
    "'",
    "' OR '1'='1",
    "'; DROP TABLE scans; --",
    '" UNION SELECT identity, name FROM clusters --',
    "\\'; SELECT pg_sleep(9); --",
    "../../../../etc/passwd",
    "file:///etc/passwd",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "<script>alert(1)</script>",
    "\u202e\u0000",
    "a\r\nSet-Cookie: session=1",
    "\ufffe\uffff",
    "𝔞" * 64,
    "9" * 200,
    "-1",
    "null",
)
_ANY: Final = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=[each.name for each in ENDPOINTS])


def _path(api: Api, endpoint: Endpoint[Any]) -> str:
    parts = {"cluster": api.key, "problem": "p-000000000000", "run": "1"}
    return f"{ROOT}{endpoint.path.format(**parts)}"


def _asked(api: Api, address: str) -> tuple[int, str]:
    """The status and the body of the answer to an address, which has no trace and names nothing of the machine."""
    got = api.site.client.get(address)
    assert got.status_code < 500, (address, got.text)
    if got.status_code != _OK:
        error = json.loads(got.text)["error"]
        assert {"status", "message"} == error.keys()
        assert _LEAKS.search(_without_input(error["message"])) is None, got.text
    assert "application/json" == got.headers["content-type"]
    assert "set-cookie" not in got.headers
    return got.status_code, got.text


def _without_input(message: str) -> str:
    """A message without the texts that it quotes from the request."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", "", message)


@pytest.mark.long
@_ANY
def test_sql_and_other_languages_in_a_parameter_are_text(history: Api, endpoint: Endpoint[Any]) -> None:
    """A value that a parameter may not have is 400; a name that nothing has chooses nothing."""
    for field in msgspec.structs.fields(endpoint.query):
        for text in _TEXTS:
            status, body = _asked(history, f"{_path(history, endpoint)}?{field.encode_name}={quote(text, safe='')}")
            assert status in (_OK, _BAD, _MISSING)
            if status == _OK and field.name in ("policy", "namespace", "owner", "kind") and endpoint.name != "getTrend":
                assert 0 == json.loads(body)["total"], body


@pytest.mark.parametrize("path", sorted({each.path for each in ENDPOINTS if "{" in each.path}))
def test_sql_and_other_languages_in_a_path_name_nothing(history: Api, path: str) -> None:
    """The answer is 404: a path is matched with patterns before a database sees a part of it."""
    for text in _TEXTS:
        part = quote(text, safe="")
        assert _MISSING == _asked(history, f"{ROOT}{path.format(cluster=part, problem=part, run=part)}")[0]


@pytest.mark.parametrize(
    "path",
    [
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/clusters/..%2f..%2f",
        "//etc/passwd",
        "/clusters/%00",
        "/clusters/%ff%fe",
        "/clusters/%c0%ae%c0%ae/",
        "/openapi.json/..%5c..%5cwindows",
        "/clusters;jsessionid=1",
        "/clusters/",
    ],
)
def test_a_path_leads_nowhere_else(history: Api, path: str) -> None:
    """No file is read: the API has a table of paths."""
    assert _MISSING == _asked(history, f"{ROOT}{path}")[0]


@_ANY
def test_odd_encodings_are_text_or_refused(history: Api, endpoint: Endpoint[Any]) -> None:
    """In a name, in a value, and alone."""
    for encoded in ("%00", "%ff%fe", "%c0%af", "%ed%a0%80", "%", "%zz", "%u0041", "+", "%0d%0a"):
        for query in (f"text={encoded}", f"{encoded}=1", encoded, f"&&={encoded}&"):
            _asked(history, f"{_path(history, endpoint)}?{query}")


def test_a_query_that_is_too_long_is_refused(history: Api) -> None:
    """Before any of it is read; a value has its own limit."""
    findings = f"{ROOT}/clusters/{history.key}/findings"
    assert _TOO_LONG == _asked(history, f"{findings}?text={'x' * LONGEST_QUERY}")[0]
    assert _BAD == _asked(history, f"{findings}?text={'x' * 257}")[0]
    assert _BAD == _asked(history, f"{findings}?{'&'.join(['id=000000000000'] * 101)}")[0]
    assert _BAD == _asked(history, f"{findings}?limit=1001")[0]


def test_an_unknown_parameter_is_refused_with_the_nearest_name(history: Api) -> None:
    """A misspelled filter must not choose everything in silence."""
    status, body = _asked(history, f"{ROOT}/clusters/{history.key}/findings?namespcae=shop")
    assert (_BAD, "There is no parameter 'namespcae'. Did you mean namespace?") == (
        status,
        json.loads(body)["error"]["message"],
    )


def test_a_parameter_is_given_once(history: Api) -> None:
    """Of two values, none would be the right one."""
    assert _BAD == _asked(history, f"{ROOT}/clusters/{history.key}/findings?limit=1&limit=2")[0]
    assert _BAD == _asked(history, f"{ROOT}/clusters/{history.key}/findings?scan=scan-1&at=2026-03-03")[0]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods_are_refused(history: Api, method: str) -> None:
    """The API only reads."""
    answer = history.site.client.request(method, f"{ROOT}/clusters")
    assert (_NOT_ALLOWED, "GET, HEAD") == (answer.status_code, answer.headers["allow"])
    assert {"error"} == answer.json().keys()


def test_the_head_of_an_answer_has_no_body(history: Api) -> None:
    """It has the tag of the answer."""
    path = f"{ROOT}/clusters/{history.key}/findings"
    head, whole = history.site.client.head(path), history.site.client.get(path)
    assert (_OK, whole.headers["etag"]) == (head.status_code, head.headers["etag"])


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(
    endpoint=st.sampled_from(ENDPOINTS),
    names=st.lists(st.text(max_size=12), max_size=3),
    values=st.lists(st.text(max_size=40), max_size=6),
)
def test_any_query_is_answered_or_refused(
    history: Api, endpoint: Endpoint[Any], names: list[str], values: list[str]
) -> None:
    """Random values of known and unknown parameters."""
    known = [field.encode_name for field in msgspec.structs.fields(endpoint.query)]
    pairs = zip((*known, *names), values, strict=False)
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)
    _asked(history, f"{_path(history, endpoint)}?{query}")
