"""One policy across clusters: where it is bound, whether its text is the same, and where it is missing."""

from __future__ import annotations

import pytest

from tests.web.fleets import LABELS, LOOSE_REPLICAS, REPLICAS
from tests.web.served import Served

_OK, _BAD, _MISSING = 200, 400, 404
POLICY = "/policies/ValidatingAdmissionPolicy/replicas"


def test_the_list_has_every_policy_with_the_numbers_of_clusters(fleet: Served) -> None:
    """Bound in four, in two versions; the policy for labels is missing in one cluster, whose scan was complete."""
    page = fleet.get("/policies")
    [replicas] = page.rows("replicas ")
    [labels] = page.rows("labels ")
    assert replicas.split(" | ")[1:] == ["high", "4", "0", "0", "2", "4", "5", "1"]
    assert labels.split(" | ")[1:] == ["medium", "3", "0", "1", "1", "1", "1", "1"]


def test_clusters_with_equal_rules_are_named_together(fleet: Served) -> None:
    """By the digest of their policy sets."""
    rows = fleet.get("/policies").rows("1111111111111111") + fleet.get("/policies").rows("2222222222222222")
    assert rows == ["1111111111111111 | 3 | partial, prod, silent", "2222222222222222 | 1 | stage"]


def test_a_cluster_without_numbers_is_named(fleet: Served) -> None:
    """Nothing is known about the policies of a cluster whose scans failed."""
    for path in ("/policies", POLICY, "/workloads?name=web"):
        assert "1 cluster is not in these numbers" in fleet.get(path).text, path


def test_policies_are_chosen_by_name(fleet: Served) -> None:
    """A part of the name is enough."""
    page = fleet.get("/policies?text=LAB")
    assert page.rows("labels ")
    assert not page.rows("replicas ")
    assert "No policy matches" in fleet.get("/policies?text=nothing").text


def test_the_next_page_begins_behind_the_last_name(fleet: Served) -> None:
    """The place is a name, so a policy that comes or goes meanwhile moves no other."""
    assert not fleet.get("/policies?after=ValidatingAdmissionPolicy/labels").rows("labels ")
    assert fleet.get("/policies?after=ValidatingAdmissionPolicy/labels").rows("replicas ")
    assert fleet.get("/policies?after=ValidatingAdmissionPolicy/laaa").rows("labels ")
    assert _BAD == fleet.get("/policies?after=nonsense").status


def test_a_policy_has_its_actions_and_its_version_in_each_cluster(fleet: Served) -> None:
    """The version of most clusters is the first."""
    page = fleet.get(POLICY)
    rows = [row.split(" | ") for row in page.rows()]
    cells = {row[0].split(" ")[0]: row[1:5] + row[6:] for row in rows if len(row) > 1}
    assert cells["prod"] == ["bound", "Deny, Audit", f"1 {REPLICAS.digest[:12]}", "replicas-binding", "2", "2", "1"]
    assert cells["stage"] == ["bound", "Audit", f"2 {LOOSE_REPLICAS.digest[:12]}", "replicas-binding", "0", "1", "0"]
    assert "in 4 of 4 clusters" in page.text


def test_different_texts_are_compared(fleet: Served) -> None:
    """Line by line, for the policy and for its bindings."""
    text = fleet.get(POLICY).text
    assert "<del>-- expression: object.spec.replicas &lt;= 5</del>" in text
    assert "<ins>+- expression: object.spec.replicas &lt;= 50</ins>" in text
    assert "<ins>+validationActions: [Audit]</ins>" in text
    assert "Version 2, in 1 cluster, against version 1" in text


def test_a_policy_that_a_complete_scan_did_not_find_is_missing(fleet: Served) -> None:
    """An incomplete scan may not have read it."""
    page = fleet.get(f"/policies/ValidatingAdmissionPolicy/{LABELS.name}")
    rows = {row.split(" ")[0]: row for row in page.rows()}
    assert " | missing | " in rows["stage"]
    assert " | bound | " in rows["partial"]


def test_the_numbers_of_a_policy_lead_to_its_findings(fleet: Served) -> None:
    """In the report of the cluster."""
    links = [link for link in fleet.get(POLICY).links("/clusters/prod") if "findings.html" in link]
    assert links
    assert {_OK} == {fleet.get(link).status for link in links}
    assert {_OK} == {fleet.get(link).status for link in fleet.get(POLICY).links("/clusters/") if "policies/" in link}


@pytest.mark.parametrize("path", ["/policies/ValidatingAdmissionPolicy/none", "/policies/Nothing/replicas"])
def test_an_unknown_policy_is_found_nowhere(fleet: Served, path: str) -> None:
    """While a cluster is without numbers, the page states that instead."""
    page = fleet.get(path)
    assert page.status in (_OK, _MISSING)
    assert "replicas-binding" not in page.text
