"""Errors are one sentence with the remedy, and have exit codes of their own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.model.json import as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.command import Ran

Write = Callable[[str, str], Path]


@pytest.fixture
def cluster(write: Write) -> Path:
    """A folder with an object and a policy that it violates."""
    write("cluster/object.yaml", config_map("first"))
    write("cluster/policy.yaml", bound("strict"))
    return Path("cluster")


def gaps(ran: Ran) -> dict[str, str]:
    """The reason of each gap, by its place."""
    return {as_text(dig(gap, "where")): as_text(dig(gap, "why")) for gap in as_list(ran.report["gaps"])}


def kubeconfig(server: str) -> str:
    """A kubeconfig with one context, whose user has a token."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "far", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"token": "t0ken"}}],
            "contexts": [{"name": "here", "context": {"cluster": "far", "user": "me"}}],
            "current-context": "here",
        }
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--from", "missing"], "there is no file or folder missing: check the path"),
        (["--from", "cluster", "-f", "missing.yaml"], "there is no file or folder missing.yaml: check the path"),
        (
            ["--from", "cluster", "--context", "x", "--as", "y"],
            "--from cannot be combined with --context, --as: --from scans files",
        ),
        (["--from", "cluster", "-A", "-n", "x"], "-A cannot be combined with -n: leave one of them out"),
        (
            ["--from", "cluster", "--no-cluster-policies"],
            "--no-cluster-policies needs --policies: without policy files there is no policy to evaluate",
        ),
        (["--from", "-", "-f", "-"], "standard input (-) can be read only once: write one of the inputs to a file"),
        (
            ["--from", "cluster", "-n", "elsewhere"],
            "-n elsewhere: the files have no object in that namespace. Their namespaces: ",
        ),
        (["--from", "cluster", "-n", ""], "-n has an empty value: give a value, or leave the flag out"),
        (["--from", "cluster", "--kind", " "], "--kind has an empty value"),
        (["--from", "cluster", "--kind", "Foo"], "--kind Foo matches nothing that the cluster serves"),
        (["--from", "cluster", "-l", "a in (b"], "a in (b"),
        (["--from", "cluster", "-l", "a=b=c"], "a=b=c"),
        (["--from", "cluster", "--policy", "lax"], "--policy lax matches nothing; there is: strict"),
        (["--from", "cluster", "--binding", "lax*"], "--binding lax* matches nothing; there is: strict"),
        (["--from", "cluster", "--assume-bound", "lax"], "--assume-bound names policy lax, which is neither in"),
        (["--from", "cluster", "--assume-bound", "strict=Ask"], "the action must be Deny, Warn or Audit"),
        (["--request-timeout", "soon"], "--request-timeout soon: write a duration such as 30, 30s, 2m or 1h"),
        (["--request-timeout", "-1"], "--request-timeout -1: write a duration such as 30"),
        (["--from", "cluster", "--db", "mysql://host/name"], "Assay does not support databases of type mysql"),
        (["--from", "cluster", "--db", ":memory:"], "A database in memory cannot keep a scan"),
        (["--as-group", "g", "--kubeconfig", "config"], "--as-group needs --as"),
    ],
)
def test_a_usage_error_has_exit_code_2(
    assay: Assay, cluster: Path, write: Write, arguments: list[str], sentence: str
) -> None:
    """The message is one sentence, and nothing is recorded."""
    write("config", kubeconfig("https://127.0.0.1:1"))

    ran = assay("scan", *arguments)

    assert (2, b"") == (ran.code, ran.stdout)
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("assay: ")
    assert sentence in last
    assert b"" == assay("scans").stdout


@pytest.mark.parametrize("arguments", [["--frm", "x"], ["--output", "yaml"], ["--chunk-size", "0"], ["more"]])
def test_unknown_flags_and_values(assay: Assay, arguments: list[str]) -> None:
    """The errors of the parser of flags have exit code 2 too, and refer to the help."""
    ran = assay("scan", *arguments)

    assert 2 == ran.code
    assert "Try 'assay scan -h' for help." in ran.stderr


def test_a_misspelt_command_is_recognised(assay: Assay) -> None:
    """The message for `assay scna` suggests `scan`."""
    ran = assay("scna")

    assert 2 == ran.code
    assert "Did you mean 'scan'" in ran.stderr


def test_no_command_prints_the_help(assay: Assay) -> None:
    """`assay` alone prints the help."""
    ran = assay()

    assert 2 == ran.code
    assert "Scan a cluster or files, and report the results." in ran.stdout.decode() + ran.stderr


