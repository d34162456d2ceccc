"""Facts about finding a cluster and its credentials, and about what is said when that fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.cluster.live import LiveCluster
from scanner.cluster.transport import without_password
from scanner.errors import AssayError, ClusterError, UsageError
from scanner.model.json import JsonObject
from tests.cluster.server import FakeApi, Reply, listing, refusal
from tests.cluster.test_live import PODS, names

Environment = Callable[[str, str], None]


def plugin(folder: Path, script: str) -> JsonObject:
    """The exec section of a user whose credentials a script prints."""
    command = folder / "plugin"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o700)
    return {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(command), "interactiveMode": "Never"}
    }


def credential(token: str) -> str:
    """What a plugin prints."""
    status = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
    return json.dumps(status)


def test_of_several_kubeconfigs_the_first_that_says_so_wins(
    api: FakeApi, tmp_path: Path, without_kubeconfig: Environment
) -> None:
    """KUBECONFIG may name several files; current-context, clusters and users come from the first that has them."""
    second = api.kubeconfig(tmp_path)
    first = tmp_path / "first"
    first.write_text(json.dumps({"clusters": [{"name": "shop", "cluster": {"server": f"{api.url}/first"}}]}))
    third = tmp_path / "third"
    third.write_text(json.dumps({"current-context": "elsewhere"}))
    without_kubeconfig("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}:{third}")
    api.says("/first/api/v1/pods", listing("Pod", "a"))
    assert [["a"]] == names(LiveCluster().pages(PODS))


def test_the_context_can_be_chosen(api: FakeApi, tmp_path: Path) -> None:
    """--context wins over the file's current context."""
    path = Path(api.kubeconfig(tmp_path))
    config = json.loads(path.read_text())
    config["contexts"].append({"name": "other", "context": {"cluster": "there", "user": "me"}})
    config["clusters"].append({"name": "there", "cluster": {"server": api.url}})
    path.write_text(json.dumps(config))
    api.says("/version", Reply({"gitVersion": "v1.36.0"}))
    assert "there" == LiveCluster(kubeconfig=str(path), context="other").identity().name


def test_a_plugin_gives_the_token(api: FakeApi, tmp_path: Path) -> None:
    """Credential plugins are run as kubectl runs them."""
    user = plugin(tmp_path, f"echo '{credential('fresh')}'")
    api.says("/api/v1/pods", listing("Pod"))
    list(LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user)).pages(PODS))
    assert ["Bearer fresh"] == api.asked[-1].header("authorization")


def test_a_plugin_that_fails_stops_the_scan(api: FakeApi, tmp_path: Path) -> None:
    """Without its credentials the scan would see what anonymous users see."""
    user = plugin(tmp_path, "exit 1")
    with pytest.raises(ClusterError, match=r"of user me gave no credentials: it failed.*Run it by itself"):
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user))


