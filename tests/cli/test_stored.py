"""The commands that read stored scans: reports, scans, policies and explanations."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from scanner.model.json import as_list, as_text, dig
from tests.cli.conftest import EXAMPLES, Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]


@pytest.fixture
def twice(assay: Assay, write: Write) -> Assay:
    """A database with two scans of one cluster: the second object is fixed before the second scan."""
    policy = bound("strict", expression="has(object.data)", message="no data")
    write("monday/all.yaml", f"{config_map('one')}---\n{config_map('two')}---\n{policy}")
    write("tuesday/all.yaml", f"{config_map('one')}---\n{config_map('two')}data: {{a: b}}\n---\n{policy}")
    for state in ("monday", "tuesday"):
        assert 0 == assay("scan", "--from", state, "--cluster-name", "shop", "-q").code
    return assay


@pytest.fixture(scope="session")
def examples_scanned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a scan of the example cluster."""
    return tmp_path_factory.mktemp("examples") / "assay.db"


@pytest.fixture
def examples(assay: Assay, examples_scanned: Path) -> Assay:
    """The command with the scanned example cluster as its database."""
    if not examples_scanned.exists():
        where = ("--from", EXAMPLES / "cluster" / "after", "-f", EXAMPLES / "policies")
        assert 3 == assay("scan", *where, "--db", examples_scanned, "-q").code
    return lambda *arguments: assay(*arguments, "--db", examples_scanned)


def test_report_shows_the_last_scan_again(twice: Assay) -> None:
    """Without arguments the newest scan is rendered, with the same bytes each time."""
    first, second = (twice("report", "-o", "json") for _ in range(2))

    assert (0, first.stdout) == (second.code, second.stdout)
    assert (["one"], ["two"]) == tuple(
        [dig(finding, "object", "name") for finding in as_list(first.report[section])]
        for section in ("findings", "resolved")
    )


def test_report_shows_an_older_scan_as_it_was(twice: Assay) -> None:
    """`last~1` is the previous scan, in which the fixed finding is open."""
    ran = twice("report", "last~1", "-o", "json")

    assert ["one", "two"] == [dig(finding, "object", "name") for finding in as_list(ran.report["findings"])]
    assert [] == ran.report["resolved"]


def test_report_finds_a_scan_by_the_beginning_of_its_id(twice: Assay) -> None:
    """An unambiguous beginning of an id is enough."""
    scan_id = as_text(dig(twice("report", "last~1", "-o", "json").report, "provenance", "scanId"))

    ran = twice("report", scan_id[:-1], "-o", "json")

    assert scan_id == dig(ran.report, "provenance", "scanId")


def test_report_writes_pages(twice: Assay, home: Path) -> None:
    """--html renders a stored scan."""
    ran = twice("report", "--html", "pages")

    assert 0 == ran.code
    assert (home / "pages/index.html").exists()


def test_report_is_a_report_even_of_an_incomplete_scan(examples: Assay) -> None:
    """The exit code is 0, because rendering has worked."""
    assert 0 == examples("report").code


@pytest.mark.parametrize("text", ["last~7", "20010101", "nonsense"])
def test_an_unknown_scan_is_a_usage_error(twice: Assay, text: str) -> None:
    """The message lists the scans."""
    ran = twice("report", text)

    assert (2, b"") == (ran.code, ran.stdout)
    assert re.fullmatch(rf"assay: There is no scan '{text}': the newest are \S+, \S+\. .*\n", ran.stderr)


def test_a_cluster_is_chosen_by_name(twice: Assay, write: Write) -> None:
    """In a database of several clusters, --cluster-name selects the cluster of the last scan."""
    write("other/all.yaml", f"{config_map('three')}---\n{bound('other')}")
    twice("scan", "--from", "other", "--cluster-name", "depot", "-q")

    newest = twice("report", "-o", "json")
    shop = twice("report", "-o", "json", "--cluster-name", "shop")
    policies = twice("policies", "--cluster-name", "shop")
    explained = twice("explain", "strict", "--cluster-name", "shop")

    assert ("depot", "shop") == tuple(dig(ran.report, "provenance", "cluster", "name") for ran in (newest, shop))
    assert b"strict" in policies.stdout
    assert 0 == explained.code


