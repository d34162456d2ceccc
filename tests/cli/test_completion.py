"""Shell completion, as bash requests it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from scanner.store.completion import NameQuery, list_ids, list_names, list_objects
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_explain import Write
from tests.command import assay_here
from tests.store.databases import database

KUBECONFIG = """\
contexts:
  - {name: production, context: {}}
  - {name: preview, context: {}}
  - {name: staging, context: {}}
"""


@pytest.fixture
def scanned(assay: Assay, write: Write) -> Assay:
    """A default database with one scan."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict-labels')}")
    assay("scan", "--from", "all.yaml", "-q")
    return assay


def completed(home: Path, *words: str, **variables: str) -> list[str]:
    """The completions of the last word. A message on stderr would appear in the middle of the command line."""
    asked = {
        "_ASSAY_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("assay", *words)),
        "COMP_CWORD": str(len(words)),
    }
    ran = assay_here(home=home, variables={**asked, **variables})
    assert (0, "") == (ran.code, ran.stderr)
    return ran.stdout.decode().split()


def test_policies(scanned: Assay, home: Path) -> None:
    """Of the default database."""
    assert ["strict-labels"] == completed(home, "explain", "str")


def test_the_database_of_the_configuration(scanned: Assay, home: Path, write: Write) -> None:
    """A file names it, as for the command itself."""
    scanned("scan", "--from", "all.yaml", "-q", "--db", "other.db")
    write("assay.yaml", "db: other.db\n")
    (home / ".local").rename(home / "gone")

    assert ["strict-labels"] == completed(home, "explain", "str")


def test_problems_and_findings(scanned: Assay, home: Path) -> None:
    """By their first characters."""
    report = json.loads(scanned("report", "-o", "json").stdout)["findings"][0]

    assert [report["problem"]] == completed(home, "explain", report["problem"][:4])
    assert [report["id"]] == completed(home, "findings", report["id"][:3])


@pytest.mark.parametrize("begin", ["ConfigMap/", "shop/o"])
def test_objects_by_kind_and_by_namespace(scanned: Assay, home: Path, begin: str) -> None:
    """After the slash."""
    assert [f"{begin.partition('/')[0]}/one"] == completed(home, "explain", begin)
    assert [] == completed(home, "explain", "Config")


def test_scans(scanned: Assay, home: Path) -> None:
    """And the word for the last one."""
    scan = json.loads(scanned("report", "-o", "json").stdout)["provenance"]["scanId"]

    assert [scan] == completed(home, "report", scan[:6])
    assert ["last"] == completed(home, "report", "la")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("diff", "last", ""), "scan"),
        (("waiver", "check", "--scan", ""), "scan"),
        (("waiver", "propose", "--scan", ""), "scan"),
        (("report", "--baseline", ""), "scan"),
        (("policies", "--scan", ""), "scan"),
        (("controls", "--scan", ""), "scan"),
        (("explain", "strict", "--scan", ""), "scan"),
        (("trend", "--policy", "s"), "policy"),
        (("findings", "--policy", "s"), "policy"),
        (("scan", "--policy", "s"), "policy"),
        (("waiver", "propose", "--policy", "s"), "policy"),
        (("report", "--cluster-name", ""), "cluster"),
        (("trend", "--cluster-name", ""), "cluster"),
        (("runs", "--cluster-name", ""), "cluster"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else value,
)
def test_every_place_of_a_name_is_completed(scanned: Assay, home: Path, words: tuple[str, ...], kind: str) -> None:
    """Scans, policies and clusters, of every command."""
    scan = json.loads(scanned("report", "-o", "json").stdout)["provenance"]["scanId"]
    names = {"scan": ["last", scan], "policy": ["strict-labels"], "cluster": ["all.yaml"]}

    assert names[kind] == completed(home, *words)


def test_contexts(home: Path, write: Write) -> None:
    """Of the kubeconfig that the command would read."""
    write("config", KUBECONFIG)

    assert ["preview", "production"] == completed(home, "scan", "--context", "pr", KUBECONFIG="config")


@pytest.mark.parametrize("content", [None, "", "no database"])
def test_no_usable_database_has_no_names(home: Path, content: str | None) -> None:
    """No message, and no new file."""
    path = home / "assay.db"
    if content is not None:
        path.write_text(content)

    assert [] == completed(home, "explain", "a", ASSAY_DB=str(path))
    assert path.exists() == (content is not None)


@pytest.mark.parametrize(
    "content",
    ["[" * 50_000, "a0: &x0 {k: v}\n" + "".join(f"a{n}: &x{n} {{<<: [*x{n - 1}, *x{n - 1}]}}\n" for n in range(1, 60))],
)
def test_a_hostile_kubeconfig_has_no_contexts(home: Path, write: Write, content: str) -> None:
    """A shell waits for the answer."""
    write("config", content)

    assert [] == completed(home, "scan", "--context", "p", KUBECONFIG="config")


def test_a_named_pipe_beside_a_kubeconfig_is_skipped(home: Path, write: Write) -> None:
    """The contexts of the other files are completed."""
    write("config", KUBECONFIG)
    os.mkfifo(home / "pipe")

    assert ["preview", "production"] == completed(home, "scan", "--context", "pr", KUBECONFIG="pipe:config:missing")


def test_a_broken_kubeconfig_has_no_contexts(home: Path, write: Write) -> None:
    """The command itself reports what is wrong."""
    write("config", "contexts: [")

    assert [] == completed(home, "scan", "--context", "p", KUBECONFIG="config")


def test_postgresql_has_the_same_names(assay: Assay, tmp_path: Path, write: Write) -> None:
    """The same queries on the server."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict-labels')}")
    with database("postgresql", tmp_path) as url:
        assay("scan", "--from", "all.yaml", "-q", "--db", url)
        report = json.loads(assay("report", "-o", "json", "--db", url).stdout)["findings"][0]

        assert ["strict-labels"] == list_names(url, NameQuery.POLICIES)
        assert ([report["problem"]], [report["id"]]) == (list_ids(url, "p-"), list_ids(url, report["id"][0]))
        assert [["ConfigMap/one"], ["shop/one"]] == [list_objects(url, begin) for begin in ("ConfigMap/o", "shop/")]
