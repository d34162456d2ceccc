"""No credential that Assay sends comes out again: each kind of credential, each output, and a server that repeats what it gets."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import orjson
import pytest

from scanner.model.json import as_list, dig
from scanner.report import FORMATS, Format
from tests.cli.conftest import Assay
from tests.cluster.served import MAPS, shop
from tests.cluster.server import FakeApi, ReceivedRequest, Reply, serving
from tests.cluster.test_own_credentials import ACCOUNTS, CANARY, KEY
from tests.command import Ran
from tests.notify.gateway import Gateway, gateway
from tests.notify.receiver import Receiver, receiver
from tests.thorough import FULL

pytestmark = pytest.mark.long

GATEWAY = "gateway-own-p4ssword"
GATEWAY_PATH = "gateway-own-p4th"
HOOK_PATH = "hook-own-p4th"
HOOK_KEY = f"whsec_{b64encode(b'hook-own-k3y-of-thirty-two-bytes').decode()}"
EXTRA = "extra-own-v4lue"
USER = "uid-own-v4lue"
SENT = (CANARY, KEY[28:60], GATEWAY, GATEWAY_PATH, HOOK_PATH, HOOK_KEY[6:], "hook-own-k3y", EXTRA, USER)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A cluster whose policy every object violates, and whose proxy repeats the requests that it cannot answer."""
    with serving() as server:
        server.serve = shop(3)
        server.spoil("/api/v1/namespaces", _with_warning)
        yield server


@pytest.fixture
def pushes() -> Iterator[Gateway]:
    """A Pushgateway that rejects what it gets."""
    with gateway() as running:
        yield running


@pytest.fixture
def hooks() -> Iterator[Receiver]:
    """A receiver of notifications that sends to another address."""
    with receiver() as running:
        yield running


def _headers(request: ReceivedRequest) -> str:
    values = [value for name, value in request.headers if "authorization" in name]
    decoded = [b64decode(value.partition(" ")[2]).decode() for value in values if value.startswith("Basic ")]
    text = f"{dict(request.headers)} {decoded} {KEY} {EXTRA if EXTRA in request.body.decode() else ''}"
    return f"{text} {quote(text)} {b64encode(text.encode()).decode()}"


def _with_warning(reply: Reply, request: ReceivedRequest) -> Reply:
    return Reply(reply.body, reply.status, {"Warning": f'299 - "{_headers(request)[:300]}"'})


def _repeated(_reply: Reply, request: ReceivedRequest) -> Reply:
    return Reply(f"no upstream: {_headers(request)}".encode(), 400)


def leaked(*outputs: bytes) -> set[str]:
    """What of the credentials is in some outputs: as it is, in any case, in base64, and as in a URL."""
    data = b"\n".join(outputs).lower()
    return {
        secret
        for secret in SENT
        for form in (
            secret,
            quote(secret, safe=""),
            *(b64encode(lead + secret.encode()).decode()[4:-4] for lead in (b"", b"x", b"xx")),
        )
        if form.lower().encode() in data
    }


@pytest.mark.parametrize(
    "leak", [CANARY.upper(), b64encode(f"me:{CANARY}".encode()).decode(), quote(HOOK_KEY[6:], safe="")]
)
def test_a_credential_is_recognised(leak: str) -> None:
    """The search finds what it must not find."""
    assert leaked(f"<td>{leak}</td>".encode())


@pytest.mark.parametrize("account", ACCOUNTS)
def test_no_output_has_a_credential(
    assay: Assay,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    api: FakeApi,
    pushes: Gateway,
    hooks: Receiver,
    account: str,
) -> None:
    """Streams, logs, the database, reports of every format, metrics, notifications, the register and the configuration."""
    (home / "account").mkdir()
    (home / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(home / "temporary"))
    monkeypatch.setenv("HOOK_KEY", HOOK_KEY)
    pushes.status, hooks.status = 400, 302
    pushes.location = hooks.location = f"{hooks.url}/{HOOK_PATH}"
    route = {"name": "all", "url": f"{hooks.url}/{HOOK_PATH}", "keyVariable": "HOOK_KEY", "insecureHttp": True}
    (home / "assay.yaml").write_text(
        json.dumps(
            {
                "notifications": [route],
                "pushMetrics": f"{pushes.url.replace('://', f'://me:{GATEWAY}@')}/{GATEWAY_PATH}",
                "asUser": "jane",
                "asUserExtra": [f"session-token={EXTRA}"],
                "asUserUid": USER,
            }
        )
    )
    kubeconfig = ACCOUNTS[account](api, home / "account")
    known = {path for path in home.rglob("*") if path.is_file()}
    ran = list(_commands(assay, api, kubeconfig, FORMATS if FULL or account == "token" else {"json": FORMATS["json"]}))

    listed = as_list(dig(orjson.loads(ran[1].stdout), "gaps"))
    assert "[redacted]" in str(listed)
    assert len(hooks.received) > 0
    assert len(pushes.pushes) > 0
    written = [path.read_bytes() for path in home.rglob("*") if path.is_file() and path not in known]
    received = [push.text.encode() for push in pushes.pushes] + [each.content for each in hooks.received]
    printed = [output for each in ran for output in (each.stdout, each.stderr.encode())]
    assert len(written) > len(FORMATS)
    assert set() == leaked(*printed, *written, *received)


def _commands(assay: Assay, api: FakeApi, kubeconfig: str, formats: Mapping[str, Format]) -> Iterator[Ran]:
    """A complete scan, two whose list of ConfigMaps fails with a repeated request, and all that shows them.

    The reports are those of the database, which has no credential of any account: those of one account have every format.
    """
    scan: tuple[str, ...] = (
        "scan",
        "--kubeconfig",
        kubeconfig,
        "--db",
        "assay.db",
        "--cluster-name",
        "shop",
        "--as-user-extra",
        f"session-token={EXTRA}",
    )
    scan = (*scan, "--as-user", "jane", f"--as-user-uid={USER}", "--termination-log", "last-words")
    yield assay(*scan, "-q")
    api.serve = shop(5)
    api.spoil(MAPS.path, _repeated)
    yield assay(*scan, "-v", "-o", "json")
    yield assay(*scan, "--log-format", "json", "--html", "site", "--export", "openmetrics=metrics", "-v")
    for name, form in formats.items():
        if form.target != "folder":
            yield assay("report", "last", "--db", "assay.db", "-o", name)
    for command in (("runs", "3"), ("runs", "-o", "json"), ("config", "view"), ("config", "view", "-o", "json")):
        yield assay(*command, *([] if command[0] == "config" else ["--db", "assay.db"]))
    yield assay("rbac", "check", "--kubeconfig", kubeconfig)
    api.spoil("/version", _repeated)
    yield assay(*scan, "--log-format", "json")