def test_scans_lists_the_newest_first(twice: Assay) -> None:
    """Each scan has a line with its time, cluster, state and changes."""
    ran = twice("scans")

    head, *lines = [line.split() for line in ran.stdout.decode().splitlines()]
    assert ["SCAN", "CLUSTER", "STARTED", "STATE", "FINDINGS", "NEW", "RESOLVED"] == head
    assert [["shop", "complete", "1", "0", "1"], ["shop", "complete", "2", "2", "0"]] == [
        [line[1], *line[-4:]] for line in lines
    ]


def test_scans_can_be_limited(twice: Assay) -> None:
    """--limit 1 shows the newest scan."""
    assert 2 == len(twice("scans", "--limit", "1").stdout.splitlines())


def test_a_database_without_scans_is_reported_with_the_remedy(assay: Assay) -> None:
    """The message names the command that makes a scan."""
    assay("db", "upgrade")

    scans, report = assay("scans"), assay("report")

    assert (0, b"", "The database has no scans. Run: assay scan\n") == (
        scans.code,
        scans.stdout,
        scans.stderr,
    )
    assert (2, "assay: There is no scan 'last': the database has no scans. Run: assay scan.\n") == (
        report.code,
        report.stderr,
    )


def test_policies_lists_the_bindings_of_each(examples: Assay) -> None:
    """Each policy has a line with its bindings, their actions, and the number of objects that it matched."""
    lines = {line.split()[0]: line for line in examples("policies").stdout.decode().splitlines()}

    assert 17 == len(lines)
    assert "host-access (Deny), host-access-exempt (Audit)" in re.sub(" +", " ", lines["host-access"])
    assert "none: never evaluated" in lines["egress-rules"]
    assert re.search(r"owner \(Warn\+Audit\) +\d\d ", lines["owner"])


def test_explain_prints_a_policy(examples: Assay) -> None:
    """The output has its matching rules, variables, validations, bindings and findings."""
    text = examples("explain", "replica-limits").stdout.decode()

    assert "matches deployments, statefulsets of apps/v1 for CREATE, UPDATE" in text
    assert "params are ConfigMap objects of v1" in text
    assert "variables.limit =\n    int(params.data.maxReplicas)\n" in text
    assert "validation 0 requires\n    variables.replicas <= variables.limit\n" in text
    assert "binding replica-limits-production: Deny, params: replica-limits-production in namespace platform" in text
    assert re.search(r"it matched \d+ objects? and has \d+ findings?:\n    [0-9a-f]{12}  ", text)


def test_explain_states_that_a_policy_is_not_bound(examples: Assay) -> None:
    """The output names the flag that previews the policy."""
    text = examples("explain", "egress-rules").stdout.decode()

    assert "Not bound. Preview the policy with: assay preview --bind egress-rules" in text


def test_explain_prints_policy_health(examples: Assay) -> None:
    """Policy health is part of the explanation."""
    text = examples("explain", "gateway-hosts").stdout.decode()

    assert "Health: spec.matchConstraints.resourceRules[0] matches no kind that the cluster serves and lists" in text


@pytest.mark.parametrize("digits", [6, 12, 64])
def test_explain_prints_a_finding(examples: Assay, digits: int) -> None:
    """The beginning of the fingerprint finds it: object, check, message, effect and history."""
    findings = json.loads(examples("report", "-o", "json").stdout)["findings"]
    explained = next(
        finding
        for finding in findings
        if finding["policy"] == "host-access" and finding["outcome"] == "violated" and finding["wouldDeny"]
    )

    text = examples("explain", explained["fingerprint"][:digits]).stdout.decode()

    assert text.startswith(
        f"Finding {explained['id']}: {explained['object']['apiVersion']} {explained['object']['kind']} "
    )
    assert f"Violated: {explained['message']}  ({explained['reason']}, {explained['code']})" in text
    assert "This object would be refused on CREATE (actions: Deny)." in text
    assert "now new." in text


