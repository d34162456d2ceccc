"""A server or a proxy that repeats a request gets the credentials into no message: each kind of credential, each kind of answer."""

from __future__ import annotations

import json
import socket
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from scanner.audit.own_secrets import OwnSecrets
from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.requests.credentials import Credentials
from scanner.cluster.requests.session import ApiSession, NoResponse
from scanner.cluster.requests.simple_kubeconfig import ClientSettings
from scanner.errors import ClusterError, ListFailed
from scanner.model.json import Json, JsonObject
from scanner.model.resource import Kind
from tests.cluster.server import FakeApi, ReceivedRequest, Reply, listing, refusal
from tests.cluster.test_credentials import credential, plugin

CANARY = "hidden-own-cred3ntial"
PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
KEY = f"-----BEGIN PRIVATE KEY-----\n{b64encode(CANARY.encode() * 9).decode()[:64]}\n{CANARY}\n-----END PRIVATE KEY-----\n"
Account = Callable[[FakeApi, Path], str]
"""Makes a kubeconfig, and returns its path."""


def _token_file(api: FakeApi, folder: Path) -> str:
    (folder / "token").write_text(f"{CANARY}\n")
    return api.kubeconfig(folder, {"tokenFile": str(folder / "token")})


def _with_user_in_url(api: FakeApi, folder: Path) -> str:
    return api.kubeconfig(folder, {"token": "another"}, server=api.url.replace("://", f"://me:{CANARY}@"))


def _with_proxy(api: FakeApi, folder: Path) -> str:
    proxy = api.url.replace("://", f"://me:{CANARY}@")
    return api.kubeconfig(folder, {"token": "another"}, server="http://cluster.invalid", **{"proxy-url": proxy})


def _certificate(api: FakeApi, folder: Path) -> str:
    return api.kubeconfig(folder, {"client-key-data": b64encode(KEY.encode()).decode(), "token": "another"})


ACCOUNTS: Mapping[str, Account] = {
    "token": lambda api, folder: api.kubeconfig(folder, {"token": CANARY}),
    "token file": _token_file,
    "user and password": lambda api, folder: api.kubeconfig(folder, {"username": "me", "password": CANARY}),
    "plugin": lambda api, folder: api.kubeconfig(folder, plugin(folder, f"echo '{credential(CANARY)}'")),
    "user in the URL": _with_user_in_url,
    "user of the proxy": _with_proxy,
    "client certificate": _certificate,
}


def repeated(request: ReceivedRequest) -> str:
    """The headers of a request, and what is in them in base64: a server decodes it, too."""
    values = [value for name, value in request.headers if "authorization" in name]
    basic = [b64decode(value.partition(" ")[2]).decode() for value in values if value.startswith("Basic ")]
    return f"{dict(request.headers)} {basic} {KEY}"


ANSWERS: Mapping[str, Callable[[str], Reply]] = {
    "an error as text": lambda text: Reply(text.encode(), 502),
    "an error as text behind a long one": lambda text: Reply(f"{'x' * 150}{text}".encode(), 400),
    "a Status": lambda text: refusal(500, text),
    "a Status of a refusal": lambda text: refusal(403, f'User "{text}" cannot list resource "pods"'),
    "a Status in capitals": lambda text: refusal(409, text.upper()),
    "an error for a URL": lambda text: Reply(quote(text).encode(), 400),
    "an error in base64": lambda text: Reply(b64encode(text.encode()), 400),
    "an expired list": lambda text: refusal(410, text),
    "a list of another kind": lambda text: Reply({"kind": text, "apiVersion": text, "metadata": {}, "items": []}),
    "objects of another kind": lambda text: Reply(
        {
            **json.loads(listing("Pod", "a").data),
            "items": [{"kind": f"{'x' * 60}{text}", "metadata": {"name": "a", "namespace": "b"}}],
        }
    ),
    "no list": lambda text: Reply(text.encode()),
}


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_failed_list_does_not_repeat_the_credentials(api: FakeApi, tmp_path: Path, account: str, answer: str) -> None:
    """Neither as they are nor in another form; the reason stays."""
    api.serve = lambda request: ANSWERS[answer](repeated(request))
    cluster = LiveCluster(kubeconfig=ACCOUNTS[account](api, tmp_path), sleep=lambda _: None)
    told = _told(cluster)
    assert api.requests
    assert "" == _leaked(told)


def _told(cluster: LiveCluster) -> str:
    try:
        return "".join(f"{page.inconsistency}" for page in cluster.pages(PODS))
    except ListFailed as error:
        return str(error)


