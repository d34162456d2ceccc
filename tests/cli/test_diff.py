"""`assay diff` compares two stored scans."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scanner.store import open_store
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_db import record
from tests.cli.test_loosened_param import POLICY
from tests.report.test_json import strict
from tests.report.test_scan_diff import SCHEMA
from tests.store.made import Round, finding

Write = Callable[[str, str], Path]


@pytest.fixture
def three(assay: Assay, write: Write) -> Assay:
    """Three scans: `b` is deleted and `c` created; then the policy of ConfigMaps is edited, and the param loosened."""
    for expression, maximum, names in (
        ("object.metadata.name == 'limits'", 5, "ab"),
        ("object.metadata.name == 'limits'", 5, "ac"),
        ("object.metadata.name in ['limits', 'a']", 20, "ac"),
    ):
        maps = (config_map(name) for name in names)
        rules = bound("maps", expression=expression), POLICY.format(title="", maximum=maximum)
        write("cluster/all.yaml", "---\n".join((*rules, *maps)))
        assert 0 == assay("scan", "--from", "cluster", "-q").code
    return assay


def document(assay: Assay, *arguments: str | Path) -> dict[str, Any]:
    """The difference as JSON."""
    ran = assay("diff", *arguments, "-o", "json")
    assert (0, "") == (ran.code, ran.stderr)
    read: dict[str, Any] = json.loads(ran.stdout)
    Draft202012Validator(strict(SCHEMA)).validate(read)
    return read


def found(read: dict[str, Any]) -> dict[str, tuple[str, str, str | None]]:
    """The change, the first cause and the resolution of each problem, by the name of its workload."""
    return {
        each["workload"]["name"]: (each["change"], each["cause"]["kind"], each["resolution"])
        for each in read["problems"]
    }


def test_the_last_two_scans_are_compared_by_default(three: Assay) -> None:
    """The object of neither problem changed: its policy or its param did."""
    read = document(three)
    assert {"a": ("resolved", "policy", "rulesChanged"), "web": ("resolved", "param", "rulesChanged")} == found(read)
    assert (["policy", "param"], True) == (read["rulesChanged"], read["comparable"])
    assert ["maps", "ConfigMap shop/limits"] == [rule["name"] for rule in read["rules"]]
    assert "-  maximum: '5'\n+  maximum: '20'" in read["rules"][1]["diff"]


def test_named_scans_are_compared(three: Assay) -> None:
    """By `last~N`; with one name, with the scan before it."""
    assert {"b": ("resolved", "objectDeleted", "objectGone"), "c": ("new", "objectNotInEarlierScan", None)} == found(
        document(three, "last~1")
    )
    first = document(three, "last~2", "last")
    assert {"a", "b", "c", "web"} == set(found(first))
    assert first == document(three, first["before"]["id"], first["now"]["id"][:20])
    assert [] == document(three, "last~2", "last~1")["rules"]


def test_the_table_names_causes_and_shows_rules(three: Assay) -> None:
    """It fits a terminal."""
    lines = three("diff").stdout.decode().splitlines()
    assert "The rules changed between the scans: policies, params." in lines
    assert "Cause: the param changed" in lines
    assert "      +  maximum: '20'" in lines
    assert 80 >= max(map(len, lines))


def test_markdown_and_limit(three: Assay) -> None:
    """The rest is counted for each cause."""
    lines = three("diff", "last~2", "last", "-o", "markdown", "--limit", "1").stdout.decode().splitlines()
    assert "# Changes in cluster" == lines[0]
    assert "2 more problems: print all with `--limit 0`." in lines
    assert "1 more rule: print all with `--limit 0`." in lines


def test_scans_without_a_difference(three: Assay) -> None:
    """The output states it, and the exit code is 0."""
    three("scan", "--from", "cluster", "-q")
    ran = three("diff")
    assert (0, "") == (ran.code, ran.stderr)
    assert "The rules are equal in both scans." in ran.stdout.decode()
    assert "Problems: none. Findings: none." in ran.stdout.decode()


def test_incomparable_scans_are_compared_on_request(three: Assay) -> None:
    """The difference is named first."""
    three("scan", "--from", "cluster", "-q", "-n", "shop")
    assert "No scan before" in three("diff", "last").stderr
    lines = three("diff", "last~1", "last").stdout.decode().splitlines()
    assert lines[0].startswith("These scans are not comparable: they differ in scope.")
    assert "  scope: everything; now namespaces shop" in lines[:3]
    assert not document(three, "last~1", "last")["comparable"]
    assert 2 == three("diff", "last", "last~1").code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("scan-1", "scan-2"), "Scan scan-1 was pruned on "),
        (("scan-2", "scan-2"), "is named twice"),
        (("scan-3", "scan-2"), "assay diff scan-2 scan-3"),
        (("nothing",), "There is no scan 'nothing'"),
    ],
)
def test_scans_that_cannot_be_compared(assay: Assay, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """A pruned scan has no difference, as it has no report."""
    path = tmp_path / "history.db"
    with open_store(str(path)) as store:
        for number, days_ago in ((1, 20), (2, 3), (3, 1)):
            record(store, number, days_ago, Round((finding("a"),)))
    assay("db", "prune", "--keep-days", "7", "--db", path)
    ran = assay("diff", *arguments, "--db", path)

    assert (2, b"") == (ran.code, ran.stdout)
    assert message in ran.stderr


def test_last_is_of_one_cluster(three: Assay, write: Write) -> None:
    """That of the newest scan, or the named one."""
    write("other/all.yaml", f"{bound('maps')}---\n{config_map('a')}")
    for _ in range(2):
        three("scan", "--from", "other", "-q")
    newest = three("diff", "last~1", "last", "-o", "json")
    assert ("other", True) == (json.loads(newest.stdout)["cluster"], "the last scan is of other" in newest.stderr)
    assert "cluster" == document(three, "--cluster-name", "cluster")["cluster"]


def test_reports_and_trends_say_that_the_rules_changed(three: Assay) -> None:
    """Compared with the last comparable scan."""
    before, now = (json.loads(three("report", scan, "-o", "json").stdout)["changes"] for scan in ("last~1", "last"))
    assert ([], ["rules"]) == (before["rulesChanged"], now["rulesChanged"])
    assert ([], ["policy", "param"]) == (before["changedRules"], now["changedRules"])
    assert json.loads(three("report", "last~2", "-o", "json").stdout)["changes"]["rulesChanged"] is None
    sentence = f"The rules changed since the last comparable scan, {now['comparableScanId']}: policies, params."
    assert 1 == three("report").stdout.decode().count(sentence)
    assert "The rules changed" not in three("report", "last~1").stdout.decode()
    three("report", "--html", "pages")
    assert 1 == Path("pages/index.html").read_text().count(sentence)


@pytest.fixture
def broken(assay: Assay, write: Write) -> Assay:
    """Two scans: in the second, the file of the object `b` cannot be read."""
    write("cluster/policy.yaml", bound("maps", expression="object.metadata.name == 'limits'"))
    write("cluster/a.yaml", config_map("a"))
    write("cluster/b.yaml", config_map("b"))
    assert 0 == assay("scan", "--from", "cluster", "-q").code
    write("cluster/b.yaml", "kind: [")
    assert 3 == assay("scan", "--from", "cluster", "-q").code
    return assay


def test_an_incomplete_scan_is_compared_and_what_it_did_not_check_is_marked(broken: Assay) -> None:
    """By default, too: the newest scan is the later one, also if it is incomplete."""
    read = document(broken)

    assert ("complete", "incomplete", 1) == (read["before"]["state"], read["now"]["state"], len(read["now"]["gaps"]))
    assert {"b": ("notChecked", "coverage", None)} == found(read)
    assert (1, 1) == (read["notChecked"], read["totals"]["problems"]["notChecked"])


def test_the_table_of_an_incomplete_scan_begins_with_its_gaps(broken: Assay) -> None:
    """In 80 columns."""
    lines = broken("diff").stdout.decode().splitlines()

    assert lines[0].startswith("INCOMPLETE: The later scan did not scan 1 item. 1 open problem was not")
    assert any("b.yaml, document 1" in line for line in lines[1:3])
    assert 80 >= max(map(len, lines))


def test_a_named_incomplete_scan_is_the_earlier_one(broken: Assay, write: Write) -> None:
    """What it did not check may have been so before: the object is back, and another one beside it."""
    write("cluster/b.yaml", f"{config_map('b')}---\n{config_map('c')}")
    assert 0 == broken("scan", "--from", "cluster", "-q").code
    read = document(broken, "last~1", "last")

    assert {"c": ("new", "coverage", None)} == found(read)
    assert [True] == [each["notCheckedBefore"] for each in read["problems"]]


def test_a_preview_is_compared_only_if_it_is_named(assay: Assay, write: Write) -> None:
    """The default leaves it out on both sides; a named one is called a preview."""
    unbound = bound("later", expression="false").partition("---\n")[0]
    write("cluster/all.yaml", "---\n".join((bound("maps", expression="false"), unbound, config_map("a"))))
    for flags in ((), ("--assume-bound", "later"), (), ("--assume-bound", "later")):
        assert 0 == assay("scan", "--from", "cluster", "-q", *flags).code
    usual, named = document(assay), document(assay, "last")

    assert [False, False, False, True] == [
        each["preview"] for read in (usual, named) for each in (read["before"], read["now"])
    ]
    assert usual["now"]["id"] == named["before"]["id"]
    assert "Preview: The later scan assumed bindings" in assay("diff", "last").stdout.decode()
    assert "Preview" not in assay("diff").stdout.decode()


def test_a_gate_names_a_baseline_that_is_a_preview(assay: Assay, write: Write) -> None:
    """By default, no preview is one: the problem that only a preview saw is new."""
    unbound = bound("later", expression="false").partition("---\n")[0]
    write("cluster/all.yaml", "---\n".join((bound("maps", expression="false"), unbound)))
    assay("scan", "--from", "cluster", "-q", "--allow-empty")
    write("cluster/all.yaml", "---\n".join((bound("maps", expression="false"), unbound, config_map("a"))))
    assay("scan", "--from", "cluster", "-q", "--assume-bound", "later")
    usual = assay("scan", "--from", "cluster", "-q", "--fail-on", "new")
    named = assay("report", "last", "--fail-on", "new", "--baseline", "last~1")

    assert (1, 0) == (usual.code, named.code)
    assert "is a preview (--assume-bound)" in named.stderr
    assert "is a preview" not in usual.stderr
