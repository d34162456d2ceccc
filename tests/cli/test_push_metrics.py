"""`assay scan --push-metrics`: what arrives for each end of a run, and that a failure changes nothing."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from scanner.model.json import dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.command import ASSAY, SECONDS, environment
from tests.notify.gateway import Gateway, Pushed, gateway

Write = Callable[[str, str], Path]
TOKEN = "t0ken-of-the-gateway"
BROKEN = "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n"


@pytest.fixture
def server() -> Iterator[Gateway]:
    """A server that takes pushes."""
    with gateway() as running:
        yield running


@pytest.fixture
def shop(write: Write) -> str:
    """A folder with an object that breaks a policy."""
    write("shop/all.yaml", f"{config_map('one')}---\n{bound('strict', expression='false')}")
    return "shop"


def values(pushed: Pushed) -> dict[str, float]:
    """The samples without labels besides `cluster`, by name."""
    families = text_string_to_metric_families(pushed.text)
    samples = [sample for family in families for sample in family.samples]
    return {sample.name: sample.value for sample in samples if ["cluster"] == list(sample.labels)}


def scan(assay: Assay, server: Gateway, *arguments: str, code: int) -> Pushed:
    """The push of a scan of files that ends with an exit code."""
    ran = assay("scan", "--db", "assay.db", "-q", "--cluster-name", "shop", "--push-metrics", server.url, *arguments)
    assert code == ran.code, ran.stderr
    return server.pushes[-1]


def test_a_complete_scan_replaces_the_metrics(assay: Assay, shop: str, server: Gateway) -> None:
    """They are those of the format, and of the run."""
    pushed = scan(assay, server, "--from", shop, "--fail-on", "violated", "--export", "openmetrics=file", code=1)

    lines = pushed.text.splitlines()
    assert ("PUT", "/metrics/job/assay/cluster/shop") == (pushed.method, pushed.path)
    assert 1 == values(pushed)["assay_last_run_exit_code"]
    samples = [line for line in Path("file").read_text().splitlines() if not line.startswith("#")]
    assert [] == [line for line in samples if line not in lines]


def test_an_incomplete_scan_keeps_the_time_of_the_last_complete_one(
    assay: Assay, shop: str, server: Gateway, write: Write
) -> None:
    """The database has it, so the metrics are replaced."""
    complete = scan(assay, server, "--from", shop, code=0)
    write("shop/broken.yaml", BROKEN)
    incomplete = scan(assay, server, "--from", shop, code=3)

    name = "assay_last_complete_scan_timestamp_seconds"
    assert "PUT" == incomplete.method
    assert (0, 3) == tuple(values(incomplete)[each] for each in ("assay_scan_complete", "assay_last_run_exit_code"))
    assert values(complete)[name] == values(incomplete)[name]


def test_an_incomplete_scan_of_a_new_database_deletes_nothing(
    assay: Assay, shop: str, server: Gateway, write: Write
) -> None:
    """A job whose database is lost with it does not know the last complete scan, and the Pushgateway does."""
    write("shop/broken.yaml", BROKEN)
    pushed = scan(assay, server, "--from", shop, code=3)

    assert "POST" == pushed.method
    assert "assay_last_complete_scan_timestamp_seconds" not in pushed.text


def test_a_run_that_fails_reports_itself_alone(assay: Assay, server: Gateway) -> None:
    """All other metrics of the cluster stay as they are."""
    pushed = scan(assay, server, "--from", "missing", code=2)

    assert ("POST", "/metrics/job/assay/cluster/shop") == (pushed.method, pushed.path)
    of_run = {"assay_run_recorded", "assay_last_run_killed", "assay_last_run_exit_code"}
    assert {*of_run, "assay_last_run_end_timestamp_seconds"} == set(values(pushed))
    assert 2 == values(pushed)["assay_last_run_exit_code"]


def test_a_database_that_cannot_be_opened_is_a_run_that_fails(assay: Assay, shop: str, server: Gateway) -> None:
    """The register of runs cannot show it, so the metrics do."""
    Path("assay.db").write_text("no database")
    pushed = scan(assay, server, "--from", shop, code=4)

    assert ("POST", 4) == (pushed.method, values(pushed)["assay_last_run_exit_code"])


def test_an_unknown_cluster_is_not_pushed(assay: Assay, server: Gateway) -> None:
    """Metrics without a name would be those of another cluster."""
    ran = assay("scan", "--kubeconfig", "missing", "--db", "assay.db", "--push-metrics", server.url)

    assert [] == server.pushes
    assert "the name of the cluster is not known. Give it one with --cluster-name" in ran.stderr


def test_the_schedule_of_the_configuration_is_pushed(assay: Assay, shop: str, server: Gateway, write: Write) -> None:
    """An alert compares the last complete scan with it."""
    write("assay.yaml", 'schedule: {cron: "17 2 * * *", timeZone: Europe/Berlin}')
    pushed = scan(assay, server, "--from", shop, code=0)

    assert 82800 <= values(pushed)["assay_schedule_interval_seconds"] <= 90000
    assert values(pushed)["assay_expected_run_timestamp_seconds"] <= values(pushed)["assay_scan_end_timestamp_seconds"]


def test_a_report_that_cannot_be_written_has_its_exit_code(assay: Assay, shop: str, server: Gateway) -> None:
    """The metrics of the scan are sent all the same."""
    pushed = scan(assay, server, "--from", shop, "--export", "json=/dev/full", code=2)

    assert {"assay_last_run_exit_code": 2, "assay_scan_complete": 1}.items() <= values(pushed).items()


@pytest.mark.parametrize("status", [400, 401, 500])
def test_a_push_that_fails_is_one_warning(assay: Assay, shop: str, server: Gateway, status: int) -> None:
    """The report is printed, and the exit code is that of the scan."""
    server.status = status
    ran = assay("scan", "--from", shop, "--db", "assay.db", "-q", "-o", "json", "--push-metrics", server.url)

    assert 0 == ran.code
    assert "complete" == dig(ran.report, "provenance", "state")
    assert 1 == ran.stderr.count("the metrics were not sent to")


def test_a_warning_is_an_object_in_a_log_for_machines(assay: Assay, shop: str, server: Gateway) -> None:
    """With its level."""
    server.status = 500
    ran = assay("scan", "--from", shop, "-q", "--log-format", "json", "--push-metrics", server.url)

    messages = [orjson.loads(line) for line in ran.stderr.splitlines()]
    [warning] = [each for each in messages if "the metrics were not sent" in each["message"]]
    assert "warning" == warning["level"]


def test_a_signal_ends_the_push_alone(home: Path, shop: str, server: Gateway) -> None:
    """The scan is stored, and the exit code stays its own."""
    server.released.clear()
    arguments = ("scan", "--from", shop, "--db", "assay.db", "-o", "json", "--push-metrics", server.url)
    with subprocess.Popen(
        [ASSAY, *arguments], cwd=home, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while not server.pushes and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)

    assert 0 == process.returncode
    assert f"the metrics were not sent to {server.url}: interrupted\n" in err.decode()


@pytest.mark.parametrize("by", ["variable", "file"])
def test_a_token_comes_from_a_file_or_the_environment(
    assay: Assay, shop: str, server: Gateway, write: Write, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Never from the command line, which every user of a machine can read."""
    arguments: list[str] = []
    if by == "variable":
        monkeypatch.setenv("ASSAY_PUSH_METRICS_TOKEN", f"{TOKEN}\n")
    else:
        write("token", f"{TOKEN}\n")
        arguments = ["--push-metrics-token-file", "token"]
    pushed = scan(assay, server, "--from", shop, *arguments, code=0)

    assert f"Bearer {TOKEN}" == pushed.authorization


