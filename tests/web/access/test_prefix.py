"""`assay serve` below a path of its host, behind proxies that pass this path on and proxies that take it away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html import unescape
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import pytest
from starlette.routing import Route

from scanner.cli.flags.access import read_public_url
from scanner.errors import UsageError
from scanner.web.access.sign_in import PATHS, target_of
from scanner.web.requests.prefix import OWN_PATHS
from scanner.web.server.application import application
from scanner.web.server.health import Readiness, health_routes
from scanner.web.views.library import ScanLibrary
from tests.http_server import serving_on_loopback
from tests.web.access.conftest import TOKEN, TOKENS
from tests.web.access.running import Running, access, running

PREFIX = "/assay"
KEPT, TAKEN = "the path is passed on", "the path is taken away"
BOTH = pytest.mark.parametrize("proxy", [KEPT, TAKEN])
PUBLIC = f"https://tools.example.com{PREFIX}"
SECONDS = 120
"""The longest time that an answer may take on a machine that is busy."""


@contextmanager
def behind(server: Running, *, takes: bool) -> Iterator[httpx2.Client]:
    """A client of a proxy that has the server at PREFIX, and another application at every other path."""

    class Proxy(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            if not self.path.startswith(PREFIX):
                self.send_response(418)
                self.end_headers()
                return
            path = self.path.removeprefix(PREFIX) or "/" if takes else self.path
            with httpx2.Client(base_url=server.url, timeout=SECONDS, trust_env=False) as backend:
                got = backend.request(self.command, path, headers=dict(self.headers.items()), content=body)
            self.send_response_only(got.status_code)
            for name, value in got.headers.multi_items():
                if name not in ("transfer-encoding", "content-length", "content-encoding"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(got.content)))
            self.end_headers()
            self.wfile.write(got.content)

        do_GET = do_POST = answer  # noqa: N815 - the names by which the base class finds them

    with (
        serving_on_loopback(Proxy) as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=SECONDS) as client,
    ):
        yield client


@contextmanager
def pages(examples: str, proxy: str, **settings: object) -> Iterator[tuple[httpx2.Client, Running]]:
    """The pages of the example cluster behind a proxy."""
    local = "http://127.0.0.1" + PREFIX
    with (
        closing(ScanLibrary(examples)) as library,
        running(access(public_url=local, **settings), app=application(library)) as server,
        behind(server, takes=proxy == TAKEN) as client,
    ):
        yield client, server


def addresses(answer: httpx2.Response) -> set[str]:
    """The addresses on a page of links, forms, images and scripts, without fragments, and of a redirect."""
    page = answer.text if "html" in answer.headers.get("content-type", "") else ""
    named = [unescape(each) for each in re.findall(r'(?:href|src|action)="([^"#][^"]*)"', page)]
    named += [answer.headers["location"]] if "location" in answer.headers else []
    absolute = (urljoin(str(answer.url), each).partition("#")[0] for each in named if not each.startswith("data:"))
    return {each for each in absolute if urlsplit(each).netloc == urlsplit(str(answer.url)).netloc}


def shape(address: str) -> str:
    """An address without the names and numbers that many addresses of one kind differ in."""
    parts = urlsplit(address)
    path = re.sub(r"[^/]*[0-9][^/.]*|(?<=/policies/).*|(?<=/namespaces/)[^.]*|(?<=/owners/)[^.]*", "*", parts.path)
    return f"{path}?{','.join(sorted(parse_qs(parts.query)))}"


@BOTH
def test_every_address_of_the_pages_is_below_the_prefix(examples: str, proxy: str) -> None:
    """A reader who follows links comes to pages, files and redirects of the server, and never to the other application."""
    with pages(examples, proxy) as (client, _):
        left, known, wrong = [str(client.base_url.join(PREFIX))], set[str](), dict[str, int]()
        while left:
            address = left.pop()
            if shape(address) in known:
                continue
            known.add(shape(address))
            answer = client.get(address)
            if answer.status_code >= 400:
                wrong[address] = answer.status_code
            left += sorted(addresses(answer), reverse=True)
    assert {} == wrong
    assert {"html", "csv", "json"} <= {each.partition("?")[0].rpartition(".")[2] for each in known}


@BOTH
def test_the_api_names_addresses_below_the_prefix(examples: str, proxy: str) -> None:
    """The description of the API has the server below the prefix, and a refusal has the address of the description."""
    with pages(examples, proxy) as (client, _):
        described = client.get(f"{PREFIX}/api/v1/openapi.json").json()
        [cluster] = client.get(f"{PREFIX}/api/v1/clusters").json()["clusters"]
        refused = client.get(f"{PREFIX}/api/v1/nothing")
    assert f"{PREFIX}/api/v1" == described["servers"][0]["url"]
    assert "shop" == cluster["name"]
    assert (404, f"{PREFIX}/api/v1/openapi.json" in refused.text) == (refused.status_code, True)


@BOTH
def test_a_reader_signs_in_and_out_below_the_prefix(examples: str, proxy: str) -> None:
    """The form, the redirects and the cookie have the prefix; the page that the reader asked for follows."""
    with pages(examples, proxy, tokens=TOKENS) as (client, _):
        asked = client.get(f"{PREFIX}/policies?language=x", headers={"accept": "text/html"})
        form = client.get(asked.headers["location"], headers={"accept": "text/html"})
        [action] = re.findall(r'action="([^"]+)"', form.text)
        target = parse_qs(urlsplit(asked.headers["location"]).query)["next"][0]
        signed_in = client.post(action, data={"token": TOKEN, "next": target})
        page = client.get(signed_in.headers["location"], headers={"accept": "text/html"})
        account = client.get(f"{PREFIX}/logout", headers={"accept": "text/html"})
        signed_out = client.post(f"{PREFIX}/logout")
    assert (303, f"{PREFIX}/login") == (asked.status_code, urlsplit(asked.headers["location"]).path)
    assert f"{PREFIX}/login" == action
    assert (303, f"{PREFIX}/policies?language=x") == (signed_in.status_code, signed_in.headers["location"])
    assert f"Path={PREFIX};" in signed_in.headers["set-cookie"] + ";"
    assert 200 == page.status_code
    assert f'action="{PREFIX}/logout"' in account.text
    assert f'href="{PREFIX}/"' in account.text
    assert (303, f"{PREFIX}/logout") == (signed_out.status_code, signed_out.headers["location"])
    assert f"Path={PREFIX};" in signed_out.headers["set-cookie"] + ";"


def test_a_cookie_is_for_the_prefix_alone() -> None:
    """By TLS its name says so: a browser accepts one with __Host- for the whole host alone."""
    with running(access(public_url=PUBLIC, tokens=TOKENS)) as server:
        body = f"token={TOKEN}".encode()
        headers = {"content-type": "application/x-www-form-urlencoded"}
        cookie = server.ask("POST", f"{PREFIX}/login", headers, body).headers["set-cookie"]
    assert cookie.startswith("__Secure-assay=")
    assert {f"Path={PREFIX}", "Secure", "HttpOnly"} <= set(cookie.split("; "))


@pytest.mark.parametrize("path", ["/healthz", "/readyz", f"{PREFIX}/healthz", f"{PREFIX}/readyz"])
def test_probes_pass_with_and_without_the_prefix(path: str) -> None:
    """A kubelet asks the pod, and not the proxy."""
    with running(access(public_url=PUBLIC, tokens=TOKENS)) as server:
        assert 200 == server.get(path).status_code


def test_the_log_of_a_callback_has_no_query_below_the_prefix() -> None:
    """The query of the path to which a provider sends users back has a code."""
    with running(access(public_url=PUBLIC, tokens=TOKENS)) as server:
        server.get(f"{PREFIX}/callback?code=hunter2&other=hunter2")
    assert [(f"{PREFIX}/callback", "")] == [(line["path"], line["query"]) for line in server.log]


@pytest.mark.parametrize(
    "target",
    ["/", "/other", "/assays", "/assay/login", "/assay/../other", "/assay/%2e%2E/other", "//example.com/assay/"],
)
def test_no_sign_in_leads_out_of_the_prefix(target: str) -> None:
    """Other paths of the host belong to other applications."""
    assert f"{PREFIX}/" == target_of(target, PREFIX)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://tools.example.com/assay", "https://tools.example.com/assay"),
        ("https://Tools.example.com/a/b-1.x/", "https://tools.example.com/a/b-1.x"),
        ("https://tools.example.com/", "https://tools.example.com"),
    ],
)
def test_a_public_url_may_have_a_path(text: str, expected: str) -> None:
    """Without a slash at its end."""
    assert expected == read_public_url(text)


@pytest.mark.parametrize("path", ["/clusters", "/api/x", "/a//b", "/a/../b", "/a%20b", "/é", "/assay?x=1", "/assay#x"])
def test_a_path_that_is_none_of_a_prefix_is_refused(path: str) -> None:
    """Paths of the pages themselves, and those that browsers would write differently."""
    with pytest.raises(UsageError, match="--public-url"):
        read_public_url(f"https://tools.example.com{path}")


def test_the_own_paths_are_those_of_the_application(examples: str) -> None:
    """The first parts of all routes, and the paths of signing in."""
    with closing(ScanLibrary(examples)) as library:
        app = application(library, health_routes(Readiness(library.database)))
    routes = {route.path for route in app.routes if isinstance(route, Route)} | PATHS | {"/metrics"}
    assert {path.split("/")[1] for path in routes} - {""} == OWN_PATHS