def test_malformed_documents_are_gaps(assay: Assay, cluster: Path, write: Write) -> None:
    """A document that is not YAML, one of an unknown kind of a group that a rule names, and one without name are gaps."""
    write("cluster/tabs.yaml", f"{config_map('fine')}---\nkind: ConfigMap\n\tname: x\n")
    write("cluster/unknown.yaml", "apiVersion: v1\nkind: TrafficSplit\nmetadata: {name: x}\n")
    write("cluster/nameless.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n")

    ran = assay("scan", "--from", "cluster", "-o", "json")

    assert 3 == ran.code
    assert [
        "nameless.yaml, document 1",
        "tabs.yaml, document 2",
        "unknown.yaml, document 1",
    ] == [*gaps(ran)]
    assert "metadata.name: Required value" in gaps(ran)["nameless.yaml, document 1"]
    assert ["fine", "first"] == sorted(
        as_text(dig(finding, "object", "name")) for finding in as_list(ran.report["findings"])
    )
    assert "exit code 3" in ran.stderr


def test_duplicate_objects_are_gaps(assay: Assay, cluster: Path, write: Write) -> None:
    """The first of two documents for one object counts, and the second is a gap."""
    write("cluster/second.yaml", f"{config_map('first')}data: {{a: b}}\n")

    ran = assay("scan", "--from", "cluster", "-o", "json")

    assert (3, ["second.yaml, document 1"]) == (ran.code, [*gaps(ran)])
    assert "ConfigMap shop/first is already in object.yaml" in gaps(ran)["second.yaml, document 1"]


def test_an_unreadable_policy_file_is_a_usage_error(assay: Assay, cluster: Path, write: Write) -> None:
    """-f with a file that is not YAML: a policy would be missing."""
    write("policies/broken.yaml", "kind: [")
    write("policies/policy.yaml", bound("lax"))

    ran = assay("scan", "--from", "cluster", "-f", "policies", "-o", "json")

    assert (2, b"") == (ran.code, ran.stdout)
    assert ran.stderr.startswith("assay: -f policies: policies/broken.yaml, document 1: ")
    assert ran.stderr.endswith("Correct the file, or name only the files to read\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "-f policies has no document: check the path"),
        (config_map("size"), "-f policies has no policy and no binding, only ConfigMap: check the path"),
    ],
)
def test_a_folder_without_a_policy_is_a_usage_error(
    assay: Assay, cluster: Path, write: Write, text: str, sentence: str
) -> None:
    """A mistyped folder must not look like a cluster that violates nothing; a param may be named as a file."""
    write("policies/all.yaml", text)

    folder, file = (assay("scan", "--from", "cluster", "-f", path, "-q") for path in ("policies", "policies/all.yaml"))

    assert (2, b"") == (folder.code, folder.stdout)
    assert sentence in folder.stderr
    assert (0 if text else 2) == file.code


@pytest.mark.parametrize("flags", [["--from", "clutser"], ["--from", "cluster", "-f", "./clutser"]])
def test_a_mistyped_folder_is_a_usage_error(assay: Assay, cluster: Path, flags: list[str]) -> None:
    """The message names the folder that is most like it."""
    ran = assay("scan", *flags)

    assert (2, b"") == (ran.code, ran.stdout)
    assert "there is no file or folder clutser: did you mean cluster? Otherwise check the path" in ran.stderr


def test_a_policy_that_the_api_would_reject_is_a_gap(assay: Assay, cluster: Path, write: Write) -> None:
    """The gap names file, document and field, and has the error of the API."""
    write("policies/bad.yaml", bound("bad", expression="object.metadata.name ="))

    ran = assay("scan", "--from", "cluster", "-f", "policies", "-o", "json")

    assert 3 == ran.code
    assert "spec.validations[0].expression: Invalid value" in gaps(ran)["policies/bad.yaml, document 1"]


def test_without_a_cluster_the_command_could_not_run(assay: Assay) -> None:
    """Neither a kubeconfig nor a pod names a cluster."""
    ran = assay("scan")

    assert (4, b"") == (ran.code, ran.stdout)
    assert ran.stderr.startswith("assay: no cluster to scan: there is no kubeconfig")
    assert "--from" in ran.stderr


def test_a_cluster_that_does_not_answer_is_named(assay: Assay, write: Write, closed_port: int) -> None:
    """The message has the address and the cluster of the context, and no traceback."""
    write("config", kubeconfig(f"https://127.0.0.1:{closed_port}"))

    ran = assay("scan", "--kubeconfig", "config", "--request-timeout", "2s")

    assert (4, 1) == (ran.code, len(ran.stderr.splitlines()))
    assert f"https://127.0.0.1:{closed_port} cannot be reached (Connection refused)" in ran.stderr