@pytest.mark.long
@pytest.mark.parametrize("user", [f"me:{TOKEN}@", f"{TOKEN}@", f":{TOKEN}@"])
def test_credentials_are_nowhere_but_in_the_request(
    assay: Assay, shop: str, server: Gateway, home: Path, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    """Neither in messages and reports, nor in the database: the scan records its command line and configuration."""
    server.status = 500
    url = server.url.replace("http://", f"http://{user}")
    by_flag = assay("scan", "--from", shop, "--db", "assay.db", "-o", "json", "--push-metrics", url)
    monkeypatch.setenv("ASSAY_PUSH_METRICS", url)
    by_variable = assay("scan", "--from", shop, "--db", "assay.db", "-o", "json")
    shown = assay("config", "view")

    assert 2 == len(server.pushes)
    outputs = [text for ran in (by_flag, by_variable, shown) for text in (ran.stdout, ran.stderr.encode())]
    assert [] == [output for output in outputs if TOKEN.encode() in output]
    assert [] == [path.name for path in home.glob("assay.db*") if TOKEN.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--push-metrics", "gateway:9091"], "must be an http or https URL"),
        (["--push-metrics-token-file", "token"], "--push-metrics"),
        (["--push-metrics", "http://x", "--push-metrics-token-file", "missing"], "cannot be read"),
        (["--push-metrics", "http://x", "--push-metrics-token-file", "empty"], "is empty"),
    ],
)
def test_a_wrong_flag_is_refused_before_the_scan(
    assay: Assay, shop: str, write: Write, arguments: list[str], message: str
) -> None:
    """Nothing is scanned."""
    write("empty", "\n")
    ran = assay("scan", "--from", shop, "--db", "assay.db", *arguments)

    assert 2 == ran.code
    assert message in ran.stderr
    assert not Path("assay.db").exists()
