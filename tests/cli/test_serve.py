"""`assay serve` refuses to start where everyone could read, says how it listens, and ends cleanly."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from scanner.cli.commands import catalog
from scanner.cli.flags.access import AssertionFlags, OidcFlags, read_public_url, read_session_key
from scanner.config.configuration import read
from scanner.config.current import get_expectation, use_configuration
from scanner.errors import UsageError
from scanner.report.runs.document import RunExpectation
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.command import ASSAY, environment
from tests.store.relay import refusing
from tests.web.access.provider import key_set

Write = Callable[[str, str], Path]
OIDC = ("--oidc-issuer", "https://id.example.com", "--oidc-client-id", "assay")
ASSERTION = ("--assertion-header", "X-Signed", "--assertion-issuer", "proxy", "--assertion-audience", "assay")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--listen", "0.0.0.0:0"),
            "--listen 0.0.0.0:0: without authentication, everyone who reaches this address could read",
        ),
        (("--listen", "[::]:0"), "--insecure-no-auth serves without authentication all the same"),
        (("--listen", "8080"), "--listen 8080: write HOST:PORT"),
        (("--metrics-listen", "x"), "--metrics-listen x: write HOST:PORT"),
        (("--public-url", "assay.example.com"), "--public-url: write a URL such as https://"),
        (OIDC, "--oidc-issuer needs --oidc-group: name the groups"),
        (OIDC[:2], "--oidc-issuer needs --oidc-client-id"),
        (OIDC[2:], "--oidc-client-id needs --oidc-issuer"),
        (
            ("--oidc-issuer", "http://id.example.com"),
            "--oidc-issuer http://id.example.com: write an address that begins with https://",
        ),
        ((*OIDC, "--oidc-group", "a", "--listen", "0.0.0.0:0"), "--oidc-issuer needs --public-url"),
        (
            (*OIDC, "--oidc-group", "a", "--public-url", "http://assay.example.com"),
            "--public-url http://assay.example.com: write an address",
        ),
        (
            (*OIDC, "--oidc-group", "a", "--oidc-client-secret-file", "none"),
            "--oidc-client-secret-file none: the file cannot be read",
        ),
        (ASSERTION, "--assertion-header needs --assertion-keys"),
        (
            (*ASSERTION, "--assertion-keys", "none.json"),
            "--assertion-keys none.json: the keys in none.json cannot be read",
        ),
        ((*ASSERTION[:2], "--assertion-keys", "https://x/"), "needs --assertion-issuer, --assertion-audience"),
        (
            ("--assertion-header", "X_User", *ASSERTION[2:], "--assertion-keys", "https://x/"),
            "has letters, digits and dashes",
        ),
        (("--session-key-file", "short"), "the key has fewer than 32 characters"),
        (("--session-time", "0"), "a session needs an end"),
        (("--tls-key", "key.pem"), "--tls-key needs --tls-cert"),
    ],
)
def test_a_wrong_configuration_is_one_sentence(
    assay: Assay, write: Write, arguments: tuple[str, ...], message: str
) -> None:
    """With what to do, before a socket is opened."""
    write("short", "secret")
    ran = assay("serve", *arguments)
    assert (2, b"") == (ran.code, ran.stdout)
    assert message in ran.stderr
    assert 1 == len(ran.stderr.splitlines())


def test_a_key_of_the_file_configures_access(assay: Assay, write: Write) -> None:
    """Tokens have no flag; a wrong entry names its place, and not its value."""
    write("assay.yaml", "tokens: [{name: grafana, sha256: assay_pasted-by-mistake}]\nlisten: 0.0.0.0:0\n")
    ran = assay("serve")
    assert 2 == ran.code
    assert "assay.yaml, line 1, column 34: tokens[0].sha256: must have 64 hexadecimal digits" in ran.stderr
    assert "pasted" not in ran.stderr


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", ""),
        ("https://Assay.example.com/", "https://assay.example.com"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://[::1]:1", "https://[::1]:1"),
    ],
)
def test_a_public_url_has_a_scheme_and_a_host(text: str, url: str) -> None:
    """Without a final slash; `tests/web/access/test_prefix.py` has those with a path."""
    assert url == read_public_url(text)


@pytest.mark.parametrize(
    "text",
    [
        *("https://u@a/", "https://a/?x", "ftp://a", "https://", "https://a:x/", "https://a:0/"),
        *("https://bob:hunter2@a", "https://hunter2@a/", "https://a?hunter2", "hunter2"),
    ],
)
def test_other_public_urls_are_errors(text: str) -> None:
    """The message does not repeat a URL, which may have a password."""
    with pytest.raises(UsageError, match="--public-url: write") as refused:
        read_public_url(text)
    assert "hunter2" not in str(refused.value)


def test_the_settings_have_what_the_files_have(write: Write, home: Path) -> None:
    """Line ends do not belong to secrets; openid is always asked for."""
    secret, key = write("secret", "s3cret\n"), write("key", f"{'k' * 64}\n")
    oidc = OidcFlags("https://id.example.com", "assay", secret, ("a",), "roles", ["groups"]).settings()
    assert oidc is not None
    assert ("s3cret", ("openid", "groups"), "roles") == (oidc.client_secret, oidc.scopes, oidc.groups_claim)
    assert "s3cret" not in repr(oidc)
    assert b"k" * 64 == read_session_key(key)
    assert read_session_key(None) != read_session_key(None)
    keys = write("keys.json", json.dumps(key_set("first")))
    assert AssertionFlags("X-Signed", str(keys), "proxy", "assay").settings() is not None
    assert home.is_dir()


@pytest.mark.parametrize(
    ("number", "arguments", "reading"),
    [
        (signal.SIGTERM, ("--listen", "127.0.0.1:0"), "without authentication"),
        (
            signal.SIGINT,
            ("--listen", "0.0.0.0:0", "--insecure-no-auth", "--metrics-listen", "127.0.0.1:0"),
            "without authentication",
        ),
    ],
)
def test_a_server_begins_with_its_address_and_ends_at_a_signal(
    number: signal.Signals, arguments: tuple[str, ...], reading: str, assay: Assay, write: Write, home: Path
) -> None:
    """With exit code 0, and the access log on standard output."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    assert 0 == assay("scan", "--from", "all.yaml", "--db", "assay.db", "-q").code
    server = subprocess.Popen(
        [ASSAY, "serve", "--db", "assay.db", "--log-probes", *arguments],
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with server, ExitStack() as end:
        end.callback(server.kill)
        assert server.stderr is not None
        lines = [server.stderr.readline()]
        if "--insecure-no-auth" in arguments:
            assert "assay: --insecure-no-auth: everyone who reaches 0.0.0.0:0 reads every report" in lines[0]
            lines = [server.stderr.readline()]
        started = re.fullmatch(r"Serving assay\.db at (http://\S+), (.*)\n", lines[0])
        assert started is not None, lines
        assert reading == started[2]
        if "--metrics-listen" in arguments:
            assert "Serving metrics at http://127.0.0.1:" in server.stderr.readline()
        url = started[1].replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - a text
        assert 200 == httpx2.get(f"{url}/healthz", trust_env=False).status_code
        server.send_signal(number)
        out, err = server.communicate(timeout=20)
    assert (0, "", "/healthz") == (server.returncode, err, json.loads(out)["path"])


@pytest.mark.parametrize("flag", ["--db", "--db-file"])
def test_a_server_ends_when_its_credentials_are_refused(flag: str, home: Path) -> None:
    """So that it starts again, with the credentials that its Secret has then."""
    with refusing("28P01", 'password authentication failed for user "assay"') as url:
        (home / "address").write_text(f"{url}\n")
        ran = subprocess.run(
            [ASSAY, "serve", flag, url if flag == "--db" else "address", "--listen", "127.0.0.1:0"],
            cwd=home,
            env=environment(home),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert 4 == ran.returncode
    assert "rejects the user or the password" in ran.stderr.splitlines()[-1]
    assert "old" not in ran.stderr


def test_a_missing_file_of_the_address_is_an_error(assay: Assay) -> None:
    """Of usage."""
    ran = assay("serve", "--db-file", "missing")

    assert (2, True) == (ran.code, "--db-file missing: the file cannot be read" in ran.stderr)


def _extra() -> list[str]:
    """The packages of the extra `serve`."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    return [re.split(r"[<>=]", requirement)[0] for requirement in project["optional-dependencies"]["serve"]]


@pytest.mark.parametrize("package", _extra())
def test_without_a_package_of_the_extra_the_command_names_the_extra(package: str) -> None:
    """The packages are not those of a scan."""
    program = f"import sys; sys.modules['{package}'] = None; from scanner.cli import main; main(['serve'])"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert 4 == ran.returncode
    assert (
        f"assay: assay serve needs packages that are not installed, such as {package}. Install Assay with its extra serve, such as, in the repository: pip install '.[serve]'\n"
        == ran.stderr
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{}", None),
        ("{schedule: {cron: 17 2 * * *}}", RunExpectation("17 2 * * *", "Etc/UTC", timedelta(minutes=10))),
        (
            "{schedule: {cron: '@daily', timeZone: Europe/Berlin, tolerance: 1h}}",
            RunExpectation("@daily", "Europe/Berlin", timedelta(hours=1)),
        ),
    ],
)
def test_the_pages_expect_scans_at_the_times_of_the_configuration(
    write: Write, written: str, expected: RunExpectation | None
) -> None:
    """With the time zone and the tolerance of `assay runs`."""
    path = write("assay.yaml", written)
    with use_configuration(read(catalog.list_settings(), str(path), {}), ()):
        assert expected == get_expectation()
