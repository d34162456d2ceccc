"""Addresses: IPv4, IPv6, names and free ports; an address that is taken is one sentence."""

from __future__ import annotations

import socket

import pytest

from scanner.errors import AssayError, UsageError
from scanner.web.requests.listen import ListenAddress, address_of, bind
from tests.web.access.running import access, running


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("127.0.0.1:8080", ListenAddress("127.0.0.1", 8080), True),
        ("localhost:0", ListenAddress("localhost", 0), True),
        ("[::1]:80", ListenAddress("::1", 80), True),
        ("0.0.0.0:8080", ListenAddress("0.0.0.0", 8080), False),  # noqa: S104 - nothing listens
        ("[::]:8080", ListenAddress("::", 8080), False),
        ("10.0.0.1:1", ListenAddress("10.0.0.1", 1), False),
        ("Assay.internal:1", ListenAddress("assay.internal", 1), False),
        ("localhost.example.com:1", ListenAddress("localhost.example.com", 1), False),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: ListenAddress, loopback: bool) -> None:  # noqa: FBT001 - a case
    """A name is loopback only if it is `localhost`: others may mean another machine tomorrow."""
    assert (address, loopback) == (address_of(text, "--listen"), address.is_loopback)


@pytest.mark.parametrize(
    "text", ["8080", ":8080", "localhost", "localhost:", "localhost:http", "::1:80", "a:65536", "a:-1", "[]:1", ""]
)
def test_other_texts_are_errors(text: str) -> None:
    """The message shows how to write an address."""
    with pytest.raises(UsageError, match=r"write HOST:PORT, such as 127\.0\.0\.1:8080"):
        address_of(text, "--listen")


def test_an_address_that_is_taken_is_named() -> None:
    """With the flag that names another one."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = ListenAddress("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(AssayError, match=f"cannot listen on {address} .*: name another address with --listen"):
            bind(address, "--listen")


def test_an_address_of_another_machine_is_an_error() -> None:
    """198.51.100.0/24 is for documentation."""
    with pytest.raises(AssayError, match=r"cannot listen on 198\.51\.100\.1:0"):
        bind(ListenAddress("198.51.100.1", 0), "--listen")


def test_a_server_listens_on_ipv6() -> None:
    """Its address has brackets."""
    try:
        with running(access(), listen=ListenAddress("::1", 0)) as server:
            assert server.url.startswith("http://[::1]:")
            assert 200 == server.get("/").status_code
    except AssayError:
        pytest.skip("this machine has no IPv6 on loopback")
