"""`--controls` and `assay controls` report by control."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map, policy
from tests.command import Ran

Write = Callable[[str, str], Path]
MAPPING = """\
apiVersion: assay.dev/v1alpha1
kind: ControlMapping
metadata: {name: house}
spec:
  title: House rules
  controls:
    - {id: "1", title: "=Clean", policies: [{name: clean}]}
    - {id: "2", title: Broken, policies: [{glob: "bro*"}]}
    - {id: "3", title: Unbound, policies: [{name: loose}]}
    - {id: "4", title: Missing, policies: [{name: clean}, {name: gone}]}
    - {id: "5", title: Elsewhere}
"""


@pytest.fixture
def scanned(assay: Assay, write: Write) -> Assay:
    """A scan of two ConfigMaps, with a policy that both pass, one that both violate, and one that is not bound."""
    rules = bound("clean", expression="true"), bound("broken"), policy("loose")
    write("cluster/all.yaml", "---\n".join((*rules, config_map("a"), config_map("b"))))
    write("controls/house.yaml", MAPPING)
    assert 0 == assay("scan", "--from", "cluster", "-q").code
    return assay


def rows_of(ran: Ran) -> list[dict[str, str]]:
    """The rows of CSV."""
    return list(csv.DictReader(StringIO(ran.stdout.decode())))


def states(ran: Ran) -> dict[str, str]:
    """The state of each control in CSV."""
    return {row["control"]: row["state"] for row in rows_of(ran)}


def test_controls_have_states_objects_and_reasons(scanned: Assay) -> None:
    """As CSV: every state, with the policies and the reason of each; formulas get a quote."""
    ran = scanned("controls", "--controls", "controls", "-o", "csv")
    rows = rows_of(ran)
    wanted = {"1": "met", "2": "violated", "3": "notCovered", "4": "notShown", "5": "notCovered"}
    assert (0, wanted) == (ran.code, states(ran))
    assert ["2", "2", "0", "2", "0"] == [row["objects"] for row in rows]
    assert ["", "", "policy loose is not bound", "no policy has the name gone", ""] == [row["why"] for row in rows]
    assert "'=Clean" == rows[0]["title"]


def test_the_table_has_sums_and_reasons_on_stderr(scanned: Assay) -> None:
    """Standard output has the table alone; `--at` chooses the scan at the end of a quarter."""
    ran = scanned("controls", "--controls", "controls/house.yaml", "--at", "2100-12-31")
    assert ["1", "met", "2", "0", "0", "1/1", "100.0", "%", "=Clean"] == ran.stdout.decode().splitlines()[1].split()
    assert "assay: House rules: 1 met · 1 violated · 1 not shown · 2 not covered\n" in ran.stderr
    assert "assay: 4: no policy has the name gone\n" in ran.stderr


def test_json_is_the_section_of_the_report(scanned: Assay) -> None:
    """`assay report` has the same section, and findings name their controls."""
    own = json.loads(scanned("controls", "--controls", "controls", "-o", "json").stdout)
    report = json.loads(scanned("report", "--controls", "controls", "-o", "json").stdout)
    assert own["controls"] == report["controls"]
    assert [["house/2"], ["house/2"]] == [finding["controls"] for finding in report["findings"]]


def test_controls_by_namespace(scanned: Assay) -> None:
    """As CSV a row for each control and namespace; on a terminal, the controls that no judged policy covers, with what would cover them."""
    flags = ("controls", "--controls", "controls", "--controls", "nsa-cisa-hardening", "--by", "namespace")
    rows = [row for row in rows_of(scanned(*flags, "-o", "csv")) if row["framework"] == "house"]
    wanted = [("1", "shop", "enforced", "0"), ("2", "shop", "enforced", "2"), ("3", "", "noPolicy", "0")]
    assert wanted == [(row["control"], row["namespace"], row["state"], row["open"]) for row in rows][:3]

    ran = scanned(*flags)
    assert ["house/2", "enforced", "1", "2", "0", "shop"] == ran.stdout.decode().splitlines()[2].split()
    assert "assay: No judged policy covers 25 controls:\n" in ran.stderr
    label = "would be covered by the Namespace label pod-security.kubernetes.io/enforce=baseline"
    assert f"assay: privileged: {label}" in ran.stderr
    assert (
        "assay: read-only-root: would be covered by the policy read-only-root of examples/policies-controls\n"
        in ran.stderr
    )
    assert "assay: tls: flags of the components decide it, and no object of the API shows them\n" in ran.stderr


def test_a_check_is_selected_by_its_expression(scanned: Assay, write: Write) -> None:
    """Findings name the controls of their own check alone, and a policy of several checks that is selected as a whole is named."""
    several = policy("several").replace("  validations:", "  validations:\n    - {expression: 'true'}", 1)
    write("cluster/several.yaml", several)
    checks = MAPPING.replace("policies: [{name: clean}]", "checks: [{expression: ' false '}]", 1)
    write("controls/house.yaml", checks.replace("policies: [{name: loose}]", "policies: [{name: several}]"))
    scanned("scan", "--from", "cluster", "-q")
    findings = json.loads(scanned("report", "--controls", "controls", "-o", "json").stdout)["findings"]
    assert [["house/1", "house/2"]] * 2 == [finding["controls"] for finding in findings]
    ran = scanned("controls", "--controls", "controls")
    assert "1 control selects all checks of a policy with several, such as 3 those of several: a failure" in ran.stderr


def test_a_narrowed_scan_shows_no_control_as_met(scanned: Assay) -> None:
    """Its report says so at once; a violation stays one, and the reason names the limit."""
    narrowed = scanned("scan", "--from", "cluster", "-q", "-n", "shop", "--controls", "controls")
    assert "House rules: 1 violated · 2 not shown · 2 not covered" in narrowed.stdout.decode()
    ran = scanned("controls", "--controls", "controls", "-o", "csv")
    first = rows_of(ran)[0]
    assert {"1": "notShown", "2": "violated"}.items() <= states(ran).items()
    assert "the scan was limited to namespaces shop" == first["why"]


def test_a_scan_without_some_policies_covers_no_control_for_sure(scanned: Assay) -> None:
    """A policy that `--policy` left out may serve the control."""
    scanned("scan", "--from", "cluster", "-q", "--policy", "clean")
    ran = scanned("controls", "--controls", "controls", "-o", "csv")
    assert {"1": "notShown", "2": "notShown", "5": "notCovered"}.items() <= states(ran).items()


def test_an_error_in_a_mapping_ends_a_scan_before_it_begins(scanned: Assay, write: Write) -> None:
    """Exit code 2, with line and column; no scan is recorded."""
    write("controls/house.yaml", MAPPING.replace("title: Broken", "titel: Broken"))
    for command in (("scan", "--from", "cluster", "-q"), ("report",), ("controls",)):
        ran = scanned(*command, "--controls", "controls")
        assert 2 == ran.code
        assert "house.yaml, line 8, column 17: unknown field spec.controls[1].titel. Did you mean title?" in ran.stderr
    assert 1 == scanned("scans").stdout.count(b"complete")


def test_controls_need_a_mapping(assay: Assay) -> None:
    """A list of no control would look like a clean one."""
    ran = assay("controls")
    assert (2, True) == (ran.code, "name a file or folder with --controls PATH" in ran.stderr)


def test_standard_input_is_read_once(assay: Assay) -> None:
    """Objects and mappings cannot both come from it."""
    ran = assay("scan", "--from", "-", "--controls", "-")
    assert (2, True) == (ran.code, "standard input (-) can be read only once" in ran.stderr)
