"""The destinations to which expressions may send requests: a table of hosts, and servers on this machine.

A table of the test resolves names; no connection leaves the loopback interface.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.cel import EvaluationError
from scanner.cluster.outside.destinations import Destinations, parse_destinations
from scanner.cluster.outside.http_client import HttpClient
from scanner.errors import UsageError
from scanner.model.scans.tally import OutcomeName
from scanner.policies.kyverno.libraries import Call, Unavailable
from tests.policies.kyverno.made import pod, policy
from tests.policies.kyverno.serving import serving
from tests.policies.kyverno.test_network import scan_of

# What inet_aton, and so getaddrinfo, makes of numbers that are no addresses as people write them.
NUMBERS = {"0": "0.0.0.0", "2852039166": "169.254.169.254", "0xa9fea9fe": "169.254.169.254", "127.1": "127.0.0.1"}  # noqa: S104
NAMES = {
    "localhost": "127.0.0.1",
    "localhost.": "127.0.0.1",
    "rebound.example": "127.0.0.1",
    "metadata.example": "169.254.169.254",
    "mapped.example": "::ffff:169.254.169.254",
    "service.team.svc": "10.96.0.10",
    "unspecified.example": "::",
    "group.example": "224.0.0.1",
    "carrier.example": "100.64.0.1",
}
KYVERNO = "is blocked|falls in blocked range"
MACHINE = "this machine: name it with --allow-network-to"
LINK_LOCAL = "link-local: name it with --allow-network-to"
METADATA = "the metadata service of a cloud, to which a scan sends no request"
NOT_PUBLIC = "not public: name it with --allow-network-to"
NO_HOST = "not the address of a host"


class Names:
    """Resolves names from a table, and counts the look-ups."""

    def __init__(self, *rounds: dict[str, list[str]]) -> None:
        self._rounds = list(rounds)
        self.asked: list[str] = []

    def __call__(self, host: str, _port: int) -> Iterable[str]:
        self.asked.append(host)
        table = self._rounds.pop(0) if len(self._rounds) > 1 else (self._rounds or [{}])[0]
        if host in table:
            return table[host]
        text = NUMBERS.get(host) or NAMES.get(host) or host
        try:
            return [str(ipaddress.ip_address(text))]
        except ValueError:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None


def refused(url: str, outside: HttpClient) -> EvaluationError:
    """The error of a refused request."""
    with pytest.raises(EvaluationError) as raised:
        outside.request(Call("GET", url))
    return raised.value


@pytest.mark.parametrize(
    ("host", "expected", "by_kyverno"),
    [
        ("127.0.0.1", KYVERNO, True),
        ("127.8.9.10", KYVERNO, True),
        ("127.1", KYVERNO, True),
        ("[::1]", KYVERNO, True),
        ("[::ffff:127.0.0.1]", KYVERNO, True),
        ("[::ffff:7f00:1]", KYVERNO, True),
        ("localhost", KYVERNO, True),
        ("localhost.", KYVERNO, True),
        ("rebound.example", KYVERNO, True),
        ("169.254.169.254", KYVERNO, True),
        ("metadata.google.internal", KYVERNO, True),
        ("METADATA.google.internal", KYVERNO, True),
        ("metadata.google.internal.", METADATA, False),
        ("169.254.169.254.", METADATA, False),
        ("[::ffff:169.254.169.254]", METADATA, False),
        ("2852039166", METADATA, False),
        ("0xa9fea9fe", METADATA, False),
        ("metadata.example", METADATA, False),
        ("mapped.example", METADATA, False),
        ("[64:ff9b::a9fe:a9fe]", METADATA, False),
        ("[2002:a9fe:a9fe::1]", METADATA, False),
        ("[fd00:ec2::254]", METADATA, False),
        ("168.63.129.16", METADATA, False),
        ("100.100.100.200", METADATA, False),
        ("169.254.170.2", METADATA, False),
        ("0", NO_HOST, False),
        ("0.0.0.0", NO_HOST, False),  # noqa: S104
        ("[::]", NO_HOST, False),
        ("[::ffff:0.0.0.0]", NO_HOST, False),
        ("unspecified.example", NO_HOST, False),
        ("group.example", NO_HOST, False),
        ("[ff02::1]", NO_HOST, False),
        ("169.254.1.1", LINK_LOCAL, False),
        ("[fe80::1]", LINK_LOCAL, False),
        ("10.0.0.1", NOT_PUBLIC, False),
        ("172.16.0.1", NOT_PUBLIC, False),
        ("192.168.0.1", NOT_PUBLIC, False),
        ("service.team.svc", NOT_PUBLIC, False),
        ("carrier.example", NOT_PUBLIC, False),
        ("[fc00::1]", NOT_PUBLIC, False),
        ("[fec0::1]", NOT_PUBLIC, False),
        ("[2002:a00:1::1]", NOT_PUBLIC, False),
        ("[64:ff9b::a00:1]", NOT_PUBLIC, False),
        ("[64:ff9b:1::a00:1]", NOT_PUBLIC, False),
        ("[::10.0.0.1]", NOT_PUBLIC, False),
        ("192.0.0.8", NOT_PUBLIC, False),
        ("255.255.255.255", NOT_PUBLIC, False),
    ],
)
def test_forbidden_hosts_get_no_request(host: str, expected: str, by_kyverno: bool) -> None:  # noqa: FBT001
    """A host on Kyverno's block list is Kyverno's error; a host that only a scan refuses is unavailable, with the reason."""
    error = refused(f"http://{host}:1/?token=hunter2", HttpClient(lookup=Names()))
    assert (not by_kyverno) == isinstance(error, Unavailable)
    assert any(text in str(error) for text in expected.split("|"))
    assert "hunter2" not in str(error)


def test_loopback_is_refused_where_kyvernos_list_has_been_emptied() -> None:
    """The rule of a scan does not depend on Kyverno's list."""
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[2002:7f00:1::]"):
        error = refused(f"http://{host}:1/", HttpClient(hosts=(), ranges=(), lookup=Names()))
        assert isinstance(error, Unavailable)
        assert MACHINE in str(error)


