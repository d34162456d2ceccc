"""`notifications` of `assay.yaml`: what receivers get after each scan, once, and that a failure changes nothing."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as with_settings
from hypothesis import strategies as st

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.command import ASSAY, SECONDS, Ran, environment
from tests.notify.gateway import gateway
from tests.notify.receiver import SLOW, Received, Receiver, receiver
from tests.thorough import examples

Write = Callable[[str, str], Path]
SECRET = "whsec_" + b64encode(b"the key of the receiver in tests").decode()
PATH = "/path-is-a-secret"
BROKEN = "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n"


@pytest.fixture
def server() -> Iterator[Receiver]:
    """A receiver of notifications."""
    with receiver() as running:
        yield running


@pytest.fixture
def shop(write: Write, server: Receiver) -> Write:
    """A folder with an object that breaks a policy, a configuration with a route to the receiver, and its key."""
    objects(write, "one")
    write("key", f"{SECRET}\n")
    configure(write, {"url": server.url + PATH})
    return write


def objects(write: Write, *names: str, owner: str = "", expression: str = "false") -> None:
    """The ConfigMaps of the folder, and a policy about them."""
    labels = f"  labels: {{team: {owner}}}\n" if owner else ""
    text = "---\n".join(f"{config_map(name)}{labels}" for name in names)
    write("shop/all.yaml", f"{text}---\n{bound('strict', expression=expression)}")


def configure(write: Write, *routes: dict[str, object], more: dict[str, object] | None = None) -> None:
    """A configuration with these routes; a route has by default the name `all` and the key of the receiver."""
    given = [
        {"name": "all", "insecureHttp": True, **({} if "keyVariable" in each else {"keyFile": "key"}), **each}
        for each in routes
    ]
    write("assay.yaml", json.dumps({"notifications": given, **(more or {})}))


def scan(assay: Assay, *arguments: str, code: int = 0) -> Ran:
    """A scan of the folder that ends with an exit code."""
    ran = assay("scan", "--from", "shop", "--db", "assay.db", "-q", "--cluster-name", "shop", *arguments)
    assert code == ran.code, ran.stderr
    return ran


def changes(received: Received) -> list[tuple[str | None, str, str, str | None]]:
    """The owner, the name, the change and the resolution of each problem of a notification."""
    return [
        (owner["owner"], each["workload"]["name"], each["change"], each["resolution"])
        for owner in received.data["owners"]
        for each in owner["problems"]
    ]


def states(route: str = "all") -> list[str]:
    """The states of the notifications of a route, the oldest scan first."""
    with sqlite3.connect("assay.db") as database:
        rows = database.execute("SELECT state FROM notifications WHERE route = ? ORDER BY scan", (route,)).fetchall()
    database.close()
    return [state for (state,) in rows]


def test_changes_are_delivered_and_nothing_else(assay: Assay, shop: Write, server: Receiver) -> None:
    """The first scan is silent, and so is one without a change."""
    scan(assay)
    scan(assay)
    assert [] == server.received

    objects(shop, "one", "two")
    scan(assay)
    objects(shop, "one")
    scan(assay)
    objects(shop, "one", "two")
    scan(assay)
    objects(shop, "one", "two", expression="true")
    scan(assay)

    assert [
        [(None, "two", "new", None)],
        [(None, "two", "resolved", "objectGone")],
        [(None, "two", "reopened", None)],
        [(None, "one", "resolved", "rulesChanged"), (None, "two", "resolved", "rulesChanged")],
    ] == [changes(each) for each in server.received]
    assert ["changed"] == [rule["change"] for rule in server.received[-1].data["rulesChanged"]["items"]]
    assert ["first", "unchanged", *["delivered"] * 4] == states()


def test_a_receiver_can_verify_each_notification(assay: Assay, shop: Write, server: Receiver) -> None:
    """The id is that of the scan and of the route."""
    scan(assay)
    objects(shop, "one", "two")
    scan(assay)

    [got] = server.received
    assert got.is_signed_with(SECRET)
    assert PATH == got.path
    assert f"{got.data['scan']['id']}_all" == got.id


def test_routes_share_the_problems_by_owner_and_severity(assay: Assay, shop: Write, server: Receiver) -> None:
    """Each has one body with what concerns it."""
    configure(
        shop,
        {"name": "pay", "url": f"{server.url}/pay", "owners": ["pay"]},
        {"name": "ship", "url": f"{server.url}/ship", "owners": ["ship"]},
        {"name": "high", "url": f"{server.url}/high", "minSeverity": "high", "owners": ["*"]},
        {"name": "elsewhere", "url": f"{server.url}/elsewhere", "clusters": ["prod-*"]},
        {"name": "all", "url": f"{server.url}/all", "clusters": ["sh*"]},
    )
    objects(shop, "one", owner="pay")
    scan(assay)
    objects(shop, "one", "two", owner="pay")
    scan(assay)

    expected = [("pay", "two", "new", None)]
    assert {"/pay": expected, "/all": expected} == {each.path: changes(each) for each in server.received}


def test_an_incomplete_scan_names_what_it_did_not_check(assay: Assay, shop: Write, server: Receiver) -> None:
    """And resolves nothing that it did not see."""
    scan(assay)
    shop("shop/broken.yaml", BROKEN)
    scan(assay, code=3)
    scan(assay, code=3)

    [got] = server.received
    assert [] == changes(got)
    assert 1 == got.data["coverageLost"]["total"] == got.data["notChecked"]["gaps"]["total"]
    assert "broken.yaml" in got.data["coverageLost"]["items"][0]["where"]


@pytest.mark.long
@pytest.mark.parametrize("status", [400, 404, 302])
def test_a_failing_receiver_changes_no_exit_code(assay: Assay, shop: Write, server: Receiver, status: int) -> None:
    """The warning has the reason, and neither the path of the URL nor the key."""
    server.status = status
    scan(assay)
    objects(shop, "one", "two")
    ran = scan(assay, "--fail-on", "new", code=1)

    [line] = [line for line in ran.stderr.splitlines() if "notification" in line]
    assert line.startswith(f"assay: the notification of the route all was not delivered: {server.url}: ")
    assert f"(status {status})" in line
    assert line.endswith("The next scan sends it again")
    assert not any(secret in ran.stderr for secret in (PATH, SECRET, SECRET.removeprefix("whsec_")))
    assert ["first", "pending"] == states()


def test_the_next_scan_sends_again_what_was_not_delivered(assay: Assay, shop: Write, server: Receiver) -> None:
    """In its order, with the same ids, and each once."""
    server.status = 404
    scan(assay)
    objects(shop, "one", "two")
    scan(assay)
    objects(shop, "one", "two", "three")
    scan(assay)
    refused = list(server.received)
    server.status, server.received[:] = 200, []
    scan(assay)
    scan(assay)

    assert [[(None, "two", "new", None)], [(None, "three", "new", None)]] == [changes(each) for each in server.received]
    assert {refused[0].id} == {each.id for each in refused}
    assert (refused[0].id, refused[0].content) == (server.received[0].id, server.received[0].content)
    assert ["first", "delivered", "delivered", "unchanged", "unchanged"] == states()


@pytest.mark.parametrize(
    ("key", "words"),
    [("hunter2", "the key must be whsec_"), (None, "the key in key cannot be read (No such file or directory)")],
)
def test_a_wrong_key_is_a_warning(
    assay: Assay, shop: Write, server: Receiver, home: Path, key: str | None, words: str
) -> None:
    """Without the key."""
    scan(assay)
    (home / "key").write_text(key) if key else (home / "key").unlink()
    objects(shop, "one", "two")
    ran = scan(assay)

    assert words in ran.stderr
    assert "hunter2" not in ran.stderr
    assert [] == server.received


def test_a_key_from_the_environment(
    assay: Assay, shop: Write, server: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a Secret gives it to a pod."""
    configure(shop, {"url": server.url, "keyVariable": "HOOK_KEY"})
    scan(assay)
    objects(shop, "one", "two")
    assert "the variable HOOK_KEY with the key is not set" in scan(assay).stderr

    monkeypatch.setenv("HOOK_KEY", SECRET)
    scan(assay)
    [got] = server.received
    assert got.is_signed_with(SECRET)