@pytest.mark.parametrize(
    ("text", "context", "reason"),
    [
        ("{", "", "the kubeconfig config cannot be read: it is no valid YAML in line 2, column 1; check it with"),
        ("[]", "", "config"),
        ("just text", "", "config"),
        ("", "", "config"),
        (kubeconfig("https://127.0.0.1:1"), "elsewhere", "elsewhere"),
        (kubeconfig("not a url"), "", "not a url"),
        ('{"apiVersion": "v1", "kind": "Config", "current-context": "x"}', "", "x"),
    ],
)
def test_an_invalid_kubeconfig_is_named(assay: Assay, write: Write, text: str, context: str, reason: str) -> None:
    """The command ends with one sentence that names the file."""
    write("config", text)

    ran = assay("scan", "--kubeconfig", "config", "--context", context)

    assert (4, 1) == (ran.code, len(ran.stderr.splitlines())), ran.stderr
    assert ran.stderr.startswith("assay: ")
    assert reason in ran.stderr


def test_a_missing_kubeconfig_is_named(assay: Assay) -> None:
    """The message has the path."""
    ran = assay("scan", "--kubeconfig", "nowhere")

    assert (4, "assay: there is no kubeconfig nowhere: check the path given with --kubeconfig\n") == (
        ran.code,
        ran.stderr,
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("/proc/assay.db", "cannot be created or written"),
        ("folder", "cannot be created or written (Is a directory)"),
        ("garbage.db", "is not a database"),
        ("cluster/object.yaml", "is not a database"),
        ("foreign.db", "has tables of another program"),
        ("postgresql://nobody@127.0.0.1:{port}/none", "does not answer"),
    ],
)
def test_a_database_that_cannot_be_used_is_named(
    assay: Assay, cluster: Path, home: Path, closed_port: int, url: str, reason: str
) -> None:
    """Before the scan begins, one sentence has the database, the reason and the remedy."""
    (home / "folder").mkdir()
    (home / "garbage.db").write_bytes(b"neither a database nor anything else" * 100)
    foreign(home / "foreign.db")

    ran = assay("scan", "--from", "cluster", "--db", url.format(port=closed_port), "-q")

    assert (4, b"", 1) == (ran.code, ran.stdout, len(ran.stderr.splitlines())), ran.stderr
    assert reason in ran.stderr
    assert "password" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--from", "cluster", "--db", "/proc/assay.db"], 4),
        (["--from", "cluster", "--db", "garbage.db"], 5),
        (["--from", "cluster", "--db", "foreign.db"], 5),
        (["--from", "cluster", "--db", "postgresql://nobody@127.0.0.1:{port}/none"], 4),
        (["--kubeconfig", "nowhere"], 5),
        (["--kubeconfig", "config", "--context", "elsewhere"], 5),
        (["--kubeconfig", "config", "--request-timeout", "2s"], 4),
    ],
)
def test_a_job_learns_that_no_other_try_can_mend_an_error(
    assay: Assay,
    cluster: Path,
    home: Path,
    write: Write,
    closed_port: int,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
) -> None:
    """With `ASSAY_JOB=1` the code is 5 until a user acts; what may be over at the next try keeps 4."""
    monkeypatch.setenv("ASSAY_JOB", "1")
    (home / "garbage.db").write_bytes(b"neither a database nor anything else" * 100)
    foreign(home / "foreign.db")
    write("config", kubeconfig(f"https://127.0.0.1:{closed_port}"))

    assert code == assay("scan", *(each.format(port=closed_port) for each in arguments)).code


def foreign(path: Path) -> None:
    """Create the database of another program."""
    connection = sqlite3.connect(path)
    connection.execute("create table notes (text)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("command", ["report", "scans", "policies", "explain"])
def test_reading_creates_no_database(assay: Assay, home: Path, command: str) -> None:
    """A command that only reads creates no file for a misspelt path."""
    ran = assay(command, *(["x"] if command == "explain" else []), "--db", "mispelt.db")

    assert 2 == ran.code
    assert (
        "assay: The database mispelt.db does not exist. Create it with `assay scan`, or name another one with --db.\n"
        == (ran.stderr)
    )
    assert not (home / "mispelt.db").exists()


def test_a_password_is_never_shown(assay: Assay, cluster: Path, closed_port: int) -> None:
    """The error of a database has its URL without the password."""
    url = f"postgresql://me:hunter2@127.0.0.1:{closed_port}/none?sslpassword=hunter3"

    ran = assay("scan", "--from", "cluster", "--db", url)

    assert 4 == ran.code
    assert "hunter" not in ran.stderr