@pytest.mark.parametrize("host", ["8.8.8.8", "2a00::1", "64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::1"])
def test_public_addresses_get_requests(host: str) -> None:
    """Public IPv4 addresses in their IPv6 forms are allowed, too."""
    assert "" == Destinations().find_refusal("any.example", ipaddress.ip_address(host))


@pytest.mark.parametrize(
    ("named", "host", "address"),
    [
        ("10.0.0.0/8", "service.team.svc", "10.96.0.10"),
        ("10.96.0.10", "service.team.svc", "10.96.0.10"),
        ("10.0.0.0/8", "a.example", "::ffff:10.0.0.1"),
        ("service.team.svc", "service.team.svc", "10.96.0.10"),
        ("Service.team.svc.", "service.team.svc", "10.96.0.10"),
        ("fd00::/8", "a.example", "fd00::1"),
        ("[fd00::1]", "a.example", "fd00::1"),
        ("127.0.0.1", "localhost", "127.0.0.1"),
    ],
)
def test_what_the_user_names_is_allowed(named: str, host: str, address: str) -> None:
    """Ranges, addresses and hosts are allowed in every form of an address."""
    assert "" == parse_destinations([named]).find_refusal(host, ipaddress.ip_address(address))


@pytest.mark.parametrize("named", ["0.0.0.0/0", "169.254.0.0/16", "evil.example"])
@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "0.0.0.0", "224.0.0.1"])  # noqa: S104
def test_no_option_allows_metadata_services(named: str, address: str) -> None:
    """Neither a range that contains a metadata service nor a name that resolves to one is allowed."""
    assert "" != parse_destinations([named, "::/0"]).find_refusal("evil.example", ipaddress.ip_address(address))


