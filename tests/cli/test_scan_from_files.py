"""`assay scan --from`: the content of each stream, and the effect of the flags of the scope."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.model.json import as_list, as_text, dig
from tests.cli.conftest import EXAMPLES, Assay
from tests.cli.manifests import bound, config_map, policy
from tests.command import Ran
from tests.command import assay as command

Write = Callable[[str, str], Path]


@pytest.fixture
def cluster(write: Write) -> Path:
    """A folder with two ConfigMaps in two namespaces, and a policy that both violate."""
    write("cluster/red.yaml", config_map("first", namespace="red"))
    write("cluster/blue.yaml", config_map("second", namespace="blue"))
    write("cluster/policy.yaml", bound("strict"))
    return Path("cluster")


def names(ran: Ran, section: str = "findings") -> list[str]:
    """The names of the objects in a section of the report."""
    return [as_text(dig(finding, "object", "name")) for finding in as_list(ran.report[section])]


def test_a_scan_of_files_is_complete(assay: Assay, cluster: Path) -> None:
    """Objects, policy and binding come from one folder; nothing else is needed."""
    ran = assay("scan", "--from", cluster, "-o", "json")

    assert (0, ["second", "first"]) == (ran.code, names(ran))


def test_json_is_alone_on_standard_output(assay: Assay, cluster: Path) -> None:
    """Standard output parses as JSON; all other text is on standard error."""
    ran = assay("scan", "--from", cluster, "-o", "json")

    assert "1.3" == ran.report["schemaVersion"]
    assert ["Scanning cluster (v1.37) into ", "listed v1 ConfigMap: 2 objects, 2 evaluated"] == [
        line.partition("/")[0] if line.startswith("Scanning") else line for line in ran.stderr.splitlines()[:2]
    ]


def test_the_table_is_alone_on_standard_output(assay: Assay, cluster: Path) -> None:
    """The table begins with the scan and ends with a command; progress is on standard error."""
    ran = assay("scan", "--from", cluster)

    lines = ran.stdout.decode().splitlines()
    assert ("Scan ", "  assay report ") == (lines[0][:5], lines[-1][:15])
    assert "listed v1 ConfigMap" in ran.stderr
    assert "listed" not in "".join(lines[:2])


def test_quiet_leaves_standard_error_empty(assay: Assay, cluster: Path) -> None:
    """-q prints nothing on standard error."""
    ran = assay("scan", "--from", cluster, "-q", "-o", "json")

    assert "" == ran.stderr


def test_verbose_prints_every_page(assay: Assay, cluster: Path) -> None:
    """With -v standard error has a line for each page."""
    ran = assay("scan", "--from", cluster, "-v")

    assert "page 1 of v1 ConfigMap: 2 objects, 2 evaluated, " in ran.stderr


def test_the_report_is_written_as_pages(assay: Assay, cluster: Path, home: Path) -> None:
    """With --html standard error names the first page."""
    ran = assay("scan", "--from", cluster, "--html", "pages")

    assert "Report: pages/index.html\n" in ran.stderr
    assert "strict" in (home / "pages" / "index.html").read_text()


def test_a_folder_with_other_files_is_not_overwritten(assay: Assay, cluster: Path, write: Write) -> None:
    """The reason is stated before the scan begins."""
    write("pages/thesis.txt", "years of work")

    ran = assay("scan", "--from", cluster, "--html", "pages")

    assert (2, b"") == (ran.code, ran.stdout)
    assert "thesis.txt" in ran.stderr.splitlines()[-1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("flags", "left"),
    [
        (["-n", "red"], ["first"]),
        (["-n", "red", "-n", "blue"], ["second", "first"]),
        (["-A"], ["second", "first"]),
        (["--exclude-namespace", "re*"], ["second"]),
        (["-l", "app=web"], []),
        (["--kind", "ConfigMap"], ["second", "first"]),
        (["--kind", "pods"], []),
        (["--skip-kind", "configmaps"], []),
        (["--policy", "str*"], ["second", "first"]),
        (["--binding", "strict"], ["second", "first"]),
    ],
)
def test_a_limited_scope_is_complete(assay: Assay, cluster: Path, flags: list[str], left: list[str]) -> None:
    """Objects that flags leave out are not evaluated, and make no scan incomplete."""
    ran = assay("scan", "--from", cluster, "-o", "json", *flags)

    assert (0, left) == (ran.code, names(ran))


def test_policies_come_from_files_of_their_own(assay: Assay, cluster: Path, write: Write) -> None:
    """-f adds to the policies among the manifests; with --no-cluster-policies only those of -f are used."""
    write("mine.yaml", bound("lenient", expression="object.metadata.name != 'first'"))

    both = assay("scan", "--from", cluster, "-f", "mine.yaml", "-o", "json")
    mine = assay("scan", "--from", cluster, "-f", "mine.yaml", "--no-cluster-policies", "-o", "json")

    assert ["first", "second", "first"] == names(both)
    assert ["first"] == names(mine)


def test_standard_input_is_a_file_too(home: Path, cluster: Path) -> None:
    """`--from -` reads standard input."""
    text = "\n---\n".join([config_map("piped"), bound("strict")])
    ran = command("scan", "--from", "-", "-o", "json", home=home, stdin=text.encode())

    assert (0, ["piped"]) == (ran.code, names(ran))
    assert "stdin" == dig(ran.report, "provenance", "cluster", "name")


@pytest.mark.long
@pytest.mark.parametrize(
    ("assumed", "actions"),
    [("graceful-shutdown", "Deny"), ("graceful-shutdown=Warn", "Warn"), ("graceful-shutdown=audit", "Audit")],
)
def test_an_unbound_policy_can_be_previewed(assay: Assay, assumed: str, actions: str) -> None:
    """--assume-bound evaluates a policy without a binding, with the given action in any case."""
    files = ("--from", EXAMPLES / "cluster" / "after", "-f", EXAMPLES / "policies-unbound")

    ran = assay("scan", *files, "--assume-bound", assumed, "-o", "json")

    assert {actions} == {
        as_text(action) for finding in as_list(ran.report["findings"]) for action in as_list(dig(finding, "actions"))
    }
    assert 9 <= len(as_list(ran.report["findings"]))
    assert "assumed:graceful-shutdown" == dig(as_list(ran.report["findings"])[0], "binding")


@pytest.mark.long
def test_scans_of_one_name_share_a_history(assay: Assay, write: Write) -> None:
    """With --cluster-name two folders are two states of one cluster; without it they are two clusters."""
    for state in ("monday", "tuesday"):
        write(f"{state}/all.yaml", f"{config_map('same')}---\n{bound('strict')}")

    apart = [assay("scan", "--from", state, "-o", "json") for state in ("monday", "tuesday")]
    together = [
        assay("scan", "--from", state, "--cluster-name", "shop", "-o", "json") for state in ("monday", "tuesday")
    ]

    assert ["new", "new"] == [dig(as_list(ran.report["findings"])[0], "status") for ran in apart]
    assert ["new", "open"] == [dig(as_list(ran.report["findings"])[0], "status") for ran in together]


def test_hostile_names_stay_text(assay: Assay, write: Write) -> None:
    """Names and messages in the table and the progress do not steer the terminal."""
    escape = "\\u001b[31m"
    write("cluster/policy.yaml", bound("strict", message=f"{escape}red"))
    write("cluster/object.yaml", config_map(f'"a{escape}b"', namespace=f'"shop{escape}"'))

    ran = assay("scan", "--from", "cluster", "--cluster-name", "evil\x1b[2J")

    assert b"\x1b" not in ran.stdout
    assert "\x1b" not in ran.stderr
    assert "shop\\x1b[31m" in ran.stdout.decode()


def test_names_that_the_terminal_lacks_are_spelled_out(home: Path, write: Write) -> None:
    """On an ASCII output other characters are escaped."""
    write("cluster/all.yaml", f"{config_map('x', namespace='straße')}---\n{bound('strict')}")

    ran = command("scan", "--from", "cluster", home=home, variables={"PYTHONIOENCODING": "ascii"})

    assert 0 == ran.code
    assert b"stra\\xdfe" in ran.stdout


def test_the_database_is_named_by_a_variable(
    assay: Assay, cluster: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ASSAY_DB names the database, --db has priority, and the default is a file in the user's data directory."""
    assay("scan", "--from", cluster)
    monkeypatch.setenv("ASSAY_DB", "sqlite:///named.db")
    assay("scan", "--from", cluster)
    assay("scan", "--from", cluster, "--db", "flag.db")

    assert (home / ".local/share/assay/assay.db").exists()
    assert (home / "named.db").exists()
    assert (home / "flag.db").exists()


def test_an_unbound_policy_is_named_with_the_remedy(assay: Assay, write: Write) -> None:
    """A policy without binding is no finding and no gap; the table names the flag that previews it."""
    write("cluster/all.yaml", f"{config_map('x')}---\n{policy('loose')}")

    ran = assay("scan", "--from", "cluster")

    assert 3 == ran.code
    assert "No policy is bound. Preview a policy with `assay preview --bind POLICY`." in ran.stdout.decode()
