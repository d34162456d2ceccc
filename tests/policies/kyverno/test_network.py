"""HTTP requests of Kyverno's expressions: allowed by the user, limited, and without the data of Secrets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from scanner.cel import EvaluationError
from scanner.cluster.outside.destinations import parse_destinations
from scanner.cluster.outside.http_client import HttpClient
from scanner.model.scans.tally import OutcomeName
from scanner.policies.kyverno.family import KyvernoOptions
from scanner.policies.kyverno.libraries import Call
from scanner.policies.language import with_options
from scanner.scan.options import Options
from tests.documents import KINDS
from tests.policies.kyverno.made import pod, policy
from tests.policies.kyverno.serving import serving
from tests.policies.kyverno.test_scanned import KYVERNO, TEAM
from tests.scan.fakes import FakeCluster, Recorded, scanned

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "team"},
    "data": {"password": "aHVudGVyMg=="},
}
HERE = parse_destinations(["127.0.0.0/8"])
EVERYWHERE = HttpClient(HERE, ranges=())
"""Asks this machine too: a test's server has no other address."""


@dataclass
class FakeServer:
    """A server, with the method, path, one header and the body of each request."""

    url: str = ""
    requests: list[tuple[str, str, str, str]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A server that responds with an object, a list under `/list`, no JSON under `/text`, and 404 under `/none`."""
    received = FakeServer()

    def answer(request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(length).decode()
        received.requests.append((request.command, request.path, request.headers.get("X-Team") or "", body))
        texts = {"/list": "[1, 2]", "/text": "hello", "/large": "x" * (5 << 20)}
        data = texts.get(request.path, '{"allowed": true, "n": 1}').encode()
        request.send_response(404 if request.path == "/none" else 200)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    with serving(answer) as host:
        received.url = f"http://{host}"
        yield received


def scan_of(*documents: Any, network: HttpClient | None = EVERYWHERE) -> Recorded:
    """A scan that may ask."""
    return scanned(
        FakeCluster((TEAM, *documents), kinds=(*KINDS, *KYVERNO)),
        Options(languages=with_options(KyvernoOptions(network=network))),
    )


@pytest.mark.parametrize(
    "expression",
    [
        "http.Get('URL/').allowed && http.Get('URL/').statusCode == 200",
        "http.Get('URL/').n == 1.0 && type(http.get('URL/').n) == double",
        "http.Get('URL/list').body == [1.0, 2.0]",
        "http.Get('URL/text').body == null",
        "http.Get('URL/none').statusCode == 404",
        "http.Post('URL/', {'name': object.metadata.name}).allowed == true",
        "http.Post('URL/', {'a': ['b']}, {'X-Team': 'a'}).allowed == true",
    ],
)
def test_a_response_has_kyvernos_form(server: FakeServer, expression: str) -> None:
    """An object has its status, other JSON is under `body`, and 404 is a response like any other."""
    scan = scan_of(policy(expression.replace("URL", server.url)), pod())
    assert ([], 1) == (scan.messages, scan.counted(OutcomeName.PASSED))


def test_what_is_sent_is_the_json_of_the_value(server: FakeServer) -> None:
    """The request has the headers of the expression; equal requests of many objects are sent once."""
    text = f"http.Post('{server.url}/', {{'b': dyn('c'), 'a': object.kind}}, {{'X-Team': 'x'}}).allowed == true"
    scan_of(policy(text), pod("one"), pod("two"))
    assert [("POST", "/", "x", '{"a":"Pod","b":"c"}')] == server.requests


def test_without_permission_nothing_is_requested(server: FakeServer) -> None:
    """Without permission the check is not auditable, and the reason names the flag."""
    scan = scan_of(policy(f"http.Get('{server.url}/').allowed == true"), pod(), network=None)
    assert (1, []) == (scan.counted(OutcomeName.NOT_AUDITABLE), server.requests)


def test_no_request_contains_a_secret(server: FakeServer) -> None:
    """No request is sent for a Secret, or by an expression that reads Secrets."""
    about = policy(f"http.Post('{server.url}/', object).allowed == true", resources=("secrets",))
    reading = policy(
        f"http.Post('{server.url}/', resource.List('v1', 'secrets', 'team')).allowed == true", name="reading"
    )
    scan = scan_of(about, reading, SECRET, pod())
    assert (2, []) == (scan.counted(OutcomeName.NOT_AUDITABLE), server.requests)


def test_a_namespaced_policy_makes_no_request(server: FakeServer) -> None:
    """Kyverno refuses requests of namespaced policies by default."""
    own = {**policy(f"http.Get('{server.url}/').allowed == true"), "kind": "NamespacedValidatingPolicy"}
    own["metadata"] = {**own["metadata"], "namespace": "team"}
    scan = scan_of(own, pod())
    assert (1, []) == (scan.counted(OutcomeName.NOT_AUDITABLE), server.requests)


def test_a_connection_that_fails_is_an_error(server: FakeServer) -> None:
    """The check has an error, which would deny the object; the scan continues."""
    gone = server.url.rpartition(":")[0] + ":1"
    scan = scan_of(policy(f"http.Get('{gone}/?token=hunter2').allowed == true"), pod())
    (finding,) = scan.findings
    assert "error: request failed: request failed: 127.0.0.1: the connection was refused" == finding.outcome.message


def test_a_large_answer_is_an_error(server: FakeServer) -> None:
    """A response has a limit of its size."""
    scan = scan_of(policy(f"http.Get('{server.url}/large').allowed == true"), pod())
    assert ["error: request failed: 127.0.0.1: the response is larger than 4 MiB"] == [
        finding.outcome.message for finding in scan.findings
    ]


def test_an_answer_that_drips_is_cut_off() -> None:
    """A slow body never exceeds the timeout of the socket, but it exceeds the deadline."""

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        with suppress(OSError):
            for _ in range(1000):
                request.wfile.write(b" ")
                time.sleep(0.02)

    with serving(drip) as host, pytest.raises(EvaluationError, match=r"no response within 0\.2 seconds"):
        HttpClient(HERE, ranges=(), seconds=0.2).request(Call("GET", f"http://{host}/"))


@pytest.mark.parametrize(
    ("spec", "expression"),
    [
        ({"urlPath": "/api/v1/namespaces/team/pods"}, "globalContext.Get('e').items[0].metadata.name == 'web'"),
        ({"urlPath": "/api/v1/namespaces/team/pods/web"}, "globalContext.Get('e').kind == 'Pod'"),
        ({"urlPath": "/api/v1/namespaces/team/pods/none"}, "globalContext.Get('e').kind == 'Pod' || true"),
        (
            {"urlPath": "/api/v1/pods/"},
            "!has(globalContext.Get('e').items[0].kind) && globalContext.Get('e').kind == 'PodList'",
        ),
    ],
)
def test_an_entry_that_calls_the_api_server_has_listed_data(spec: Any, expression: str) -> None:
    """A list has its items as the server returns them, an object is itself, and a missing object is an error."""
    scan = scan_of(policy(expression), context_entry(apiCall=spec), pod(), network=None)
    assert ([], 1) == (scan.messages, scan.counted(OutcomeName.PASSED))


@pytest.mark.parametrize("spec", [{"urlPath": "/version"}, {"urlPath": "/api/v1/pods", "method": "POST"}])
def test_other_calls_of_the_api_server_are_not_auditable(spec: Any) -> None:
    """Only lists and objects can be answered."""
    scan = scan_of(policy("globalContext.Get('e') == null"), context_entry(apiCall=spec), pod(), network=None)
    assert 1 == scan.counted(OutcomeName.NOT_AUDITABLE)


@pytest.mark.parametrize(("network", "name"), [(EVERYWHERE, OutcomeName.PASSED), (None, OutcomeName.NOT_AUDITABLE)])
def test_an_entry_of_a_service_is_requested_if_allowed(
    server: FakeServer, network: HttpClient | None, name: OutcomeName
) -> None:
    """The request has the method, the headers and the data of the entry."""
    service = {"url": f"{server.url}/svc", "headers": [{"key": "X-Team", "value": "x"}]}
    call = {"service": service, "method": "POST", "data": [{"key": "k", "value": 1}]}
    scan = scan_of(
        policy("globalContext.Get('e').allowed == true"), context_entry(apiCall=call), pod(), network=network
    )
    assert 1 == scan.counted(name)
    assert ([("POST", "/svc", "x", '{"k":1}')] if network else []) == server.requests


@pytest.mark.parametrize(
    ("path", "expression"),
    [
        ("[].metadata.name", "globalContext.Get('e', 'p') == ['web']"),
        ("length(@)", "globalContext.Get('e', 'p') == 1"),
        ("[?metadata.name=='x'] | [0]", "globalContext.Get('e', 'p') == null"),
        ("max_by(@, &to_number('1')).spec.containers[0].name", "globalContext.Get('e', 'p') == 'main'"),
    ],
)
def test_projections_are_jmespath(path: str, expression: str) -> None:
    """A projection selects from the objects of an entry."""
    resources = {"group": "", "version": "v1", "resource": "pods", "namespace": "team"}
    made = context_entry(kubernetesResource=resources, projections=[{"name": "p", "jmesPath": path}])
    scan = scan_of(policy(expression), made, pod(), network=None)
    assert ([], 1) == (scan.messages, scan.counted(OutcomeName.PASSED))


@pytest.mark.parametrize(
    ("path", "name", "outcome"),
    [
        ("parse_yaml('a')", "p", OutcomeName.NOT_AUDITABLE),
        ("[", "p", OutcomeName.ERRORED_DENY),
        ("a", "other", OutcomeName.ERRORED_DENY),
    ],
)
def test_projections_that_cannot_be_made(path: str, name: str, outcome: OutcomeName) -> None:
    """Kyverno's own functions are not evaluated; an invalid or missing path is an error."""
    resources = {"group": "", "version": "v1", "resource": "pods", "namespace": "team"}
    made = context_entry(kubernetesResource=resources, projections=[{"name": "p", "jmesPath": path}])
    scan = scan_of(policy(f"globalContext.Get('e', '{name}') == null"), made, pod(), network=None)
    assert 1 == scan.counted(outcome)


def context_entry(**spec: Any) -> Any:
    """A global context entry."""
    return {"apiVersion": "kyverno.io/v2", "kind": "GlobalContextEntry", "metadata": {"name": "e"}, "spec": spec}