@pytest.mark.parametrize("text", ["http://a.example", "a.example:80", "", "10.0.0.0/33", "a b", "*"])
def test_a_value_that_is_no_destination_is_refused(text: str) -> None:
    """A value that is no destination is an error."""
    with pytest.raises(UsageError, match="--allow-network-to"):
        parse_destinations([text])


@given(st.ip_addresses(v=4))
def test_every_form_of_an_address_is_treated_alike(address: ipaddress.IPv4Address) -> None:
    """Mapped, compatible, translated and NAT64 addresses count as the IPv4 address."""
    allowed = parse_destinations(["10.0.0.0/8"])
    bits = int(address)
    expected = allowed.find_refusal("h", address)
    for prefix in ("::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::"):
        other = ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | bits)
        assert expected == allowed.find_refusal("h", other)


# Connections


@dataclass
class FakeServer:
    """A server on this machine, with the paths and hosts of the requests."""

    port: int = 0
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A server that responds with `{}`, or with a redirect if the test prepares one."""
    received = FakeServer()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        received.requests.append((request.command, request.headers.get("Host") or "", request.path))
        status, location = received.answers.get(request.path, (200, ""))
        request.send_response(status)
        for name, value in (("Content-Length", "2"), *((("Location", location),) if location else ())):
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(b"{}")

    with serving(answer) as host:
        received.port = int(host.rpartition(":")[2])
        yield received


def asking(*allowed: str, lookup: Names, seconds: float = 10.0) -> HttpClient:
    """A client without Kyverno's block list, which contains all addresses that a test has."""
    return HttpClient(parse_destinations(allowed), hosts=(), ranges=(), lookup=lookup, seconds=seconds)


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(server: FakeServer) -> None:
    """A name is resolved once, so a second answer of the resolver has no effect."""
    names = Names({"api.example": ["127.0.0.1"]}, {"api.example": ["127.0.0.99"]})
    status, _ = asking("127.0.0.1", lookup=names).request(Call("GET", f"http://api.example:{server.port}/"))
    assert (200, ["api.example"]) == (status, names.asked)
    assert [("GET", f"api.example:{server.port}", "/")] == server.requests


def test_one_bad_address_among_several_is_enough(server: FakeServer) -> None:
    """One forbidden address refuses the host, because the network would choose among its addresses."""
    names = Names({"api.example": ["127.0.0.1", "169.254.169.254"]})
    error = refused(f"http://api.example:{server.port}/", asking("127.0.0.1", lookup=names))
    assert (True, []) == (isinstance(error, Unavailable), server.requests)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://169.254.169.254/latest", METADATA),
        ("http://2852039166/latest", METADATA),
        ("http://10.0.0.1/", NOT_PUBLIC),
        ("//[::ffff:10.0.0.1]/", NOT_PUBLIC),
        ("http://rebound.example/", MACHINE),
        ("file:///etc/passwd", "unsupported protocol scheme"),
    ],
)
def test_redirects_are_checked_too(server: FakeServer, location: str, reason: str) -> None:
    """An allowed server cannot redirect a request to a forbidden one."""
    server.answers["/"] = 302, location
    names = Names({"api.example": ["127.0.0.1"], "rebound.example": ["127.0.0.2"]})
    error = refused(f"http://api.example:{server.port}/", asking("api.example", lookup=names))
    assert reason in str(error)
    assert 1 == len(server.requests)


def test_a_redirect_to_what_kyverno_blocks_is_its_error(server: FakeServer) -> None:
    """The error is that of Kyverno's own client."""
    server.answers["/"] = 302, "http://metadata.google.internal/"
    outside = HttpClient(parse_destinations(["127.0.0.1"]), ranges=(), lookup=Names())
    error = refused(f"http://127.0.0.1:{server.port}/", outside)
    assert not isinstance(error, Unavailable)
    assert "is on the blocklist" in str(error)


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_redirects_are_followed_as_go_does(server: FakeServer, status: int, method: str) -> None:
    """A POST becomes a GET, except for the status codes that keep the method."""
    server.answers["/"] = status, "/there"
    outside = asking("127.0.0.1", lookup=Names())
    assert 200 == outside.request(Call("POST", f"http://127.0.0.1:{server.port}/", data="{}"))[0]
    assert [("POST", "/"), (method, "/there")] == [(request[0], request[2]) for request in server.requests]