@pytest.mark.parametrize("script", ["echo CANARY >&2; exit 1", "echo CANARY", 'echo \'{"token": "CANARY"}\''])
def test_what_a_plugin_prints_is_not_repeated(
    api: FakeApi, tmp_path: Path, script: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It may be a credential, or hold one."""
    with pytest.raises(ClusterError) as caught:
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path, plugin(tmp_path, script)))

    assert "CANARY" not in f"{caught.value}{capfd.readouterr()}"


@pytest.mark.parametrize("token", ["two\nlines", "a\r\nHost: evil", "пароль", "tab\tbed", "nul\0"])
def test_a_token_that_no_header_can_carry_is_refused(api: FakeApi, tmp_path: Path, token: str) -> None:
    """In one sentence, which does not show it."""
    with pytest.raises(ClusterError, match="characters that no HTTP header can carry") as caught:
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path, {"token": token})).identity()

    assert token not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:CANARY@host:6443",
        "https://user:CAN/ARY@host:6443",
        "https://user:CANARY@x@host:6443",
        "https://host:6443/?token=CANARY",
        "https://host:6443/path#CANARY",
    ],
)
def test_a_server_is_named_without_credentials(url: str) -> None:
    """However they came to stand in its URL."""
    shown = without_password(url)

    assert "host:6443" in shown
    assert "ARY" not in shown


def test_credentials_that_expire_are_read_anew(api: FakeApi, tmp_path: Path) -> None:
    """A token that the server refuses in the middle of a scan is fetched once more."""
    used = tmp_path / "used"
    user = plugin(
        tmp_path, f"test -e {used} && echo '{credential('second')}' || echo '{credential('first')}'; touch {used}"
    )
    api.says("/api/v1/pods", refusal(401, "Unauthorized"), listing("Pod", "a"))
    assert [["a"]] == names(LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user)).pages(PODS))
    assert [["Bearer first"], ["Bearer second"]] == [request.header("authorization") for request in api.asked]


def test_a_kubeconfig_may_impersonate(api: FakeApi, tmp_path: Path) -> None:
    """A user entry can carry `as`; kubectl honours it, and so does a scan."""
    user = {"token": "t", "as": "auditor", "as-groups": ["readers"]}
    api.says("/api/v1/pods", listing("Pod"))
    list(LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user)).pages(PODS))
    asked = api.asked[-1]
    assert (["auditor"], ["readers"]) == (asked.header("impersonate-user"), asked.header("impersonate-group"))


def test_groups_need_a_user(api: FakeApi, tmp_path: Path) -> None:
    """--as-group alone means nothing to the server."""
    with pytest.raises(UsageError, match="--as-group needs --as"):
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path), as_groups=("dev",))


def test_nothing_to_scan_is_said_with_the_ways_out(without_kubeconfig: Environment) -> None:
    """No kubeconfig and no pod: the message names the flags."""
    with pytest.raises(
        ClusterError, match=r"no cluster to scan: .* Name one with --kubeconfig or KUBECONFIG, or scan files"
    ):
        LiveCluster()


def test_a_pod_without_a_token_is_said(without_kubeconfig: Environment) -> None:
    """Inside a pod the service account's files must be there."""
    without_kubeconfig("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    without_kubeconfig("KUBERNETES_SERVICE_PORT", "1")
    with pytest.raises(ClusterError, match="cannot use the pod's service account: "):
        LiveCluster()


def test_a_kubeconfig_that_was_named_must_exist(tmp_path: Path) -> None:
    """A typing error in --kubeconfig does not fall back to other credentials."""
    with pytest.raises(ClusterError, match=r"there is no kubeconfig .*nowhere: check the path"):
        LiveCluster(kubeconfig=str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "just text",
        "",
        "[]",
        "\0",
        "current-context: x",
        '{"current-context": "x", "contexts": [{"name": "x"}]}',
        '{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "y"}}], "clusters": "none"}',
        '{"current-context": "x", "contexts": 3}',
        '{"contexts": [], "clusters": [], "users": []}',
    ],
)
def test_an_unusable_kubeconfig_is_one_sentence(tmp_path: Path, text: str) -> None:
    """Whatever is wrong with the file, it is a ClusterError that names it."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ClusterError, match=str(path)):
        LiveCluster(kubeconfig=str(path))


def test_a_broken_user_entry_keeps_its_token_to_itself(api: FakeApi, tmp_path: Path) -> None:
    """Messages end in logs and reports."""
    path = Path(api.kubeconfig(tmp_path))
    config = json.loads(path.read_text())
    config["users"] = [{"name": "me", "token": "s3cret"}]
    path.write_text(json.dumps(config))
    with pytest.raises(ClusterError, match="Expected key user in an entry; check it") as refused:
        LiveCluster(kubeconfig=str(path))
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("ask", [LiveCluster.identity, LiveCluster.requester, LiveCluster.discover])
def test_refused_credentials_stop_the_scan(
    api: FakeApi, cluster: LiveCluster, ask: Callable[[LiveCluster], object]
) -> None:
    """A 401 before the first list is an error of the set-up."""
    for path in ("/version", "/api", "/apis/authentication.k8s.io/v1/selfsubjectreviews"):
        api.says(path, refusal(401, "Unauthorized"))
    with pytest.raises(ClusterError, match=r"does not accept the credentials \(Unauthorized\)\. Log in again"):
        ask(cluster)


def test_a_server_that_is_not_there_is_said_at_once(api: FakeApi, tmp_path: Path, pauses: list[float]) -> None:
    """A refused connection is not tried again when there never was one."""
    config = api.kubeconfig(tmp_path, server="http://127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"http://127.0.0.1:1 cannot be reached \(Connection refused\)\. Check"):
        LiveCluster(kubeconfig=config, sleep=pauses.append).identity()
    assert [] == pauses


def test_a_server_that_does_not_speak_tls_is_said(api: FakeApi, tmp_path: Path) -> None:
    """An https URL before a plain server names TLS as the trouble."""
    config = api.kubeconfig(
        tmp_path, None, server=api.url.replace("http:", "https:"), **{"insecure-skip-tls-verify": True}
    )
    with pytest.raises(AssayError, match="TLS to https"):
        LiveCluster(kubeconfig=config, sleep=lambda seconds: None).identity()


def test_the_kubeconfigs_proxy_is_used(api: FakeApi, tmp_path: Path) -> None:
    """proxy-url stands before the cluster, even one on loopback."""
    config = api.kubeconfig(tmp_path, None, server="http://cluster.invalid", **{"proxy-url": api.url})
    api.says("/api/v1/pods", listing("Pod", "a"))
    assert [["a"]] == names(LiveCluster(kubeconfig=config).pages(PODS))


def test_the_environments_proxy_does_not_stand_before_loopback(
    api: FakeApi, tmp_path: Path, without_kubeconfig: Environment
) -> None:
    """HTTP_PROXY is for other machines."""
    without_kubeconfig("http_proxy", "http://127.0.0.1:1")
    api.says("/version", Reply({"gitVersion": "v1.36.0"}))
    assert "v1.36.0" == LiveCluster(kubeconfig=api.kubeconfig(tmp_path)).identity().server_version
