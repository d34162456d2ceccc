"""A push to a Pushgateway: where, with which credentials, and what is said of a failure."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator

import pytest

from scanner.errors import UsageError
from scanner.notify.pushgateway import gateway_of, push
from tests.notify.gateway import Gateway, gateway, gauge

SECRET = "s3cr3t"


@pytest.fixture
def server() -> Iterator[Gateway]:
    """A server that takes pushes."""
    with gateway() as running:
        yield running


@pytest.mark.parametrize(
    ("cluster", "path"),
    [
        ("prod-eu_1.a", "/metrics/job/assay/cluster/prod-eu_1.a"),
        ("a/b", "/metrics/job/assay/cluster@base64/YS9i"),
        (".", "/metrics/job/assay/cluster@base64/Lg%3D%3D"),
        ("..", "/metrics/job/assay/cluster@base64/Li4%3D"),
        ("", "/metrics/job/assay/cluster@base64/="),
        ("Größe?#%", "/metrics/job/assay/cluster/Gr%C3%B6%C3%9Fe%3F%23%25"),
        ("Größe ?#%", "/metrics/job/assay/cluster@base64/R3LDtsOfZSA_IyU="),
    ],
)
def test_the_group_of_a_cluster(server: Gateway, cluster: str, path: str) -> None:
    """A name that a path cannot have, or would not keep, is encoded."""
    push(gateway_of(server.url), cluster, gauge("x"), replace=True)

    assert [path] == [pushed.path for pushed in server.pushes]


@pytest.mark.parametrize(("replace", "method"), [(True, "PUT"), (False, "POST")])
def test_a_push_replaces_all_or_some(server: Gateway, replace: bool, method: str) -> None:  # noqa: FBT001
    """PUT replaces the metrics of the cluster, POST those with the same names."""
    trouble = push(gateway_of(f"{server.url}/"), "prod", gauge("x"), replace=replace)

    [pushed] = server.pushes
    assert "" == trouble
    assert (method, "/metrics/job/assay/cluster/prod", None, "# HELP x A metric.\n# TYPE x gauge\nx 1.0\n") == (
        pushed.method,
        pushed.path,
        pushed.authorization,
        pushed.text,
    )


def test_the_user_of_the_url_is_sent_in_a_header(server: Gateway) -> None:
    """Decoded, and not in the path."""
    url = server.url.replace("http://", f"http://me%40home:{SECRET}%2F@") + "/prefix"
    push(gateway_of(url), "prod", gauge("x"), replace=True)

    [pushed] = server.pushes
    assert f"Basic {base64.b64encode(f'me@home:{SECRET}/'.encode()).decode()}" == pushed.authorization
    assert "/prefix/metrics/job/assay/cluster/prod" == pushed.path


def test_a_token_is_sent_in_a_header(server: Gateway) -> None:
    """As a bearer token."""
    push(gateway_of(server.url, SECRET), "prod", gauge("x"), replace=True)

    assert [f"Bearer {SECRET}"] == [pushed.authorization for pushed in server.pushes]


def test_what_is_shown_of_a_gateway_has_no_credentials() -> None:
    """Nor has its form in a trace."""
    by_user = gateway_of(f"https://me:{SECRET}@[::1]:9091/x/")
    by_token = gateway_of("https://gateway.example.com", SECRET)

    assert ("https://[::1]:9091/x", "https://gateway.example.com") == (by_user.url, by_token.url)
    assert SECRET not in f"{by_user!r} {by_token!r}"


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        (f"ftp://me:{SECRET}@x", "", "must be an http or https URL"),
        (f"{SECRET}", "", "must be an http or https URL"),
        (f"http://me:{SECRET}@x:99999", "", "is no URL"),
        (f"http://[me:{SECRET}", "", "is no URL"),
        (f"http://x?token={SECRET}", "", "the address of the Pushgateway alone"),
        ("http://x/metrics/job/other", "", "the address of the Pushgateway alone"),
        (f"http://me:{SECRET}@x", SECRET, "leave one of them out"),
        ("http://x", f"{SECRET}\nX-Other: 1", "no token has"),
    ],
)
def test_a_wrong_url_is_refused_without_its_secret(url: str, token: str, message: str) -> None:
    """The message is printed, and stored as the reason of the run."""
    with pytest.raises(UsageError, match=message) as error:
        gateway_of(url, token)

    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        (202, ""),
        (400, "it rejects the metrics (status 400)"),
        (401, "it rejects the credentials (status 401)"),
        (404, "it has no Pushgateway at this address (status 404)"),
        (502, "the server failed (status 502)"),
    ],
)
def test_the_answer_of_the_server(server: Gateway, status: int, trouble: str) -> None:
    """Only a status that means success is none."""
    server.status = status

    assert trouble == push(gateway_of(server.url), "prod", gauge("x"), replace=True)


def test_a_redirect_is_not_followed(server: Gateway) -> None:
    """The credentials are for the server that the user named."""
    server.status, server.location = 307, f"{server.url}/elsewhere"
    trouble = push(gateway_of(server.url, SECRET), "prod", gauge("x"), replace=True)

    assert trouble.startswith("the server sends to another address (status 307)")
    assert 1 == len(server.pushes)


def test_a_server_that_does_not_answer_is_left(server: Gateway) -> None:
    """After a limited time."""
    server.released.clear()

    assert "no response within 0.1 seconds" == push(
        gateway_of(server.url), "prod", gauge("x"), replace=True, seconds=0.1
    )


def test_a_closed_port_is_named() -> None:
    """Without the words of the library, which have the URL."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://me:{SECRET}@127.0.0.1:{taken.getsockname()[1]}"

        assert "the connection was refused" == push(gateway_of(url), "prod", gauge("x"), replace=True)


def test_a_server_without_tls_is_not_trusted(server: Gateway) -> None:
    """Nothing is sent to it."""
    url = server.url.replace("http://", f"https://me:{SECRET}@")
    trouble = push(gateway_of(url), "prod", gauge("x"), replace=True)

    assert trouble
    assert SECRET not in trouble
    assert [] == server.pushes
