"""Credential plugins that misbehave: each ends within the request timeout, in one sentence, and leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.requests import credential_plugin
from scanner.cluster.requests.credentials import load_credentials
from scanner.errors import ClusterError, ListFailed
from scanner.model.json import Json
from tests.cluster.listed import names
from tests.cluster.server import FakeApi, listing, refusal
from tests.cluster.test_credentials import Environment, credential, plugin
from tests.cluster.test_live import PODS
from tests.cluster.test_simple_kubeconfig import PEM

SECONDS = 1.5
GIVEN = f"echo '{credential('fresh')}'"
NOTE = "note() { echo $1 >> pids; }; note $$\n"
PYTHON = f"exec {sys.executable} -c"


def loaded(api: FakeApi, folder: Path, script: str, **more: Json) -> LiveCluster:
    """A client with the credentials that a script prints; the script can note the numbers of its processes."""
    section = {**_exec(folder, f"{NOTE}{script}"), **more}
    return LiveCluster(kubeconfig=api.kubeconfig(folder, {"exec": section}), request_timeout=SECONDS)


def _exec(folder: Path, script: str) -> dict[str, Json]:
    section = plugin(folder, script)["exec"]
    assert isinstance(section, dict)
    return section


def alive(folder: Path) -> list[int]:
    """The processes of a plugin that go on, of those that it noted. One that was killed may take a moment to end."""
    deadline = time.monotonic() + 5
    running = [*map(int, (folder / "pids").read_text().split())]
    while (running := [*filter(_runs, running)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return running


def _runs(number: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


HANGS = "did not end within 1.5 s, and was stopped: raise --request-timeout, or make it faster"
TOO_MUCH = "printed more than 1 MiB, and was stopped"
NO_CREDENTIAL = "printed no ExecCredential of client.authentication.k8s.io/v1 in JSON"
NEITHER = "printed no credentials: a token, or a client certificate and its key"
SLEEPS = "sleep 1000"


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "why"),
    [
        pytest.param(SLEEPS, HANGS, id="sleeps"),
        pytest.param("while :; do :; done", HANGS, id="runs in a loop"),
        pytest.param(f"{GIVEN}; {SLEEPS}", HANGS, id="prints credentials and does not end"),
        pytest.param(f"trap '' TERM INT HUP; {SLEEPS}; {SLEEPS}", HANGS, id="ignores SIGTERM"),
        pytest.param(f"{GIVEN}; exec >&-; {SLEEPS}", HANGS, id="closes its output and runs on"),
        pytest.param(f"exec >&- 2>&-; {SLEEPS}", HANGS, id="closes both outputs and runs on"),
        pytest.param("kill -STOP $$", HANGS, id="stops itself"),
        pytest.param("yes >&2", HANGS, id="prints errors without an end"),
        pytest.param("yes", TOO_MUCH, id="prints without an end"),
        pytest.param("cat /dev/zero", TOO_MUCH, id="prints zeros without an end"),
        pytest.param("while :; do printf x; sleep 0.05; done", HANGS, id="prints a little for ever"),
        pytest.param(f"{PYTHON} 'print(\"[\" * 500000)'", NO_CREDENTIAL, id="nests deeply"),
        pytest.param(f'{PYTHON} \'print("{{\\"a\\":" * 90000)\'', NO_CREDENTIAL, id="nests objects deeply"),
        pytest.param(f'{PYTHON} \'print("[" + "1," * 10**6)\'', TOO_MUCH, id="prints a huge document"),
        pytest.param(f"{PYTHON} 'print(\"9\" * 900000)'", NO_CREDENTIAL, id="prints a huge number"),
        pytest.param(f"{SLEEPS} & note $!; {SLEEPS} & note $!; wait", HANGS, id="waits for children"),
        pytest.param(f"{SLEEPS} & note $!; exit 0", NO_CREDENTIAL, id="leaves a child with its output"),
        pytest.param("yes & note $!; sleep 1", TOO_MUCH, id="leaves a child that prints without an end"),
        pytest.param(f"(setsid {SLEEPS} & note $!); {SLEEPS}", HANGS, id="starts a session of its own"),
        pytest.param("while :; do sleep 1000 & note $!; sleep 0.01; done", HANGS, id="starts children without an end"),
        pytest.param("read line < /dev/tty", "failed", id="reads the terminal"),
        pytest.param("kill -9 $$", "failed", id="ends by a signal"),
        pytest.param("exit 3", "failed", id="fails"),
        pytest.param("", NO_CREDENTIAL, id="prints nothing"),
        pytest.param("printf '\\377\\376'", NO_CREDENTIAL, id="prints no text"),
        pytest.param("echo null", NO_CREDENTIAL, id="prints null"),
        pytest.param("echo []", NO_CREDENTIAL, id="prints a list"),
        pytest.param(f"{GIVEN}; {GIVEN}", NO_CREDENTIAL, id="prints two documents"),
        pytest.param(f"{GIVEN} | sed s/ExecCredential/Secret/", NO_CREDENTIAL, id="prints another kind"),
        pytest.param(f"{GIVEN} | sed s,k8s.io/v1,k8s.io/v9,", NO_CREDENTIAL, id="prints another version"),
        pytest.param(f"{GIVEN} | sed s/token/tokens/", NEITHER, id="prints no token"),
        pytest.param(f"echo '{credential(' ')}'", NEITHER, id="prints a blank token"),
        pytest.param(
            f"{GIVEN} | sed s/token/clientCertificateData/", NEITHER, id="prints a certificate without its key"
        ),
    ],
)
def test_a_plugin_that_misbehaves_ends_in_time(api: FakeApi, tmp_path: Path, script: str, why: str) -> None:
    """The sentence names the plugin, its user, the reason and the remedy; no process is left, and no request was sent."""
    started = time.monotonic()

    with pytest.raises(ClusterError) as caught:
        loaded(api, tmp_path, f"cd {tmp_path}\n{script}")

    assert (
        f"the credential plugin {tmp_path / 'plugin'} of user me gave no credentials: it {why}. Run it by itself to see its output"
        == str(caught.value)
    )
    assert ([], []) == (alive(tmp_path), api.requests)
    assert time.monotonic() - started < 2 * SECONDS


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(f"{SLEEPS} & note $!; {GIVEN}", id="a child keeps the output open"),
        pytest.param(f"{SLEEPS} >/dev/null & note $!; {GIVEN}", id="a child runs on"),
        pytest.param(f"trap '' TERM; (trap '' TERM HUP; {SLEEPS}) & note $!; {GIVEN}", id="a child ignores SIGTERM"),
        pytest.param(f"setsid {SLEEPS} & note $!; sleep 0.2; {GIVEN}", id="a child is in a session of its own"),
        pytest.param(
            f"setsid sh -c '{SLEEPS} & echo $! >> pids; {SLEEPS} & echo $! >> pids' & sleep 0.2; {GIVEN}",
            id="a daemon whose parent has ended",
        ),
        pytest.param(f"cat > read; {GIVEN}", id="the plugin reads its input"),
        pytest.param(f"seq 100000 >&2; {GIVEN}", id="the plugin prints many errors"),
        pytest.param(f"head -c 900000 /dev/zero | tr '\\0' ' '; {GIVEN}", id="the plugin prints nearly too much"),
    ],
)
def test_a_plugin_that_ends_gives_the_token_and_leaves_no_process(api: FakeApi, tmp_path: Path, script: str) -> None:
    """The end of the plugin counts, and not the end of its output; its children end with it."""
    api.says("/api/v1/pods", listing("Pod"))
    cluster = loaded(api, tmp_path, f"cd {tmp_path}\n{script}")

    list(cluster.pages(PODS))

    assert ["Bearer fresh"] == api.requests[-1].header("authorization")
    assert [] == alive(tmp_path)


def test_the_memory_for_a_plugin_is_bounded(api: FakeApi, tmp_path: Path) -> None:
    """A plugin that prints a gigabyte needs no more memory than one that prints two megabytes."""
    kubeconfig = api.kubeconfig(tmp_path, plugin(tmp_path, "head -c 1000000000 /dev/zero"))
    program = (
        "import resource\n"
        "from scanner.cluster.requests.credentials import load_credentials\n"
        "from scanner.errors import ClusterError\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"try:\n    load_credentials({kubeconfig!r}, '')\n"
        "except ClusterError as error:\n"
        "    print('more than 1 MiB' in str(error), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    stopped, grown = ran.stdout.split()
    unit = 1 if sys.platform == "darwin" else 1024

    assert "True" == stopped
    assert int(grown) * unit < 100 << 20  # the official client is imported meanwhile


def named_pipe(path: Path) -> None:
    """A named pipe that may be executed."""
    os.mkfifo(path, 0o700)


def unreadable_program(path: Path) -> None:
    """A file that is no program."""
    path.write_bytes(b"\0\1\2")
    path.chmod(0o700)


def no_permission(path: Path) -> None:
    """A program that may not be executed."""
    path.write_text("#!/bin/sh\n")
    path.chmod(0o600)


@pytest.mark.parametrize(
    "make",
    [
        named_pipe,
        unreadable_program,
        no_permission,
        Path.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda _: None,
    ],
)
def test_a_command_that_is_no_program_is_refused(api: FakeApi, tmp_path: Path, make: Callable[[Path], object]) -> None:
    """A pipe, a device, a folder and a missing file cannot be started."""
    command = tmp_path / "command"
    make(command)
    section: Json = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(command)}

    with pytest.raises(
        ClusterError, match=r"command of user me gave no credentials: it cannot be started \([\w ]+\)\. Run"
    ):
        LiveCluster(kubeconfig=api.kubeconfig(tmp_path, {"exec": section}), request_timeout=SECONDS)


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"command": None}, "its command and args in the kubeconfig are not texts"),
        ({"command": ""}, "its command and args in the kubeconfig are not texts"),
        ({"command": ["a"]}, "its command and args in the kubeconfig are not texts"),
        ({"args": [1]}, "its command and args in the kubeconfig are not texts"),
        ({"command": "a\0b"}, r"it cannot be started \(its name is invalid\)"),
        ({"env": [{"name": "A"}]}, "a variable of its env in the kubeconfig has no name, or a value that is no text"),
        ({"env": ["A=b"]}, "a variable of its env in the kubeconfig has no name, or a value that is no text"),
        ({"env": [{"name": "A=B", "value": "c"}]}, r"it cannot be started \(its name is invalid\)"),
        ({"apiVersion": "v1"}, "its apiVersion in the kubeconfig is not client.authentication.k8s.io/v1"),
        ({"apiVersion": None}, "its apiVersion in the kubeconfig is not client.authentication.k8s.io/v1"),
        ({"interactiveMode": "Always"}, r"it needs a terminal \(interactiveMode: Always\), which a scan does not have"),
    ],
)
def test_a_plugin_section_that_cannot_be_run_is_refused(
    api: FakeApi, tmp_path: Path, section: dict[str, Json], why: str
) -> None:
    """The sentence names the field of the kubeconfig."""
    with pytest.raises(ClusterError, match=f"of user me gave no credentials: {why}"):
        loaded(api, tmp_path, GIVEN, **section)


def test_a_plugin_gets_its_arguments_variables_and_cluster(api: FakeApi, tmp_path: Path) -> None:
    """As from kubectl, but for a terminal: the certificates of the cluster instead of the path of their file."""
    (tmp_path / "ca.crt").write_text(PEM)
    section = {
        **_exec(tmp_path, f'echo "$2 $SHOP" > read; printf %s "$KUBERNETES_EXEC_INFO" > info; {GIVEN}'),
        "args": ["one", "two words"],
        "env": [{"name": "SHOP", "value": "open"}],
        "provideClusterInfo": True,
    }
    extension: Json = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "shop"}}
    kubeconfig = api.kubeconfig(
        tmp_path, {"exec": section}, **{"certificate-authority": "ca.crt", "extensions": [extension]}
    )
    load_credentials(kubeconfig, "")
    info = json.loads((tmp_path / "info").read_text())

    assert "two words open\n" == (tmp_path / "read").read_text()
    assert ("ExecCredential", False, {"audience": "shop"}) == (
        info["kind"],
        info["spec"]["interactive"],
        info["spec"]["cluster"]["config"],
    )
    assert {"server", "certificate-authority-data", "config"} == info["spec"]["cluster"].keys()


def test_a_plugin_may_give_a_certificate(api: FakeApi, tmp_path: Path) -> None:
    """The certificate and its key are those that the plugin printed."""
    status = {"clientCertificateData": PEM, "clientKeyData": PEM.replace("CERTIFICATE", "PRIVATE KEY")}
    document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (tmp_path / "credential.json").write_text(json.dumps(document))
    server = api.url.replace("http:", "https:")
    user = plugin(tmp_path, f"cat {tmp_path}/credential.json")
    configuration = load_credentials(api.kubeconfig(tmp_path, user, server=server), "").configuration

    assert [status["clientCertificateData"], status["clientKeyData"]] == [
        Path(path).read_text() for path in (configuration.cert_file, configuration.key_file)
    ]


def dated(moment: datetime) -> str:
    """A script that prints a token which expires at a moment."""
    document = json.loads(credential("fresh"))
    document["status"]["expirationTimestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"echo '{json.dumps(document)}'"


@pytest.mark.parametrize(
    "moment", [datetime(1970, 1, 1, tzinfo=UTC), datetime(2000, 2, 29, tzinfo=UTC), datetime.now(UTC)]
)
def test_credentials_that_expire_at_once_do_not_run_the_plugin_for_every_request(
    api: FakeApi, tmp_path: Path, moment: datetime
) -> None:
    """Within a minute the plugin runs once."""
    api.says("/api/v1/pods", listing("Pod"))
    cluster = loaded(api, tmp_path, f"cd {tmp_path}; echo run >> runs; {dated(moment)}")

    for _ in range(5):
        list(cluster.pages(PODS))

    assert "run\n" == (tmp_path / "runs").read_text()


def test_credentials_are_renewed_when_they_expire(tmp_path: Path, api: FakeApi) -> None:
    """They last as long as the plugin states."""
    user = plugin(tmp_path, dated(datetime.now(UTC) + timedelta(hours=1)))
    assert 3_590 < load_credentials(api.kubeconfig(tmp_path, user), "").lifetime <= 3_600


@pytest.mark.parametrize("moment", ["tomorrow", "2030-01-01", "99999-01-01T00:00:00Z", 7, {}])
def test_an_expiry_that_is_no_time_is_refused(api: FakeApi, tmp_path: Path, moment: Json) -> None:
    """A scan would not know when to run the plugin again."""
    document = json.loads(credential("fresh"))
    document["status"]["expirationTimestamp"] = moment
    with pytest.raises(ClusterError, match="its expirationTimestamp is no time with a time zone"):
        loaded(api, tmp_path, f"echo '{json.dumps(document)}'")


def test_a_plugin_that_hangs_in_the_middle_of_a_scan_ends_its_lists_in_time(api: FakeApi, tmp_path: Path) -> None:
    """The credentials that a server rejects are read anew within the same limits, and once for all lists."""
    api.says("/api/v1/pods", refusal(401, "Unauthorized"))
    cluster = loaded(api, tmp_path, f"cd {tmp_path}; echo run >> runs; test -e used && {SLEEPS}; touch used; {GIVEN}")
    started = time.monotonic()

    for _ in range(3):
        with pytest.raises(ListFailed, match=rf"cannot list pods: the credential plugin .*{HANGS}"):
            list(cluster.pages(PODS))

    assert ("run\nrun\n", []) == ((tmp_path / "runs").read_text(), alive(tmp_path))
    assert time.monotonic() - started < 2 * SECONDS


def test_the_configuration_of_the_official_client_runs_no_plugin(
    api: FakeApi, tmp_path: Path, without_kubeconfig: Environment
) -> None:
    """It has the token, and nothing that renews it: a renewal would run the plugin without limits."""
    without_kubeconfig("HTTPS_PROXY", "http://127.0.0.1:1")
    configuration = load_credentials(api.kubeconfig(tmp_path, plugin(tmp_path, GIVEN)), "").configuration
    assert ("Bearer fresh", None) == (configuration.api_key["BearerToken"], configuration.refresh_api_key_hook)


def test_the_program_of_an_auth_provider_is_not_run(api: FakeApi, tmp_path: Path) -> None:
    """The official client would run it without limits; kubectl knows the provider no more."""
    ran = tmp_path / "ran"
    config: Json = {"cmd-path": "/bin/sh", "cmd-args": f"-c touch {ran}", "expiry": "2000-01-01T00:00:00Z"}
    user: dict[str, Json] = {"auth-provider": {"name": "gcp", "config": config}}
    with pytest.raises(ClusterError, match="the auth-provider gcp of user me gave no usable token"):
        load_credentials(api.kubeconfig(tmp_path, user), "")
    assert not ran.exists()


def test_no_file_of_a_plugin_is_world_readable(api: FakeApi, tmp_path: Path) -> None:
    """The key that a plugin printed is in a file of this user alone."""
    status = {"clientCertificateData": PEM, "clientKeyData": PEM}
    document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (tmp_path / "credential.json").write_text(json.dumps(document))
    user = plugin(tmp_path, f"cat {tmp_path}/credential.json")
    server = api.url.replace("http:", "https:")
    configuration = load_credentials(api.kubeconfig(tmp_path, user, server=server), "").configuration
    assert 0 == Path(configuration.key_file).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def test_the_renewed_credentials_of_a_plugin_are_used(api: FakeApi, tmp_path: Path) -> None:
    """A second token follows the first when that is rejected."""
    script = f"cd {tmp_path}; test -e used && echo '{credential('second')}' || echo '{credential('first')}'; touch used"
    api.says("/api/v1/pods", refusal(401, "Unauthorized"), listing("Pod", "a"))
    assert [["a"]] == names(loaded(api, tmp_path, script).pages(PODS))


def test_the_limit_of_a_plugins_output_is_inclusive() -> None:
    """Exactly one MiB is read."""
    run = credential_plugin._run
    assert credential_plugin.MOST == len(
        run(("head", "-c", str(credential_plugin.MOST), "/dev/zero"), os.environ, Path(), 30)
    )


def test_a_program_that_ends_leaves_no_plugin(api: FakeApi, tmp_path: Path) -> None:
    """A thread may still wait for the plugin when the program ends by itself."""
    kubeconfig = api.kubeconfig(tmp_path, plugin(tmp_path, f"echo $$ > {tmp_path}/pids; {SLEEPS}"))
    program = (
        "import threading, time\nfrom pathlib import Path\n"
        "from scanner.cluster.requests.credentials import load_credentials\n"
        f"threading.Thread(target=load_credentials, args=({kubeconfig!r}, ''), daemon=True).start()\n"
        f"while not Path({str(tmp_path / 'pids')!r}).exists(): time.sleep(0.01)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
    assert [] == alive(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_for_a_plugin(api: FakeApi, tmp_path: Path, number: signal.Signals) -> None:
    """The first signal ends the program, and the plugin with it."""
    kubeconfig = api.kubeconfig(
        tmp_path, plugin(tmp_path, f"echo $$ > {tmp_path}/pids; trap '' TERM; {SLEEPS}; {SLEEPS}")
    )
    command = [sys.executable, "-m", "scanner", "scan", "--kubeconfig", kubeconfig, "--db", str(tmp_path / "assay.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "pids").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=10)

    assert (3, []) == (process.returncode, alive(tmp_path))
    assert b"interrupted" in err
    assert b"Traceback" not in err


@pytest.mark.parametrize("_", range(5))
def test_a_signal_at_the_start_of_a_plugin_ends_it(api: FakeApi, tmp_path: Path, _: int) -> None:
    """The plugin sends the signal itself, while the program that starts it has not noted yet that it runs."""
    script = f"trap '' TERM; echo $$ > {tmp_path}/pids; kill -TERM $PPID; {SLEEPS}; {SLEEPS}"
    kubeconfig = api.kubeconfig(tmp_path, plugin(tmp_path, script))
    command = [sys.executable, "-m", "scanner", "scan", "--kubeconfig", kubeconfig, "--db", str(tmp_path / "assay.db")]
    ran = subprocess.run(command, check=False, capture_output=True, timeout=30)

    assert (3, []) == (ran.returncode, alive(tmp_path))
