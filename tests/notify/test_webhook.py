"""A webhook: its signature, its attempts, and what is said of a failure."""

from __future__ import annotations

import socket
import time
from base64 import b64encode
from collections.abc import Iterator

import pytest

from scanner.config.notifications import fault_of_url
from scanner.errors import UsageError
from scanner.notify.webhook import Delivery, Webhook, deliver, key_of, sign
from tests.notify.receiver import SLOW, TORN, Receiver, receiver

SECRET = "whsec_" + b64encode(b"k" * 32).decode()
HIDDEN = "/t0ken-in-the-path"
FAST = (0.0, 0.01, 0.01, 0.01)


@pytest.fixture
def server() -> Iterator[Receiver]:
    """A server that takes notifications."""
    with receiver() as running:
        yield running


def delivery(url: str, message_id: str = "scan_route", content: bytes = b'{"a":1}') -> Delivery:
    """A notification for a receiver."""
    return Delivery(Webhook(url + HIDDEN, key_of(SECRET)), message_id, content)


def sent(url: str, seconds: float = 5) -> str:
    """The reason why a notification did not arrive."""
    [trouble] = deliver([delivery(url)], seconds=seconds, pauses=FAST)
    return trouble


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of the Standard Webhooks specification."""
    key = key_of("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
    content = b'{"email":"test@example.com","username":"test_user"}'

    assert "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=" == sign(
        key, "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1649367553, content
    )


def test_a_receiver_can_verify_a_notification(server: Receiver) -> None:
    """Its headers have the id, the time in seconds and the signature; the body arrives byte by byte as it was signed."""
    before = int(time.time())
    assert "" == sent(server.url)

    [got] = server.received
    assert (HIDDEN, "application/json", "scan_route", b'{"a":1}') == (
        got.path,
        got.headers["content-type"],
        got.id,
        got.content,
    )
    assert before <= int(got.headers["webhook-timestamp"]) <= time.time()
    assert got.is_signed_with(SECRET)


@pytest.mark.parametrize("answers", [[500, 200], [503, 429, 204], [TORN, 200], [408, TORN, 502, 201]])
def test_another_attempt_follows_a_failure_that_may_pass(server: Receiver, answers: list[int]) -> None:
    """With the same id and body, signed anew."""
    server.answers = list(answers)

    assert "" == sent(server.url)
    assert len(answers) == len(server.received)
    assert 1 == len({(each.id, each.content) for each in server.received})
    assert all(each.is_signed_with(SECRET) for each in server.received)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "rejects"),
        (401, "rejects the signature"),
        (404, "no receiver"),
        (410, "gone"),
        (418, "failed"),
        (301, "another address"),
    ],
)
def test_a_refusal_is_final(server: Receiver, status: int, words: str) -> None:
    """The same request would be refused again."""
    server.status = status
    trouble = sent(server.url)

    assert words in trouble
    assert f"(status {status})" in trouble
    assert 1 == len(server.received)


def test_a_redirect_is_not_followed(server: Receiver) -> None:
    """What changed in a cluster is for the receiver that the configuration names."""
    with receiver() as other:
        server.status, server.location = 307, f"{other.url}/"
        assert "correct the URL" in sent(server.url)
        assert [] == other.received


def test_a_receiver_that_always_fails_is_given_up(server: Receiver) -> None:
    """After a few attempts, whose number the reason has."""
    server.status = 500

    assert "the server failed (status 500), after 4 attempts" == sent(server.url)
    assert len(FAST) == len(server.received)


def test_a_slow_receiver_ends_with_the_limit_of_time(server: Receiver) -> None:
    """Also one whose answer never comes."""
    server.answers = [SLOW] * 9
    start = time.monotonic()

    assert "no response within 0.5 seconds" == sent(server.url, seconds=0.5)
    assert 2 > time.monotonic() - start


def test_an_answer_byte_by_byte_ends_with_the_limit_of_time() -> None:
    """Each byte begins a new time limit of the socket."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        start = time.monotonic()
        assert "no response within" in sent(f"http://127.0.0.1:{port}", seconds=0.5)
    assert 2 > time.monotonic() - start


def test_a_receiver_that_is_not_there() -> None:
    """The reason has no address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    assert "the connection was refused, after 4 attempts" == sent(f"http://127.0.0.1:{port}")


def test_a_receiver_that_fails_delays_no_other(server: Receiver) -> None:
    """They are sent at the same time."""
    with receiver() as slow:
        slow.answers = [SLOW]
        troubles = deliver([delivery(slow.url), delivery(server.url)], seconds=2, pauses=FAST)

    assert ["no response within 2 seconds", ""] == troubles


def test_nothing_is_sent_without_time(server: Receiver) -> None:
    """And it does not count as delivered."""
    [trouble] = deliver([delivery(server.url)], seconds=0)

    assert trouble in {"no time was left", "no response within 0 seconds"}
    assert [] == server.received


def test_neither_key_nor_path_is_shown() -> None:
    """In a representation, as in a traceback."""
    webhook = delivery("https://hooks.example.com:8443").webhook

    assert "https://hooks.example.com:8443" == webhook.origin
    assert HIDDEN not in repr(delivery("https://hooks.example.com"))
    assert "kkk" not in repr(webhook)


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "hunter2", "whsec_" + b64encode(b"k" * 23).decode(), b64encode(b"k" * 65).decode(), "é" * 40],
)
def test_a_weak_key_is_rejected(secret: str) -> None:
    """The message does not repeat it."""
    with pytest.raises(UsageError) as caught:
        key_of(secret)

    assert "must be whsec_ and 24 to 64 bytes in base64" in str(caught.value)
    assert not secret or secret not in str(caught.value).replace("whsec_", "")


@pytest.mark.parametrize("secret", [SECRET, SECRET.removeprefix("whsec_"), f"{SECRET}\n"])
def test_the_forms_of_a_key(secret: str) -> None:
    """With and without its prefix, as a file has it."""
    assert b"k" * 32 == key_of(secret)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("hooks.example.com", "must be a URL"),
        ("ftp://hooks.example.com", "must be a URL"),
        ("https://", "must be a URL"),
        ("https://h:99999/", "must be a URL"),
        ("https://h/a b", "must be a URL"),
        ("https://h/\n", "must be a URL"),
        ("https://user:s3cr3t@h/", "no user"),
        ("https://h/#a", "no fragment"),
        ("http://h/", "must begin with https"),
    ],
)
def test_a_url_that_is_none_of_a_receiver(url: str, words: str) -> None:
    """Without the URL in the reason."""
    fault = fault_of_url(url, insecure_http=False)

    assert words in fault
    assert "s3cr3t" not in fault


def test_http_must_be_allowed() -> None:
    """Route by route."""
    assert "" == fault_of_url("http://h/", insecure_http=True)
    assert "" == fault_of_url("https://h:8443/a?b=c", insecure_http=False)
