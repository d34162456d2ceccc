"""Simple credentials are read like the official client does, and all others are left to the official client."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kubernetes import client, config

from scanner.cluster.requests import simple_kubeconfig
from scanner.cluster.requests.credentials import load_credentials
from scanner.cluster.requests.simple_kubeconfig import (
    ClientSettings,
    Entries,
    read_service_account,
    read_simple_settings,
)
from scanner.model.json import Json, JsonObject
from tests.cluster.server import FakeApi, Reply
from tests.cluster.test_credentials import credential, plugin

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
NAMES = ("host", "verify_ssl", "cert_file", "key_file", "tls_server_name")
SERVER = {"server": "https://cluster.example:6443/"}


@pytest.fixture
def kubeconfig(tmp_path: Path, without_kubeconfig: Callable[[str, str], None]) -> Callable[..., Path]:
    """Write a kubeconfig beside files that it may name."""
    for name in ("ca.crt", "me.crt", "me.key"):
        (tmp_path / name).write_text(PEM)
    (tmp_path / "token").write_text("from-a-file\n")

    def written(cluster: dict[str, Json], user: dict[str, Json], **rest: Json) -> Path:
        path = tmp_path / "config"
        content: dict[str, Json] = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "shop", "user": "me"}}],
            "clusters": [{"name": "shop", "cluster": cluster}],
            "users": [{"name": "me", "user": user}],
            **rest,
        }
        path.write_text(json.dumps(content))
        return path

    return written


def loaded(path: Path) -> ClientSettings:
    """The settings that were made from a kubeconfig without the official client."""
    settings = load_credentials(str(path), "").configuration
    assert isinstance(settings, ClientSettings)
    return settings


PLAIN: list[tuple[dict[str, Json], dict[str, Json]]] = [
    ({**SERVER}, {"token": "t0ken"}),
    ({**SERVER, "certificate-authority": "ca.crt"}, {"token": "t0ken"}),
    ({**SERVER, "certificate-authority": "ca.crt"}, {"client-certificate": "me.crt", "client-key": "me.key"}),
    ({**SERVER, "insecure-skip-tls-verify": True}, {"token": "t0ken"}),
    ({**SERVER, "insecure-skip-tls-verify": False, "tls-server-name": "api.internal"}, {"token": "t0ken"}),
    ({"server": "http://127.0.0.1:8080"}, {"token": "t0ken"}),
    ({**SERVER, "disable-compression": True, "extensions": [{"name": "x"}]}, {"token": "t0ken", "as": "jane"}),
]


@pytest.mark.parametrize(("cluster", "user"), PLAIN)
def test_plain_settings_are_those_of_the_official_client(
    kubeconfig: Callable[..., Path], cluster: dict[str, Json], user: dict[str, Json]
) -> None:
    """Host, certificates, verification and token are those of the official client."""
    path = kubeconfig(cluster, user)
    official = client.Configuration()
    config.load_kube_config(str(path), client_configuration=official)  # type: ignore[no-untyped-call]  # no annotations
    settings = loaded(path)
    assert {name: getattr(official, name) for name in NAMES} == {name: getattr(settings, name) for name in NAMES}
    assert official.api_key == settings.api_key
    if "certificate-authority" in cluster:
        assert official.ssl_ca_cert == settings.ssl_ca_cert


def test_a_token_file_is_read_without_its_line_break(kubeconfig: Callable[..., Path]) -> None:
    """A header cannot hold one."""
    assert {"BearerToken": "Bearer from-a-file"} == loaded(kubeconfig(SERVER, {"tokenFile": "token"})).api_key


def test_an_embedded_authority_needs_no_file(kubeconfig: Callable[..., Path]) -> None:
    """The certificate is used without a file."""
    data = base64.b64encode(PEM.encode()).decode()
    settings = loaded(kubeconfig({**SERVER, "certificate-authority-data": data}, {"token": "t"}))
    assert (PEM, None) == (settings.ca_cert_data, settings.ssl_ca_cert)


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        (SERVER, {"username": "u", "password": "p"}),
        (SERVER, {"client-certificate-data": "eA==", "client-key-data": "eA=="}),
        (SERVER, {"client-certificate": "/me.crt"}),
        (SERVER, {}),
        (SERVER, {"token": 7}),
        ({**SERVER, "proxy-url": "http://proxy.example"}, {"token": "t"}),
        ({**SERVER, "certificate-authority-data": "!"}, {"token": "t"}),
        ({"server": "cluster.example"}, {"token": "t"}),
        ({"server": "http://127.0.0.1", "certificate-authority": "/ca.crt"}, {"token": "t"}),
        ({}, {"token": "t"}),
    ],
)
def test_what_is_not_plain_is_left_to_the_official_client(cluster: dict[str, Json], user: dict[str, Json]) -> None:
    """These are proxies, passwords, embedded keys, and missing or unusual values."""
    assert read_simple_settings(Entries({}, {"cluster": cluster}, {"user": user})) is None


def test_a_proxy_in_the_environment_is_left_to_the_official_client(
    without_kubeconfig: Callable[[str, str], None],
) -> None:
    """The official client decides for which hosts a proxy applies."""
    without_kubeconfig("HTTPS_PROXY", "http://proxy.example")
    assert read_simple_settings(Entries({}, {"cluster": SERVER}, {"user": {"token": "t"}})) is None


def test_a_pods_account_is_read_again_every_minute(
    tmp_path: Path, without_kubeconfig: Callable[[str, str], None]
) -> None:
    """The cluster rotates the token in the file."""
    (tmp_path / "ca.crt").write_text(PEM)
    (tmp_path / "token").write_text("first")
    without_kubeconfig("KUBERNETES_SERVICE_HOST", "fd00::1")
    without_kubeconfig("KUBERNETES_SERVICE_PORT", "443")
    settings = read_service_account(tmp_path)
    assert settings is not None
    assert ("https://[fd00::1]:443", "Bearer first") == (settings.host, settings.api_key["BearerToken"])
    (tmp_path / "token").write_text("second")
    moments = iter([0.0, 59.0, 61.0, 61.0])
    refresh = simple_kubeconfig.make_token_hook(tmp_path / "token", lambda: next(moments))
    refresh(settings)
    assert "Bearer first" == settings.api_key["BearerToken"]
    refresh(settings)
    assert "Bearer second" == settings.api_key["BearerToken"]


@pytest.mark.parametrize("source", ["token", "tokenFile", "exec"])
def test_a_scan_with_a_token_does_without_the_official_client(api: FakeApi, tmp_path: Path, source: str) -> None:
    """From the kubeconfig, a file or a plugin: the import of the official client can take longer than a scan."""
    (tmp_path / "token").write_text("from-a-file")
    printed = plugin(tmp_path, f"echo '{credential('from-a-plugin')}'")
    user: JsonObject = {"token": {"token": "t"}, "tokenFile": {"tokenFile": "token"}, "exec": printed}[source]
    api.says("/version", Reply({"gitVersion": "v1.36.0"}))
    program = (
        "import sys; from scanner.cluster.live.cluster import LiveCluster; "
        f"LiveCluster(kubeconfig={api.kubeconfig(tmp_path, user)!r}).identity(); print('kubernetes' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "False\n" == ran.stdout


def test_entries_of_several_files_need_no_official_client(
    kubeconfig: Callable[..., Path], tmp_path: Path, without_kubeconfig: Callable[[str, str], None]
) -> None:
    """They are chosen before settings are made from them."""
    first = tmp_path / "first"
    first.write_text(json.dumps({"clusters": [{"name": "shop", "cluster": {"server": "https://first.example"}}]}))
    without_kubeconfig("KUBECONFIG", f"{first}:{kubeconfig(SERVER, {'token': 't'})}")
    settings = load_credentials("", "").configuration
    assert isinstance(settings, ClientSettings)
    assert ("https://first.example", {"BearerToken": "Bearer t"}) == (settings.host, settings.api_key)


def test_settings_stand_for_a_configuration(kubeconfig: Callable[..., Path]) -> None:
    """Settings have the attributes of the official client's configuration."""
    credentials = load_credentials(str(kubeconfig(SERVER, {"token": "t0ken", "as": "jane"})), "")
    assert isinstance(credentials.configuration, ClientSettings)
    assert ("shop", "Bearer t0ken", "jane") == (
        credentials.cluster,
        credentials.get_authorization(),
        credentials.as_user,
    )
