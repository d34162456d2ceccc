"""The search for a cluster and its credentials, and the errors when it fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.cluster.live.cluster import LiveCluster
from scanner.errors import AssayError, ClusterError, UsageError
from scanner.model.json import JsonObject
from scanner.model.urls import remove_password
from tests.cluster.listed import names
from tests.cluster.server import FakeApi, Reply, listing, refusal
from tests.cluster.test_live import PODS

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
    """The output of a plugin."""
    status = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
    return json.dumps(status)


def test_of_several_kubeconfigs_the_first_setting_wins(
    api: FakeApi, tmp_path: Path, without_kubeconfig: Environment
) -> None:
    """KUBECONFIG may name several files; current-context, clusters and users are those of the first file that has them."""
    second = api.kubeconfig(tmp_path)
    first = tmp_path / "first"
    first.write_text(json.dumps({"clusters": [{"name": "shop", "cluster": {"server": f"{api.url}/first"}}]}))
    third = tmp_path / "third"
    third.write_text(json.dumps({"current-context": "elsewhere"}))
    without_kubeconfig("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}:{third}")
    api.says("/first/api/v1/pods", listing("Pod", "a"))
    assert [["a"]] == names(LiveCluster().pages(PODS))


@pytest.mark.parametrize("content", ["", "\n", "# not written yet\n", "---\n"])
def test_an_empty_kubeconfig_among_several_is_skipped(
    api: FakeApi, tmp_path: Path, without_kubeconfig: Environment, content: str
) -> None:
    """Kubectl reads an empty file of KUBECONFIG as one without entries."""
    empty = tmp_path / "empty"
    empty.write_text(content)
    without_kubeconfig("KUBECONFIG", f"{empty}:{api.kubeconfig(tmp_path)}:{empty}")
    api.says("/api/v1/pods", listing("Pod", "a"))
    assert [["a"]] == names(LiveCluster().pages(PODS))


def test_only_empty_kubeconfigs_are_no_cluster(tmp_path: Path, without_kubeconfig: Environment) -> None:
    """The message states that the file is empty, and not that there is none."""
    empty = tmp_path / "empty"
    empty.touch()
    without_kubeconfig("KUBECONFIG", str(empty))
    with pytest.raises(ClusterError, match=r"no cluster to scan: the kubeconfig \S+ is empty, and this is not a pod\."):
        LiveCluster()


def test_a_context_whose_user_does_not_exist_is_an_error(api: FakeApi, tmp_path: Path) -> None:
    """The client would send anonymous requests; the message has the nearest name."""
    path = Path(api.kubeconfig(tmp_path))
    config = json.loads(path.read_text())
    config["contexts"][0]["context"]["user"] = "mee"
    path.write_text(json.dumps(config))

    with pytest.raises(
        ClusterError, match=r'has no user "mee", which its context "here" names\. Did you mean me\? Correct'
    ):
        LiveCluster(kubeconfig=str(path))

    assert [] == api.requests


@pytest.mark.parametrize("provider", ["oidc", "gcp-of-old"])
def test_an_auth_provider_without_a_token_is_an_error(api: FakeApi, tmp_path: Path, provider: str) -> None:
    """No request is sent without the credentials that the user entry promises."""
    user: JsonObject = {"auth-provider": {"name": provider, "config": {"id-token": "no-jwt"}}}

    with pytest.raises(ClusterError, match=f"the auth-provider {provider} of user me gave no usable token"):
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user))

    assert [] == api.requests


@pytest.mark.parametrize("user", [{}, {"as": "jane"}, {"token": " "}])
def test_no_request_over_tls_is_anonymous(api: FakeApi, tmp_path: Path, user: JsonObject) -> None:
    """A user entry without a token, a certificate or a plugin is an error before the first request."""
    server = api.url.replace("http:", "https:")

    with pytest.raises(
        ClusterError, match=r'in context "here" of the kubeconfig would be anonymous: user "me" has no credentials'
    ):
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user, server=server))


def test_a_context_without_a_user_is_anonymous_over_tls(api: FakeApi, tmp_path: Path) -> None:
    """The message states that the context names no user."""
    path = Path(api.kubeconfig(tmp_path, server="https://127.0.0.1:1"))
    config = json.loads(path.read_text())
    del config["contexts"][0]["context"]["user"]
    path.write_text(json.dumps(config))

    with pytest.raises(ClusterError, match=r"would be anonymous: it names no user\. Log in, or choose another context"):
        LiveCluster(kubeconfig=str(path))


def test_a_local_proxy_needs_no_credentials(api: FakeApi, tmp_path: Path) -> None:
    """A server without TLS is `kubectl proxy`, which adds the credentials."""
    api.says("/api/v1/pods", listing("Pod", "a"))
    assert [["a"]] == names(LiveCluster(kubeconfig=api.kubeconfig(tmp_path, {})).pages(PODS))


def test_a_server_that_takes_the_user_for_anonymous_ends_the_scan(api: FakeApi, cluster: LiveCluster) -> None:
    """The message advises no rights for system:anonymous: they would be rights for everybody."""
    api.says("/api", refusal(403, 'forbidden: User "system:anonymous" cannot get path "/api"'))

    with pytest.raises(ClusterError, match="takes these requests for anonymous ones: the credentials of context here"):
        cluster.discover()


def test_the_anonymous_user_gets_no_rights_when_it_is_simulated(api: FakeApi, tmp_path: Path) -> None:
    """With --as system:anonymous the remedy is another user, too."""
    api.says("/api", refusal(403, 'forbidden: User "system:anonymous" cannot get path "/api"'))

    with pytest.raises(ClusterError, match=r"system:anonymous may not read what .* serves: name another user"):
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path), as_user="system:anonymous").discover()


def test_the_context_can_be_chosen(api: FakeApi, tmp_path: Path) -> None:
    """--context has precedence over the file's current context."""
    path = Path(api.kubeconfig(tmp_path))
    config = json.loads(path.read_text())
    config["contexts"].append({"name": "other", "context": {"cluster": "there", "user": "me"}})
    config["clusters"].append({"name": "there", "cluster": {"server": api.url}})
    path.write_text(json.dumps(config))
    api.says("/version", Reply({"gitVersion": "v1.36.0"}))
    assert "there" == LiveCluster(kubeconfig=str(path), context="other").identity().name