def _leaked(text: str) -> str:
    """The text, if it has a long part of the canary in any form; else an empty one."""
    forms = [CANARY, b64encode(CANARY.encode()).decode()[:-4], b64encode(f"me:{CANARY}".encode()).decode(), KEY[28:60]]
    return text if any(form.lower()[:12] in text.lower() for form in forms) else ""


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("path", ["/version", "/api", "/apis", "/apis/authentication.k8s.io/v1/selfsubjectreviews"])
def test_no_answer_that_names_the_cluster_repeats_the_credentials(
    api: FakeApi, tmp_path: Path, account: str, path: str
) -> None:
    """Versions, names of groups and of kinds, and the name of the user are texts of the server as well."""

    def serve(request: ReceivedRequest) -> Reply:
        text = repeated(request)
        group: JsonObject = {"metadata": {"name": text}, "versions": [{"version": "v1", "freshness": "Stale"}]}
        documents: Mapping[str, Json] = {
            "/version": {"gitVersion": text},
            "/api": {"kind": "APIGroupDiscoveryList", "items": [group]},
            "/apis": {"kind": "APIGroupDiscoveryList", "items": [group, {**group, "versions": [{"version": text}]}]},
            "/apis/authentication.k8s.io/v1/selfsubjectreviews": {"status": {"userInfo": {"username": text}}},
        }
        return Reply(documents.get(request.path, {}), 201 if request.method == "POST" else 200)

    api.serve = serve
    cluster = LiveCluster(kubeconfig=ACCOUNTS[account](api, tmp_path), sleep=lambda _: None)
    told: Callable[[], str] = {
        "/version": lambda: cluster.identity().server_version,
        "/api": lambda: str(cluster.discover()),
        "/apis": lambda: str(cluster.discover()),
    }.get(path, lambda: str(cluster.requester()))
    try:
        text = told()
    except ClusterError as error:
        text = str(error)
    assert api.requests
    assert "" == _leaked(text)


def test_headers_and_a_line_that_is_no_status_do_not_repeat_the_token(api: FakeApi, tmp_path: Path) -> None:
    """The warnings and dates of an answer, and what a broken server sends instead of one."""
    api.serve = lambda request: Reply(
        {}, headers={"Warning": f'299 - "{dict(request.headers)}"', "Retry-After": CANARY}
    )
    session = ApiSession(kubeconfig=api.kubeconfig(tmp_path, {"token": CANARY}), sleep=lambda _: None)
    answer = session.get("/version")
    assert ("", "[redacted]", True) == (_leaked(str(answer.warnings)), answer.retry_after, bool(answer.warnings))

    api.serve = lambda _: Reply({}, status=f"{CANARY} 200")  # type: ignore[arg-type]
    with pytest.raises(NoResponse) as refused:
        session.get("/version", attempts=1)
    assert "" == _leaked(str(refused.value))


BROKEN = {
    "no status": "{0}\r\n\r\n",
    "a status that is none": "HTTP/1.1 {0} OK\r\n\r\n",
    "a header that is none": "HTTP/1.1 200 OK\r\n{0}\r\n\r\n",
    "a chunk that is none": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{0}\r\n",
    "a length that is none": "HTTP/1.1 200 OK\r\nContent-Length: {0}\r\n\r\n",
    "a compression that is none": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 300\r\n\r\n{0}"
    + "x" * 300,
    "a reason": "HTTP/1.1 407 no {0}\r\n\r\n",
}


@pytest.mark.parametrize("tunnel", [False, True], ids=["a server", "a proxy before TLS"])
@pytest.mark.parametrize("broken", BROKEN)
def test_an_answer_that_is_no_http_does_not_repeat_the_credentials(
    tmp_path: Path,
    broken: str,
    tunnel: bool,  # noqa: FBT001
) -> None:
    """The errors of a client quote what it could not read, such as the reason for which a proxy makes no tunnel."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(BROKEN[broken].format(f"{CANARY} {basic}").encode())

        basic = b64encode(f"me:{CANARY}".encode()).decode()
        thread = Thread(target=serve)
        thread.start()
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        through = {"proxy-url": f"http://me:{CANARY}@{place}"} if tunnel else {}
        path = FakeApi("https://cluster.invalid" if tunnel else f"http://{place}").kubeconfig(
            tmp_path, {"token": CANARY}, **through
        )
        session = ApiSession(kubeconfig=path, sleep=lambda _: None)
        try:
            told = session.get("/version", attempts=1).message()
        except NoResponse as error:
            told = str(error)
        thread.join()
    assert told
    assert "" == _leaked(told)


def test_a_token_that_was_renewed_is_masked_as_well(api: FakeApi, tmp_path: Path) -> None:
    """Both: a proxy may answer with an earlier request."""
    path = Path(api.kubeconfig(tmp_path, {"token": f"first-{CANARY}"}))
    session = ApiSession(kubeconfig=str(path), sleep=lambda _: None)
    path.write_text(path.read_text().replace("first-", "second-"))
    api.says("/version", refusal(401, "expired"), refusal(409, f"first-{CANARY} and second-{CANARY}"))
    assert "[redacted] and [redacted]" == session.get("/version").message()


def test_the_key_of_a_certificate_in_a_file_is_a_secret(tmp_path: Path) -> None:
    """No request has it, but a program before the server may."""
    (tmp_path / "key.pem").write_text(KEY)
    settings = ClientSettings(
        "https://cluster.example", key_file=str(tmp_path / "key.pem"), cert_file=str(tmp_path / "crt.pem")
    )
    secrets = OwnSecrets(*Credentials("shop", settings).list_secrets())
    assert "key [redacted] [redacted]" == secrets.mask(" ".join(["key", *KEY.splitlines()[1:3]]))


def test_an_object_keeps_a_token_of_this_user(api: FakeApi, tmp_path: Path) -> None:
    """A Secret can hold it: policies evaluate what the cluster has, and a dry run must send it back as it is."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path, {"token": CANARY}))
    data = b64encode(CANARY.encode()).decode()
    api.says(
        "/api/v1/namespaces/shop/secrets/a",
        Reply({"kind": "Secret", "metadata": {"name": "a"}, "data": {"token": data}}),
    )
    kind = Kind("", "v1", "Secret", "secrets", namespaced=True)
    body = cluster.dry_runs().read(kind, "shop", "a")
    assert body is not None
    assert {"token": data} == body["data"]
