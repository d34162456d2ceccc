"""Kyverno's older policies are counted and not evaluated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from scanner.model.scans.out_of_scope import OutOfScope, Unneeded
from scanner.model.scans.scan import ScanState
from scanner.policies.kyverno.legacy import LEGACY_KINDS
from scanner.rbac import list_permissions
from scanner.report.document.coverage import legacy_line, unneeded_of
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.command import assay_here
from tests.documents import KINDS
from tests.policies.kyverno.made import pod, policy
from tests.policies.kyverno.test_scanned import KYVERNO, TEAM
from tests.scan.fakes import FakeCluster, Recorded, forbidden, scanned

ENDING: Final = ": Kyverno 1.20 plans to stop running them"


def legacy(
    *rules: Any, kind: str = "ClusterPolicy", version: str = "v1", name: str = "old", namespace: str = "", **spec: Any
) -> Any:
    """A policy of the group kyverno.io."""
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    body = {"rules": [{"name": str(number), **rule} for number, rule in enumerate(rules)], **spec}
    return {"apiVersion": f"kyverno.io/{version}", "kind": kind, "metadata": metadata, "spec": body}


def scan_of(*documents: Any, refused: Any = None, manifests: tuple[Manifest, ...] = ()) -> Recorded:
    """A scan of a cluster with Kyverno."""
    served = (*KINDS, *KYVERNO, *LEGACY_KINDS)
    cluster = FakeCluster([TEAM, policy("true"), pod(), *documents], kinds=served, refused=refused or {})
    return scanned(cluster, Options(manifests=manifests))


def counted(scan: Recorded) -> list[tuple[str, str, str]]:
    """The items about older policies."""
    items = (Unneeded.LEGACY_POLICY, Unneeded.LEGACY_EXCEPTION)
    return [(item.kind, item.name, item.why) for item in scan.end.outside if item.kind in items]


VALIDATE: Final[Any] = {"validate": {"pattern": {}}}


@pytest.mark.parametrize(
    ("expected", "rules", "spec"),
    [
        ("1 (1 validate; 1 Audit)", [VALIDATE], {}),
        ("1 (1 validate; 1 Audit)", [{"validate": {"cel": {"expressions": []}}}], {}),
        ("1 (2 validate; 2 Enforce)", [VALIDATE, VALIDATE], {"validationFailureAction": "Enforce"}),
        ("1 (1 validate; 1 Enforce)", [VALIDATE], {"validationFailureAction": "enforce"}),
        (
            "1 (2 validate; 1 Enforce, 1 Audit)",
            [VALIDATE, {"validate": {"failureAction": "Audit"}}],
            {"validationFailureAction": "Enforce"},
        ),
        ("1 (1 mutate, 1 generate)", [{"mutate": {}}, {"generate": {}}], {"validationFailureAction": "Enforce"}),
        ("1 (1 verifyImages; 1 Enforce)", [{"verifyImages": [{"failureAction": "Enforce"}, {}]}], {}),
        ("1", [], {}),
    ],
    ids=["default", "CEL", "policy", "lower case", "rule", "no action", "images", "no rule"],
)
def test_older_policies_are_counted_by_rule_type_and_action(expected: str, rules: Any, spec: Any) -> None:
    """The action of a rule is its own, that of the policy, or Audit; rules that mutate or generate have none."""
    assert [("legacyPolicy", "ClusterPolicy of kyverno.io", f"{expected}{ENDING}")] == counted(
        scan_of(legacy(*rules, **spec))
    )


def test_each_kind_of_older_policies_has_an_item() -> None:
    """Policies in namespaces and exceptions are counted apart, and policies of other groups are not."""
    exception = legacy(kind="PolicyException", version="v2", namespace="team")
    of_team = legacy({"mutate": {}}, kind="Policy", namespace="team")
    assert [
        ("legacyPolicy", "ClusterPolicy of kyverno.io", f"2 (1 validate, 1 generate; 1 Audit){ENDING}"),
        ("legacyPolicy", "Policy of kyverno.io", f"1 (1 mutate){ENDING}"),
        ("legacyException", "PolicyException of kyverno.io", f"1{ENDING}"),
    ] == counted(scan_of(legacy(VALIDATE), legacy({"generate": {}}, name="b"), of_team, exception))


def test_a_cluster_without_older_policies_has_no_item() -> None:
    """Nor has one without their kinds."""
    cluster = FakeCluster([TEAM, policy("true"), pod()], kinds=(*KINDS, *KYVERNO))
    assert ([], []) == (counted(scan_of()), counted(scanned(cluster, Options())))


def test_an_older_policy_of_a_file_counts_in_place_of_that_of_the_cluster() -> None:
    """Both have one name."""
    of_file = Manifest("old.yaml, document 1", legacy({"mutate": {}}), is_named=True)
    assert [f"1 (1 mutate){ENDING}"] == [why for _, _, why in counted(scan_of(legacy(VALIDATE), manifests=(of_file,)))]


def test_a_scan_without_the_right_to_list_older_policies_is_complete() -> None:
    """Their number is not known, which is no gap."""
    scan = scan_of(legacy(VALIDATE), refused={"clusterpolicies.kyverno.io": forbidden("clusterpolicies")})
    why = "whether there are any in the cluster is not known: cannot list clusterpolicies: forbidden"
    assert ([("legacyPolicy", "ClusterPolicy of kyverno.io", why)], (), ScanState.COMPLETE) == (
        counted(scan),
        scan.gaps,
        scan.end.state,
    )


def test_the_rights_to_list_older_policies_are_optional() -> None:
    """There is one for each kind that the cluster serves."""
    cluster = FakeCluster([TEAM, policy("true")], kinds=(*KINDS, *KYVERNO, *LEGACY_KINDS))
    rights = [right for right in list_permissions(cluster, Options()).rights if right.group == "kyverno.io"]
    assert [
        ("clusterpolicies", True),
        ("globalcontextentries", False),
        ("policies", True),
        ("policyexceptions", True),
    ] == [(right.resource, right.optional) for right in rights]


def test_older_policies_among_the_files_of_a_cluster_are_counted(tmp_path: Path) -> None:
    """Their kinds need no definitions, and the report prints the numbers and the sentence."""
    documents = (policy("true"), pod(), legacy(VALIDATE), legacy(VALIDATE, name="b", version="v2beta1"))
    (tmp_path / "all.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
    ran = assay_here("scan", "--from", "all.yaml", "--db", f"sqlite:///{tmp_path}/a.db", home=tmp_path)
    out = " ".join(ran.stdout.decode().split())
    assert ran.code == 0
    assert f"out of scope: ClusterPolicy of kyverno.io 2 (2 validate; 2 Audit){ENDING}" in out


def test_the_line_about_older_policies_has_one_ending() -> None:
    """Policies come before exceptions, and an unknown number is stated."""
    items = (
        OutOfScope(Unneeded.LEGACY_EXCEPTION, "PolicyException of kyverno.io", f"3{ENDING}"),
        OutOfScope(Unneeded.LEGACY_POLICY, "ClusterPolicy of kyverno.io", f"2 (1 mutate){ENDING}"),
        OutOfScope(Unneeded.LEGACY_POLICY, "Policy of kyverno.io", "whether there are any is not known: forbidden"),
    )
    assert (
        "ClusterPolicy of kyverno.io 2 (1 mutate), Policy of kyverno.io (number not known), PolicyException of kyverno.io 3"
        f"{ENDING}"
    ) == legacy_line(unneeded_of(items))
