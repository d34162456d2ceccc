"""The files of a kubeconfig: regular ones of a limited size, of any content, and logins that a scan uses as they are."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.requests.credentials import load_credentials
from scanner.cluster.requests.transport import make_pool
from scanner.errors import AssayError, ClusterError
from scanner.model.json import Json
from tests.cluster.server import FakeApi
from tests.cluster.test_credential_plugin import GIVEN, SECONDS
from tests.cluster.test_credentials import Environment, plugin
from tests.cluster.test_simple_kubeconfig import PEM


def _jwt(claims: Json) -> str:
    return ".".join(
        base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b"{}", json.dumps(claims).encode(), b"s")
    )


@pytest.mark.parametrize("claims", [{}, {"exp": 4_102_444_800}, {"exp": 4_102_444_800.5}])
def test_the_token_of_an_openid_provider_is_used(api: FakeApi, tmp_path: Path, claims: Json) -> None:
    """A token that has not expired needs no request to the provider."""
    user: Json = {"name": "oidc", "config": {"id-token": _jwt(claims), "idp-issuer-url": api.url}}
    credentials = load_credentials(api.kubeconfig(tmp_path, {"auth-provider": user}), "")
    assert (f"Bearer {_jwt(claims)}", []) == (credentials.get_authorization(), api.requests)


def test_an_expired_token_of_an_openid_provider_is_not_renewed(api: FakeApi, tmp_path: Path) -> None:
    """A refresh token is often accepted once, and kubectl could not renew the login any more."""
    config: Json = {"id-token": _jwt({"exp": 1}), "idp-issuer-url": api.url, "refresh-token": "r", "client-id": "c"}
    with pytest.raises(
        ClusterError, match=r"oidc of user me has expired, and a scan renews none\. Renew it with `kubectl version`"
    ):
        load_credentials(api.kubeconfig(tmp_path, {"auth-provider": {"name": "oidc", "config": config}}), "")
    assert [] == api.requests


@pytest.mark.parametrize(
    "claims", [None, [], "text", 7, {"exp": "soon"}, {"exp": None}, {"exp": -1}, {"exp": 10**30}, "[" * 100_000]
)
def test_any_token_of_an_openid_provider_is_a_token_or_one_sentence(api: FakeApi, tmp_path: Path, claims: Json) -> None:
    """Nothing in it is an internal error."""
    user: Json = {"name": "oidc", "config": {"id-token": _jwt(claims)}}
    with suppress(ClusterError):
        assert load_credentials(api.kubeconfig(tmp_path, {"auth-provider": user}), "").get_authorization()


def pipe(path: Path) -> None:
    """A named pipe."""
    os.mkfifo(path)


def endless(path: Path) -> None:
    """A link to a device that never ends."""
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    """A file of a terabyte that takes no space."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


def large(path: Path) -> None:
    """A file of nine megabytes."""
    path.write_bytes(b"#" * (9 << 20))


def folder(path: Path) -> None:
    """A folder."""
    path.mkdir()


def binary(path: Path) -> None:
    """A file that is no text."""
    path.write_bytes(b"\xff\xfe\0")


SPECIAL = [
    (pipe, "it is a named pipe; name a regular file"),
    (endless, "it is a device; name a regular file"),
    (sparse, "it has more than 8 MiB"),
    (large, "it has more than 8 MiB"),
    (folder, "Is a directory"),
]


@pytest.mark.parametrize(("make", "why"), [*SPECIAL, (binary, "it is no text in UTF-8")])
@pytest.mark.parametrize("how", ["flag", "variable", "beside another"])
def test_a_kubeconfig_that_is_no_regular_file_is_refused(
    api: FakeApi,
    tmp_path: Path,
    without_kubeconfig: Environment,
    make: Callable[[Path], None],
    why: str,
    how: str,
) -> None:
    """At once, and in one sentence with the path."""
    path = tmp_path / "special"
    make(path)
    if how != "flag":
        without_kubeconfig("KUBECONFIG", f"{api.kubeconfig(tmp_path)}:{path}" if how == "beside another" else str(path))

    with pytest.raises(
        ClusterError,
        match=f"the kubeconfig {path} cannot be read: {why}. Correct it, or name another with --kubeconfig",
    ):
        LiveCluster(kubeconfig=str(path) if how == "flag" else "")