def test_an_unknown_context_lists_the_contexts(api: FakeApi, tmp_path: Path) -> None:
    """The message has the nearest name, and all of them."""
    path = Path(api.kubeconfig(tmp_path))
    config = json.loads(path.read_text())
    config["contexts"] = [{"name": name, "context": {}} for name in ("staging", "production")]
    path.write_text(json.dumps(config))

    with pytest.raises(ClusterError) as caught:
        LiveCluster(kubeconfig=str(path), context="prodction")

    assert f"the kubeconfig {path} has no context 'prodction'. Did you mean production? " in str(caught.value)
    assert str(caught.value).endswith("The contexts are: production, staging")


def test_no_current_context_lists_the_contexts(api: FakeApi, tmp_path: Path) -> None:
    """A user chooses one of them."""
    path = Path(api.kubeconfig(tmp_path))
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "current-context": ""}))

    with pytest.raises(ClusterError, match=r"has no current context: name one with --context\. The contexts are: \w"):
        LiveCluster(kubeconfig=str(path))


def test_a_plugin_gives_the_token(api: FakeApi, tmp_path: Path) -> None:
    """Credential plugins are run as kubectl runs them."""
    user = plugin(tmp_path, f"echo '{credential('fresh')}'")
    api.says("/api/v1/pods", listing("Pod"))
    list(LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user)).pages(PODS))
    assert ["Bearer fresh"] == api.requests[-1].header("authorization")


def test_a_plugin_that_fails_stops_the_scan(api: FakeApi, tmp_path: Path) -> None:
    """Without credentials the scan would have the permissions of anonymous users."""
    user = plugin(tmp_path, "exit 1")
    with pytest.raises(ClusterError, match=r"of user me gave no credentials: it failed.*Run it by itself"):
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user))