def test_neither_key_nor_path_is_in_the_database(assay: Assay, shop: Write, server: Receiver, home: Path) -> None:
    """The method of a scan has the configuration as a digest."""
    scan(assay)
    objects(shop, "one", "two")
    scan(assay)

    content = b"".join(path.read_bytes() for path in home.glob("assay.db*"))
    assert 1 == len(server.received)
    assert not any(secret.encode() in content for secret in (PATH, SECRET, SECRET.removeprefix("whsec_")))


def test_the_metrics_count_notifications(assay: Assay, shop: Write, server: Receiver) -> None:
    """A push follows the deliveries, so that an alert knows of the failure at once."""
    server.status = 404
    with gateway() as pushes:
        configure(shop, {"url": server.url}, more={"databaseLimit": "1Mi", "pushMetrics": pushes.url})
        scan(assay)
        objects(shop, "one", "two")
        scan(assay)
        text = pushes.pushes[-1].text

    assert 'assay_notifications{cluster="shop",route="all",state="pending"} 1.0\n' in text
    assert 'assay_notifications{cluster="shop",route="all",state="delivered"} 0.0\n' in text
    assert 'assay_database_limit_bytes{cluster="shop"} 1.048576e+06\n' in text


def test_a_report_notifies_nobody(assay: Assay, shop: Write, server: Receiver) -> None:
    """Nor does a repeated one."""
    scan(assay)
    objects(shop, "one", "two")
    scan(assay)
    for _ in range(2):
        assay("report", "--db", "assay.db", "--cluster-name", "shop")

    assert 1 == len(server.received)


