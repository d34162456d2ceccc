"""Ctrl-C and SIGTERM end a scan between two pages; a killed scan is never called complete.

`make nightly` sets KILLS, the number of scans that are killed at a random moment.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from scanner.cli.scanning.interruption import Interruption
from scanner.errors import AssayError
from scanner.model.json import Json, as_list, as_object, dig
from scanner.model.scans.scan import ScanState
from scanner.store import open_reader, open_store
from tests.cli.conftest import Assay
from tests.cluster.server import FakeApi, Reply, refusal, serving
from tests.command import ASSAY, environment
from tests.documents import binding, namespace, policy, rule

MAPS = "/api/v1/configmaps"
EXEC = "client.authentication.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
PAGES, PER_PAGE = 12, 4
KILLS = int(os.environ.get("KILLS", "6"))
WRITING = 1.0


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A cluster whose config maps violate a policy, a few on a page, with a slow server."""
    with serving() as server:
        fill(server)
        yield server


def fill(server: FakeApi) -> None:
    """Prepare every response that a scan needs."""
    core = {"version": "v1", "resources": [resource("configmaps", "ConfigMap"), resource("namespaces", "Namespace")]}
    policies = [
        resource("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        resource("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    ]
    admission = {"version": "v1", "resources": policies}
    server.says("/version", Reply({"gitVersion": "v1.36.0"}))
    server.says("/api/v1/namespaces/kube-system", Reply({"metadata": {"uid": "u-1"}}))
    server.says("/api", discovery({"metadata": {}, "versions": [core]}))
    group: Json = {"metadata": {"name": "admissionregistration.k8s.io"}, "versions": [admission]}
    server.says("/apis", discovery(group))
    about_maps = policy("maps", "false", matchConstraints={"resourceRules": [rule("configmaps")]})
    server.says(f"{ADMISSION}/validatingadmissionpolicies", page("ValidatingAdmissionPolicy", [about_maps]))
    server.says(
        f"{ADMISSION}/validatingadmissionpolicybindings",
        page("ValidatingAdmissionPolicyBinding", [binding("maps", "maps")]),
    )
    server.says("/api/v1/namespaces", page("Namespace", [namespace("default")]))


def resource(plural: str, kind: str) -> Json:
    """A listable resource in discovery."""
    scope = "Namespaced" if kind == "ConfigMap" else "Cluster"
    return {"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "verbs": ["get", "list"]}


def discovery(*groups: Json) -> Reply:
    """A response of discovery in the aggregated form."""
    return Reply({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list(groups)})


def page(kind: str, items: list[Json], token: str = "", hang: float = 0.0) -> Reply:
    """One page of a list."""
    metadata = {"resourceVersion": "7", **({"continue": token} if token else {})}
    version = "admissionregistration.k8s.io/v1" if kind.startswith("Validating") else "v1"
    return Reply({"kind": f"{kind}List", "apiVersion": version, "metadata": metadata, "items": items}, hang=hang)


def slow_maps(server: FakeApi, hang: float) -> None:
    """Pages of config maps, each after a pause."""
    maps = [[config_map(f"{number}-{item}") for item in range(PER_PAGE)] for number in range(PAGES)]
    tokens = [*(f"t{number}" for number in range(1, PAGES)), ""]
    server.says(MAPS, *(page("ConfigMap", items, token, hang) for items, token in zip(maps, tokens, strict=True)))


def config_map(name: str) -> Json:
    """An object that violates the policy."""
    return {"metadata": {"name": f"map-{name}", "namespace": "default", "uid": f"uid-{name}"}}


def scanning(api: FakeApi, home: Path, *flags: str) -> subprocess.Popen[bytes]:
    """A scan in a process of its own."""
    command = [str(ASSAY), "scan", "--kubeconfig", api.kubeconfig(home), "--db", "assay.db", "-o", "json", *flags]
    return subprocess.Popen(command, cwd=home, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_until(condition: Callable[[], bool]) -> None:
    """Return when a condition is true."""
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_scan_keeps_its_pages(api: FakeApi, home: Path, number: signal.Signals) -> None:
    """The scan ends within seconds as partial: the recorded pages are in the report, and no other page is."""
    slow_maps(api, hang=0.3)
    with scanning(api, home) as process:
        wait_until(lambda: len(api.requests_for(MAPS)) > 4)
        started = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        took = time.monotonic() - started

    report = as_object(json.loads(out))
    [line] = as_list(dig(report, "coverage", "kinds"))
    pages, objects = dig(line, "pages"), dig(line, "objects")
    assert isinstance(pages, int)
    assert (3, "incomplete", "partial") == (process.returncode, dig(report, "provenance", "state"), dig(line, "state"))
    assert 2 <= pages < PAGES
    assert pages * PER_PAGE == objects == len(as_list(report["findings"]))
    assert took < 5
    assert b"Traceback" not in err


def test_an_interrupted_scan_has_code_3_for_every_job(api: FakeApi, home: Path) -> None:
    """`--exit-zero-on incomplete` accepts gaps, and no scan that SIGTERM has ended: its pod must not count as successful."""
    slow_maps(api, hang=0.3)
    with scanning(api, home, "--exit-zero-on", "incomplete") as process:
        wait_until(lambda: len(api.requests_for(MAPS)) > 4)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert 3 == process.returncode


def test_an_interrupted_fleet_ends_its_scans(api: FakeApi, home: Path) -> None:
    """The scan that runs keeps its pages, and the cluster that waits for its turn is not scanned."""
    slow_maps(api, hang=0.3)
    kubeconfig = api.kubeconfig(home)
    members = [{"name": name, "kubeconfig": str(kubeconfig)} for name in ("first", "second")]
    (home / "fleet.yaml").write_text(json.dumps({"clusters": members}))
    command = [str(ASSAY), "scan", "--fleet", "fleet.yaml", "--parallel", "1", "--db", "assay.db"]
    with subprocess.Popen(
        command, cwd=home, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: len(api.requests_for(MAPS)) > 4)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    with open_reader(str(home / "assay.db")) as store:
        [run] = store.list_runs()

    assert 3 == process.returncode
    assert b"second   3     interrupted before its scan began" in out
    assert ("first", 3) == (run.run.name, run.run.exit_code)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_scan_ends_the_report_alone(api: FakeApi, home: Path, number: signal.Signals) -> None:
    """The scan stays complete, and the message names the command that shows it; the run was interrupted."""
    many_maps(api)
    with scanning(api, home) as process:
        wait_until(lambda: is_complete(home / "assay.db"))
        time.sleep(WRITING)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    with open_reader(str(home / "assay.db")) as store:
        [scan] = store.scans()

    assert (3, ScanState.COMPLETE) == (process.returncode, scan.state)
    assert err.decode().endswith(f"interrupted; the scan is stored, print its report with: assay report {scan.id}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_report(api: FakeApi, home: Path, assay: Assay, number: signal.Signals) -> None:
    """The message is one word without a traceback; a reader that stops reading does not delay it."""
    many_maps(api)
    assay("scan", "--kubeconfig", api.kubeconfig(home), "--db", "assay.db", "-q")
    command = [str(ASSAY), "report", "--db", "assay.db", "-o", "json"]
    with subprocess.Popen(
        command, cwd=home, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert b"{" == process.stdout.read(1)
        time.sleep(WRITING)
        process.send_signal(number)
        assert 4 == process.wait(timeout=10)
        assert process.stderr
        assert b"assay: interrupted\n" == process.stderr.read()


def test_an_interrupted_page_leaves_nothing_behind(home: Path) -> None:
    """The unfinished folder of pages is removed, after SIGTERM too."""
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom scanner import cli\n"
        "from scanner.report.output import replace_folder\n"
        "signal.signal(signal.SIGTERM, cli._interrupt)\n"
        "with replace_folder(Path('report')):\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=home, capture_output=True, check=False)
    assert b"KeyboardInterrupt" in ran.stderr
    assert [] == [path.name for path in home.iterdir() if "report" in path.name]


def test_a_signal_while_modules_are_imported_ends_the_command(home: Path) -> None:
    """The code is that of a scan, and no traceback is printed."""
    script = (
        "import os, signal, sys\nfrom scanner import cli\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'scanner.cli.application':\n            os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Finder())\ncli.main(['scan'])\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=home, capture_output=True, check=False)
    assert (3, b"assay: interrupted\n") == (ran.returncode, ran.stderr)


def many_maps(server: FakeApi) -> None:
    """More findings than an unread pipe holds."""
    server.says(MAPS, page("ConfigMap", [config_map(str(number)) for number in range(200)]))


def is_running(path: Path) -> bool:
    """Return whether a database has a scan, which has had the time to read its lists."""
    if not path.exists():
        return False
    with suppress(AssayError), open_reader(str(path)) as store:
        began = bool(store.scans())
        time.sleep(0.3 * began)
        return began
    return False


def is_complete(path: Path) -> bool:
    """Return whether the only scan of a database is complete."""
    if not path.exists():
        return False
    with suppress(AssayError), open_reader(str(path)) as store:
        return [ScanState.COMPLETE] == [scan.state for scan in store.scans()]
    return False


def test_a_hanging_server_does_not_hold_an_interrupted_scan(api: FakeApi, home: Path) -> None:
    """A signal also ends the wait for a response that does not come."""
    slow_maps(api, hang=60)
    with scanning(api, home) as process:
        wait_until(lambda: is_running(home / "assay.db"))
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=10)

    [line] = as_list(dig(json.loads(out), "coverage", "kinds"))
    assert (3, "failed") == (process.returncode, dig(line, "state"))


@pytest.mark.parametrize("path", [MAPS, "/api", f"{ADMISSION}/validatingadmissionpolicies"])
def test_a_hanging_plugin_does_not_hold_an_interrupted_scan(api: FakeApi, home: Path, path: str) -> None:
    """The server rejects a token in the middle of a scan, and the plugin that gives another hangs: the first signal ends both."""
    credential = {"apiVersion": EXEC, "kind": "ExecCredential", "status": {"token": "t"}}
    (home / "plugin").write_text(
        f"#!/bin/sh\ncd {home}\nif test -e used; then echo $$ > hangs; trap '' TERM INT; sleep 1000; sleep 1000; fi\n"
        f"touch used\necho '{json.dumps(credential)}'\n"
    )
    (home / "plugin").chmod(0o700)
    api.says(MAPS, page("ConfigMap", []))
    api.says(path, refusal(401, "Unauthorized"))
    kubeconfig = api.kubeconfig(home, {"exec": {"apiVersion": EXEC, "command": str(home / "plugin")}})
    command = [str(ASSAY), "scan", "--kubeconfig", kubeconfig, "--db", "assay.db", "-o", "json"]
    with subprocess.Popen(
        command, cwd=home, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_until((home / "hangs").exists)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=10)

    assert 3 == process.returncode
    assert b"Traceback" not in err
    wait_until(lambda: not is_alive(int((home / "hangs").read_text() or "0")))


def is_alive(number: int) -> bool:
    """Return whether a process runs."""
    with suppress(ProcessLookupError):
        os.kill(number, 0)
        return "\nState:\tZ" not in Path(f"/proc/{number}/status").read_text()
    return False


def _more_requests(api: FakeApi, before: int) -> Callable[[], bool]:
    """The condition that the server has received another request."""
    return lambda: len(api.requests) > before


def test_killed_at_random_moments_no_half_scan_is_called_complete(api: FakeApi, home: Path) -> None:
    """After every SIGKILL the database opens, and every scan in it is complete or failed."""
    moments = random.Random(7)
    whole = 0
    for _ in range(KILLS):
        fill(api)
        slow_maps(api, hang=0.01)
        before = len(api.requests)
        with scanning(api, home, "-q") as process:
            wait_until(_more_requests(api, before))
            try:
                process.communicate(timeout=moments.uniform(0, 1.2))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            whole += process.returncode == 0
    with open_store(str(home / "assay.db")) as store:
        states = [scan.state for scan in store.scans(limit=100)]
        counts = {scan.id: len(list(store.read_scan(scan.id).findings())) for scan in store.scans(limit=100)}
        complete = {scan.id for scan in store.scans(limit=100) if scan.state is ScanState.COMPLETE}

    assert {ScanState.COMPLETE, ScanState.FAILED} >= {*states}
    # A scan that was complete when it was killed, while it printed its report, stays complete.
    assert whole <= len(complete)
    assert counts == {scan: PAGES * PER_PAGE if scan in complete else 0 for scan in counts}


def test_a_signal_waits_for_the_page_that_is_recorded() -> None:
    """No code between two waits is interrupted; the next wait is."""
    passed = False
    with Interruption() as interruption:
        interruption.protect()
        os.kill(os.getpid(), signal.SIGTERM)
        passed = True
        with pytest.raises(KeyboardInterrupt), interruption.interruptible():
            pass
    assert passed


def test_a_second_signal_does_not_wait() -> None:
    """The second signal interrupts at once."""
    with Interruption() as interruption:
        interruption.protect()
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_after_the_scan_signals_end_only_the_rendering() -> None:
    """Reading the record continues after any number of signals; rendering ends."""
    passed = False
    with Interruption() as interruption:
        interruption.protect()
        os.kill(os.getpid(), signal.SIGINT)
        interruption.recorded()
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        passed = True
        with pytest.raises(KeyboardInterrupt), interruption.interruptible():
            pass
    assert passed


def test_before_the_first_page_a_signal_does_not_wait() -> None:
    """Nothing is evaluated yet; the cleanup that follows is interrupted by another signal alone."""
    with Interruption() as interruption:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        with interruption.interruptible():
            pass
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert interruption.happened


def test_signal_handlers_are_restored() -> None:
    """After the scan the former handlers are installed again."""
    before = signal.getsignal(signal.SIGTERM)
    with Interruption():
        during = signal.getsignal(signal.SIGTERM)
    assert (True, before) == (during != before, signal.getsignal(signal.SIGTERM))