def test_explain_states_the_effect_of_an_error(examples: Assay) -> None:
    """An error that failurePolicy Ignore admits is explained as such."""
    findings = json.loads(examples("report", "-o", "json").stdout)["findings"]
    explained = next(
        finding for finding in findings if finding["policy"] == "database-settings" and finding["outcome"] == "errored"
    )

    text = examples("explain", explained["id"]).stdout.decode()

    assert "Errored: expression 'int(object.data['max-connections']) <= 500' resulted in error: no such key" in text
    assert "This object would be admitted on" in text


def test_explain_prints_resolved_findings(twice: Assay) -> None:
    """A fixed finding is still found."""
    [gone] = as_list(twice("report", "-o", "json").report["resolved"])

    text = twice("explain", as_text(dig(gone, "id"))).stdout.decode()

    assert "ConfigMap shop/two" in text
    assert "Z: the workload was fixed." in text


@pytest.mark.parametrize(
    ("what", "policies"), [("strickt", "Did you mean strict?"), ("zzz", "The policies are: strict.")]
)
def test_explain_rejects_other_names(twice: Assay, what: str, policies: str) -> None:
    """The message for a text that is neither a policy nor an id has the nearest policy, else all of them."""
    ran = twice("explain", what)

    sentence = f"assay: {what!r} is neither a policy of the scan nor the id of a finding or problem. {policies}"
    others = "For a workload or object, write KIND/NAME or NAMESPACE/NAME."
    assert (2, f"{sentence} {others}\n") == (ran.code, ran.stderr)


def test_an_unknown_finding_is_a_usage_error(twice: Assay) -> None:
    """No finding has the id."""
    ran = twice("explain", "000000000000")

    assert 2 == ran.code
    assert ran.stderr.startswith("assay: There is no finding '000000000000' in this database.")


def test_upgrade_states_whether_it_changed_the_database(assay: Assay) -> None:
    """The first run creates the database, the second changes nothing."""
    first, second = (assay("db", "upgrade", "--db", "assay.db") for _ in range(2))

    assert (0, "The database assay.db was upgraded to the schema of this version.\n") == (first.code, first.stderr)
    assert (0, "The database assay.db already has the schema of this version.\n") == (second.code, second.stderr)


@pytest.mark.parametrize("flags", [[], ["--no-backup"]])
def test_upgrade_copies_the_file_and_says_how_to_go_back(assay: Assay, home: Path, flags: list[str]) -> None:
    """With the command that puts the copy in its place; --no-backup makes no copy."""
    old = Path(__file__).parents[1] / "store" / "old" / "0001.sql"
    with closing(sqlite3.connect(home / "assay.db")) as connection:
        connection.executescript(old.read_text("utf-8"))

    first, *rest = assay("db", "upgrade", "--db", "assay.db", *flags).stderr.splitlines()

    copies = [path.name for path in home.glob("*.bak")]
    assert "The database assay.db was upgraded to the schema of this version." == first
    command = "To go back: install the earlier version of Assay, end all scans, and run: rm -f assay.db-wal assay.db-shm && mv"
    assert [f"{command} {name} assay.db" for name in copies] == [line.partition(". ")[2] for line in rest]
    assert (0 if flags else 1) == len(copies)


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_version(assay: Assay, arguments: list[str]) -> None:
    """The command and the flag print the version alone."""
    ran = assay(*arguments)

    assert 0 == ran.code
    assert re.fullmatch(rb"assay \d+\.\d+\.\d+\n", ran.stdout)