def test_a_killed_scan_is_notified_by_the_next_one(assay: Assay, shop: Write, server: Receiver, home: Path) -> None:
    """With the id that the receiver may know already."""
    scan(assay)
    objects(shop, "one", "two")
    server.answers = [SLOW]
    command: list[str | Path] = [ASSAY, "scan", "--from", "shop", "--db", "assay.db", "-q", "--cluster-name", "shop"]
    process = subprocess.Popen(
        command, cwd=home, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with process:
        wait_for(lambda: len(server.received) == 1)
        process.kill()
    scan(assay)

    assert 2 == len(server.received)
    assert (server.received[0].id, server.received[0].content) == (server.received[1].id, server.received[1].content)
    assert ["first", "delivered", "unchanged"] == states()


def test_a_signal_ends_the_wait_for_a_receiver(assay: Assay, shop: Write, server: Receiver, home: Path) -> None:
    """The scan and its exit code are recorded, and the next scan sends the notification."""
    scan(assay)
    objects(shop, "one", "two")
    server.answers = [SLOW]
    command: list[str | Path] = [ASSAY, "scan", "--from", "shop", "--db", "assay.db", "-q", "--cluster-name", "shop"]
    process = subprocess.Popen(
        command, cwd=home, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    with process:
        wait_for(lambda: len(server.received) == 1)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=SECONDS)

    assert 0 == process.returncode
    assert "interrupted; the next scan sends the notifications that were not delivered" in stderr
    assert ["first", "pending"] == states()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("route", "words"),
    [
        ({"url": "http://h/", "keyFile": "a"}, "url: must begin with https"),
        ({"url": "https://user:s3cr3t@h/", "keyFile": "a"}, "url: must have no user"),
        ({"url": "s3cr3t", "keyFile": "a"}, "url: must be a URL"),
        ({"url": "https://h/", "name": "A b"}, "name: must have at most 63 small letters"),
        ({"url": "https://h/", "keyFile": "a", "keyVariable": "B"}, "must have keyFile or keyVariable, and not both"),
        ({"url": "https://h/", "keyVariable": "whsec_s3cr3t="}, "keyVariable: must be the name of a variable"),
        ({"url": "https://h/", "keyVariable": "ASSAY_KEY"}, "keyVariable: must not begin with ASSAY_"),
        ({"url": "https://h/", "keyFile": "a", "owners": []}, "owners: must not be empty"),
        ({"url": "https://h/", "keyFile": "a", "minSeverity": "hihg"}, "must be one of critical"),
        (
            {"url": "https://h/", "keyFile": "a", "owner": ["x"]},
            "unknown field notifications[0].owner. Did you mean owners",
        ),
    ],
)
def test_a_route_with_an_error(assay: Assay, write: Write, route: dict[str, object], words: str) -> None:
    """The message has its place, and no secret."""
    write("assay.yaml", json.dumps({"notifications": [{"name": "all", **route}]}))
    ran = assay("config", "check")

    assert 2 == ran.code
    assert words in ran.stderr
    assert "s3cr3t" not in ran.stderr