@pytest.mark.parametrize("script", ["echo CANARY >&2; exit 1", "echo CANARY", 'echo \'{"token": "CANARY"}\''])
def test_what_a_plugin_prints_is_not_repeated(
    api: FakeApi, tmp_path: Path, script: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The output may contain a credential."""
    with pytest.raises(ClusterError) as caught:
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path, plugin(tmp_path, script)))

    assert "CANARY" not in f"{caught.value}{capfd.readouterr()}"


@pytest.mark.parametrize("token", ["two\nlines", "a\r\nHost: evil", "пароль", "tab\tbed", "nul\0"])
def test_a_token_that_no_header_can_carry_is_refused(api: FakeApi, tmp_path: Path, token: str) -> None:
    """The error is one sentence without the token."""
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
    """The URL in a message has no user and no password."""
    shown = remove_password(url)

    assert "host:6443" in shown
    assert "ARY" not in shown


def test_credentials_that_expire_are_read_anew(api: FakeApi, tmp_path: Path) -> None:
    """A token that the server rejects during a scan is loaded once more."""
    used = tmp_path / "used"
    user = plugin(
        tmp_path, f"test -e {used} && echo '{credential('second')}' || echo '{credential('first')}'; touch {used}"
    )
    api.says("/api/v1/pods", refusal(401, "Unauthorized"), listing("Pod", "a"))
    assert [["a"]] == names(LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user)).pages(PODS))
    assert [["Bearer first"], ["Bearer second"]] == [request.header("authorization") for request in api.requests]


def test_a_kubeconfig_may_impersonate(api: FakeApi, tmp_path: Path) -> None:
    """A user entry can have `as`; kubectl and a scan use it."""
    user = {"token": "t", "as": "auditor", "as-groups": ["readers"]}
    api.says("/api/v1/pods", listing("Pod"))
    list(LiveCluster(kubeconfig=api.kubeconfig(tmp_path, user)).pages(PODS))
    request = api.requests[-1]
    assert (["auditor"], ["readers"]) == (request.header("impersonate-user"), request.header("impersonate-group"))


def test_groups_need_a_user(api: FakeApi, tmp_path: Path) -> None:
    """--as-group without --as is an error."""
    with pytest.raises(UsageError, match="--as-group needs --as"):
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path), as_groups=("dev",))


def test_without_a_cluster_the_error_names_the_flags(without_kubeconfig: Environment) -> None:
    """Without a kubeconfig and outside a pod, the message names the flags."""
    with pytest.raises(
        ClusterError, match=r"no cluster to scan: .* Name one with --kubeconfig or KUBECONFIG, or scan files"
    ):
        LiveCluster()


def test_a_pod_without_a_token_is_an_error(without_kubeconfig: Environment) -> None:
    """A pod must have the files of its service account."""
    without_kubeconfig("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    without_kubeconfig("KUBERNETES_SERVICE_PORT", "1")
    with pytest.raises(ClusterError, match="cannot use the pod's service account: "):
        LiveCluster()


def test_a_kubeconfig_that_was_named_must_exist(tmp_path: Path) -> None:
    """A wrong path in --kubeconfig does not fall back to other credentials."""
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
    """Every invalid file is a ClusterError that names the file."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ClusterError, match=str(path)):
        LiveCluster(kubeconfig=str(path))


def test_the_error_of_a_user_entry_hides_its_token(api: FakeApi, tmp_path: Path) -> None:
    """The message does not show the token, because logs and reports contain messages."""
    path = Path(api.kubeconfig(tmp_path))
    config = json.loads(path.read_text())
    config["users"] = [{"name": "me", "token": "s3cret"}]
    path.write_text(json.dumps(config))
    with pytest.raises(ClusterError, match=r"Expected key user in kube-config/users\[name=me\]; check it") as refused:
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


def test_a_missing_server_is_an_error_at_once(api: FakeApi, tmp_path: Path, pauses: list[float]) -> None:
    """A refused first connection is not retried."""
    config = api.kubeconfig(tmp_path, server="http://127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"http://127.0.0.1:1 cannot be reached \(Connection refused\)\. Check"):
        LiveCluster(kubeconfig=config, sleep=pauses.append).identity()
    assert [] == pauses


def test_a_server_without_tls_is_an_error(api: FakeApi, tmp_path: Path) -> None:
    """The error for an https URL of a plain server names TLS."""
    config = api.kubeconfig(
        tmp_path, None, server=api.url.replace("http:", "https:"), **{"insecure-skip-tls-verify": True}
    )
    with pytest.raises(AssayError, match="TLS to https"):
        LiveCluster(kubeconfig=config, sleep=lambda seconds: None).identity()


def test_the_kubeconfigs_proxy_is_used(api: FakeApi, tmp_path: Path) -> None:
    """proxy-url applies to every cluster, even on loopback."""
    config = api.kubeconfig(tmp_path, None, server="http://cluster.invalid", **{"proxy-url": api.url})
    api.says("/api/v1/pods", listing("Pod", "a"))
    assert [["a"]] == names(LiveCluster(kubeconfig=config).pages(PODS))


def test_the_environments_proxy_does_not_stand_before_loopback(
    api: FakeApi, tmp_path: Path, without_kubeconfig: Environment
) -> None:
    """HTTP_PROXY does not apply to this machine."""
    without_kubeconfig("http_proxy", "http://127.0.0.1:1")
    api.says("/version", Reply({"gitVersion": "v1.36.0"}))
    assert "v1.36.0" == LiveCluster(kubeconfig=api.kubeconfig(tmp_path)).identity().server_version
