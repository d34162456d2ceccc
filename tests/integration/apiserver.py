"""kube-apiserver and etcd on loopback, for as long as a block lasts.

The binaries come from the directory that KUBEBUILDER_ASSETS names, as envtest expects them. The switches are those under
which the conformance cases were recorded: RBAC, every API version served, and without the admission plugins that would
add volumes, taints or refusals of their own. No controllers run: nothing fills in a status, gives a ReplicaSet its pods
or finishes the deletion of a namespace. Tests in controllers/ enable the plugins, and run the controllers.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import urllib3

from scanner.model.json import JsonObject
from tests.integration.client import Answer, Client
from tests.integration.processes import NotStartedError, Server, free_port, serving

ADMIN = "admin"
USERS = {ADMIN: "system:masters", "auditor": "auditors", "guest": "guests"}
SECONDS_TO_READY = 90.0
WITHOUT_PLUGINS = ("ServiceAccount", "TaintNodesByCondition", "PodSecurity")
"""Admission plugins that would change or deny the objects of most tests."""
RARE_COLLECTION = {"GOGC": "off", "GOMEMLIMIT": "768MiB"}
"""Settings of Go's garbage collector: an API server that starts runs it a dozen times, for a quarter of the CPU time."""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running API server: where it is, whom it trusts, and how to talk to it."""

    url: str
    ca: Path
    tokens: Mapping[str, str]
    directory: Path
    client: Client
    store: str
    """URL of its etcd."""
    resources: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    """The resources that discovery has shown, by API version's path and kind."""

    @property
    def token(self) -> str:
        """The token of the administrator."""
        return self.tokens[ADMIN]

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file whose current context is the administrator's."""
        return self.kubeconfig_for(ADMIN)

    def kubeconfig_for(self, user: str, *, token: str | None = None) -> Path:
        """A kubeconfig file for one of USERS, or for anyone who holds `token`."""
        path = self.directory / f"kubeconfig-{user}"
        path.write_text(json.dumps(self._kubeconfig(user, token or self.tokens[user])))
        path.chmod(0o600)
        return path

    def request(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        params: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        """Send one request, by default as the administrator."""
        return self.client.request(method, path, body, params, token=token)

    def _kubeconfig(self, user: str, token: str) -> JsonObject:
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": user, "context": {"cluster": "test", "user": user}}],
            "current-context": user,
        }


@contextmanager
def running(
    assets: Path,
    directory: Path,
    *,
    flags: Sequence[str] = (),
    variables: Mapping[str, str] = RARE_COLLECTION,
    without_plugins: Sequence[str] = WITHOUT_PLUGINS,
) -> Iterator[ApiServer]:
    """Start etcd and kube-apiserver from `assets`, keeping their files in `directory`.

    `flags` are added to the command line of kube-apiserver, `variables` to its environment; `without_plugins` are the
    admission plugins that are disabled. Raises NotStartedError, with
    the end of the log, when the server is not ready in time; both processes are gone when the block is left, however it
    is left.
    """
    _reject_missing_programs(assets)
    tokens = {user: secrets.token_urlsafe(16) for user in USERS}
    etcd_url = f"http://127.0.0.1:{free_port()}"
    port = free_port()
    with (
        serving(_etcd_command(assets, directory, etcd_url), directory / "etcd.log") as etcd,
        serving(
            [
                *_apiserver_command(assets, directory, etcd_url, port, tokens),
                f"--disable-admission-plugins={','.join(without_plugins)}",
                *flags,
            ],
            directory / "kube-apiserver.log",
            variables=variables,
        ) as apiserver,
    ):
        yield _when_ready(directory, port, tokens, [etcd, apiserver], etcd_url)


def _reject_missing_programs(assets: Path) -> None:
    for name in ("etcd", "kube-apiserver"):
        if not (assets / name).is_file():
            raise NotStartedError(
                f"{assets / name} is missing: KUBEBUILDER_ASSETS must name the directory that holds it"
            )


def _etcd_command(assets: Path, directory: Path, url: str) -> list[str | Path]:
    peer = f"http://127.0.0.1:{free_port()}"
    return [
        assets / "etcd",
        f"--data-dir={directory / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]


def _apiserver_command(
    assets: Path, directory: Path, etcd_url: str, port: int, tokens: Mapping[str, str]
) -> list[str | Path]:
    # The server makes its own certificate before it reads the key for service account tokens, so that one key can serve
    # both and the tests need no tool that makes keys.
    key = _certificates(directory) / "apiserver.key"
    return [
        assets / "kube-apiserver",
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={_certificates(directory)}",
        "--authorization-mode=RBAC",
        f"--token-auth-file={_written_tokens(directory, tokens)}",
        "--runtime-config=api/all=true",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
    ]


def _certificates(directory: Path) -> Path:
    return directory / "certificates"


def _written_tokens(directory: Path, tokens: Mapping[str, str]) -> Path:
    path = directory / "tokens.csv"
    path.write_text("".join(f'{token},{user},{user},"{USERS[user]}"\n' for user, token in tokens.items()))
    path.chmod(0o600)
    return path


def _when_ready(
    directory: Path, port: int, tokens: Mapping[str, str], servers: Sequence[Server], store: str
) -> ApiServer:
    url, ca = f"https://127.0.0.1:{port}", _certificates(directory) / "apiserver.crt"
    deadline = time.monotonic() + SECONDS_TO_READY
    while time.monotonic() < deadline:
        for server in servers:
            server.reject_ended()
        client = Client.trusting(ca, url=url, token=tokens[ADMIN])
        if ca.exists() and _is_ready(client):
            return ApiServer(url=url, ca=ca, tokens=tokens, directory=directory, client=client, store=store)
        time.sleep(0.05)
    raise servers[-1].trouble(f"was not ready within {SECONDS_TO_READY:.0f} s")


def _is_ready(client: Client) -> bool:
    try:
        return client.request("GET", "/readyz").status == 200
    except urllib3.exceptions.HTTPError:
        return False