def test_two_routes_of_one_name(assay: Assay, write: Write) -> None:
    """The database would not tell them apart."""
    write("assay.yaml", json.dumps({"notifications": [{"name": "a", "url": "https://h/", "keyFile": "k"}] * 2}))

    assert "there are two routes named a" in assay("config", "check").stderr


@pytest.mark.parametrize(
    ("text", "free", "most"),
    [
        ("500Mi", 1 << 50, 500 << 20),
        ("50Gi", 1 << 50, 50 << 30),
        ("2Ti", 1 << 50, 2 << 40),
        ("30000000", 1 << 50, 30_000_000),
        ("50Gi", 0, 0),
    ],
)
def test_the_limit_of_the_database(
    assay: Assay, shop: Write, monkeypatch: pytest.MonkeyPatch, text: str, free: int, most: int
) -> None:
    """In bytes, or as a quantity; a volume with less space limits it further, to the size of the file and what is free."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    with gateway() as pushes:
        shop("assay.yaml", f"databaseLimit: {text}\npushMetrics: {pushes.url}\n")
        scan(assay)
        expected = most or Path("assay.db").stat().st_size

        [limit] = re.findall(r'assay_database_limit_bytes\{cluster="shop"\} (.*)\n', pushes.pushes[-1].text)
        assert expected == float(limit)


@pytest.mark.parametrize("text", ["50GB", "0", "-1", "1.5Gi", "lots"])
def test_a_limit_that_is_no_size(assay: Assay, write: Write, text: str) -> None:
    """The message has examples."""
    write("assay.yaml", f"databaseLimit: {text}\n")
    ran = assay("config", "check")

    assert 2 == ran.code
    assert "databaseLimit" in ran.stderr


NAMES = ("one", "two", "three")
histories = st.lists(
    st.tuples(st.sets(st.sampled_from(NAMES), min_size=1), st.sampled_from([200, 200, 404])), min_size=2, max_size=5
)


@pytest.mark.long
@given(histories)
@with_settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_notifications_add_up_to_what_changed(
    assay: Assay, shop: Write, server: Receiver, home: Path, history: Sequence[tuple[set[str], int]]
) -> None:
    """What was open in the first scan and was delivered since is what is open now: nothing is missing, nothing comes twice."""
    for path in home.glob("assay.db*"):
        path.unlink()
    server.received.clear()
    for names, status in (*history, (history[-1][0], 200)):
        objects(shop, *sorted(names))
        server.status = status
        refused = len(server.received)
        scan(assay)
        if status != 200:
            del server.received[refused:]
    open_now = Counter(history[0][0])
    for each in server.received:
        for _, name, change, _ in changes(each):
            open_now[name] += -1 if change == "resolved" else 1

    assert dict.fromkeys(history[-1][0], 1) == {name: number for name, number in open_now.items() if number}
    assert len(server.received) == len({each.id for each in server.received})