def test_redirects_without_end_are_an_error(server: FakeServer) -> None:
    """A client follows ten redirects."""
    server.answers["/"] = 302, "/"
    error = refused(f"http://127.0.0.1:{server.port}/", asking("127.0.0.1", lookup=Names()))
    assert "stopped after 10 redirects" in str(error)
    assert 10 == len(server.requests)


def test_what_a_scan_alone_refuses_is_not_auditable() -> None:
    """A request that only a scan refuses has no verdict, and the report shows the reason."""
    scan = scan_of(policy("http.Get('http://10.0.0.1/').ok == true"), pod(), network=HttpClient(lookup=Names()))
    assert (1, 0) == (scan.counted(OutcomeName.NOT_AUDITABLE), scan.counted(OutcomeName.PASSED))


def test_what_kyverno_refuses_is_an_error_of_the_check() -> None:
    """Kyverno's webhook would deny the object."""
    scan = scan_of(policy("http.Get('http://127.0.0.1/').ok == true"), pod(), network=HttpClient(lookup=Names()))
    assert (1, 0) == (scan.counted(OutcomeName.ERRORED_DENY), scan.counted(OutcomeName.NOT_AUDITABLE))


@pytest.mark.parametrize("reference", ["127.0.0.1:1/app/web:1", "localhost:1/app/web:1", "10.0.0.1:1/app/web:1"])
def test_registries_are_checked_alike(reference: str) -> None:
    """Kyverno's block list does not apply to registries; the rule of a scan does."""
    with pytest.raises(Unavailable, match="name it with --allow-network-to"):
        HttpClient(lookup=Names()).image(reference)


# Time


def test_a_name_that_is_looked_up_for_ever_ends_in_time() -> None:
    """A request has a deadline; the resolver of the operating system has none."""
    over = threading.Event()

    def slow(_host: str, _port: int) -> Iterable[str]:
        over.wait(20)
        return ["127.0.0.1"]

    started = time.monotonic()
    with pytest.raises(EvaluationError, match=r"no response within 0\.3 seconds"):
        HttpClient(HERE, ranges=(), seconds=0.3, lookup=slow).request(Call("GET", "http://api.example:1/"))
    over.set()
    assert time.monotonic() - started < 5


HERE = parse_destinations(["127.0.0.0/8"])


def dripping_headers(request: BaseHTTPRequestHandler) -> None:
    """A header line that never ends."""
    with suppress(OSError):
        request.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(300):
            request.wfile.write(b"x")
            request.wfile.flush()
            time.sleep(0.02)


def slow_redirects(request: BaseHTTPRequestHandler) -> None:
    """Redirects each of which is in time, and which together are late."""
    time.sleep(0.2)
    request.send_response(302)
    request.send_header("Location", f"{request.path}x")
    request.send_header("Content-Length", "0")
    request.end_headers()


@pytest.mark.parametrize("answer", [dripping_headers, slow_redirects])
def test_a_request_has_so_many_seconds_in_all(answer: object) -> None:
    """The time of headers and redirects counts."""
    assert callable(answer)
    started = time.monotonic()
    with serving(answer) as host, pytest.raises(EvaluationError, match=r"no response within 0\.5 seconds"):
        HttpClient(HERE, ranges=(), seconds=0.5).request(Call("GET", f"http://{host}/"))
    assert time.monotonic() - started < 8


def test_a_handshake_that_never_ends_does() -> None:
    """A TLS handshake with a server without TLS ends at the deadline."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(EvaluationError, match=r"no response within 0\.3 seconds"):
            HttpClient(HERE, ranges=(), seconds=0.3).request(Call("GET", url))