@pytest.mark.parametrize(("make", "why"), SPECIAL)
@pytest.mark.parametrize("key", ["certificate-authority", "client-certificate", "client-key", "tokenFile"])
def test_a_file_of_a_kubeconfig_that_is_no_regular_file_is_refused(
    api: FakeApi, tmp_path: Path, make: Callable[[Path], None], why: str, key: str
) -> None:
    """The sentence names the field, the path and the entry."""
    path = tmp_path / "special"
    make(path)
    is_cluster = key == "certificate-authority"
    (tmp_path / "other").write_text(PEM)
    user: dict[str, Json] = (
        {"client-certificate": "other", "client-key": "other"} if key.startswith("client") else {"token": "t"}
    )
    user = {"tokenFile": "special"} if key == "tokenFile" else user if is_cluster else {**user, key: "special"}
    cluster: dict[str, Json] = {key: "special"} if is_cluster else {}
    owner = "cluster shop" if is_cluster else "user me"

    with pytest.raises(
        ClusterError, match=f"the {key} {path} of {owner} cannot be read: {why}. Correct the kubeconfig"
    ):
        load_credentials(api.kubeconfig(tmp_path, user, server="https://shop.example", **cluster), "")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="lists"),
        pytest.param("{a: " * 100_000, id="objects"),
        pytest.param(
            "a: &a [b]\n"
            + "".join(
                f"a{n}: &x{n} [{'*x' + str(n - 1) if n else '*a'}, {'*x' + str(n - 1) if n else '*a'}]\n"
                for n in range(60)
            ),
            id="aliases",
        ),
        pytest.param(
            "a0: &x0 {k: v}\n" + "".join(f"a{n}: &x{n} {{<<: [*x{n - 1}, *x{n - 1}]}}\n" for n in range(1, 60)),
            id="merge keys",
        ),
        pytest.param("users: *s3cret", id="unknown anchor"),
        pytest.param("users: !!s3cret x", id="tag"),
        pytest.param("users: {s3cret: [", id="cut short"),
    ],
)
def test_a_hostile_kubeconfig_is_one_sentence_in_time(tmp_path: Path, text: str) -> None:
    """Without what the parser quotes."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    started = time.monotonic()

    with pytest.raises(ClusterError, match=f"the kubeconfig {path} ") as caught:
        LiveCluster(kubeconfig=str(path))

    assert "s3cret" not in str(caught.value)
    assert time.monotonic() - started < 5


def test_the_null_device_is_an_empty_kubeconfig(without_kubeconfig: Environment) -> None:
    """Scripts set KUBECONFIG=/dev/null to use none."""
    without_kubeconfig("KUBECONFIG", os.devnull)
    with pytest.raises(ClusterError, match="no cluster to scan: the kubeconfig /dev/null is empty"):
        LiveCluster()


ODD: tuple[Json, ...] = (None, 0, -1, 1.5, True, "", [], {}, "\0", "x" * 1000, [[]], {"a": {}}, ["x", 1], 10**30)
ODD_FILES: tuple[Json, ...] = ("pipe", "folder", "/dev/zero", "missing", "ca.crt")
ODD_URLS: tuple[Json, ...] = ("https://[", "https://", "socks5://x:1", "http://a:b", "https://é")


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all parts of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield (*above, key)
        yield from places(part, (*above, key))


def spoiled(document: Any, chance: Random) -> Any:
    """A document in which some parts are missing, or are something else."""
    copy = json.loads(json.dumps(document))
    for _ in range(chance.randint(1, 4)):
        *above, last = chance.choice([*places(copy)])
        part = copy
        for key in above:
            part = part[key]
        if chance.random() < 0.3:
            del part[last]
        else:
            part[last] = chance.choice(ODD + ODD_FILES + ODD_URLS)
    return copy


@pytest.mark.parametrize("seed", range(6))
def test_any_kubeconfig_is_credentials_or_one_sentence(api: FakeApi, tmp_path: Path, seed: int) -> None:
    """Nothing in it is an internal error, waits, or is read without a limit."""
    for name in ("ca.crt", "me.crt", "me.key", "token"):
        (tmp_path / name).write_text(PEM)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    sources: list[dict[str, Json]] = [
        {**plugin(tmp_path, GIVEN)},
        {"tokenFile": "token", "as": "jane", "as-groups": ["readers"]},
        {"client-certificate": "me.crt", "client-key": "me.key"},
        {"username": "u", "password": "p"},
        {"auth-provider": {"name": "oidc", "config": {"id-token": _jwt({})}}},
        {"token": "t", "client-certificate-data": "eA==", "client-key-data": "eA=="},
    ]
    cluster: dict[str, Json] = {
        "certificate-authority": "ca.crt",
        "proxy-url": "http://127.0.0.1:1",
        "tls-server-name": "shop",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "shop"}}],
    }
    path = Path(api.kubeconfig(tmp_path, sources[seed], server="https://shop.example", **cluster))
    document, chance = json.loads(path.read_text()), Random(seed)

    for _ in range(150):
        path.write_text(json.dumps(spoiled(document, chance)))
        with suppress(AssayError):
            make_pool(load_credentials(str(path), "", seconds=SECONDS))
