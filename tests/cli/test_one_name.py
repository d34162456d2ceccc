"""Policies of several languages may have one name; every output distinguishes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.model.json import as_list, as_object, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

MUTATING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: same}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  reinvocationPolicy: Never
  mutations:
    - patchType: JSONPatch
      jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/data', value: {'a': 'b'}}]"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: same}
spec: {policyName: same}
"""
KYVERNO = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: same}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "object.metadata.name == 'one'", message: "kyverno minds"}]
"""


@pytest.fixture
def same(assay: Assay, write: Callable[[str, str], Path]) -> Assay:
    """A database with a scan of two objects by three policies named `same`."""
    policies = f"{bound('same', expression='true')}---\n{MUTATING}---\n{KYVERNO}"
    write("all.yaml", f"{config_map('one')}---\n{config_map('two')}---\n{policies}")
    assert 0 == assay("scan", "--from", "all.yaml", "--html", "pages", "-q").code
    return assay


def test_each_policy_is_counted_by_itself(same: Assay) -> None:
    """One passes, one would change both objects, one is violated by one object."""
    report = same("report", "-o", "json").report
    assert {
        "ValidatingAdmissionPolicy": {"passed": 2},
        "MutatingAdmissionPolicy": {"wouldChange": 2},
        "ValidatingPolicy": {"passed": 1, "violated": 1},
    } == {
        dig(policy, "language"): {name: n for name, n in as_object(dig(policy, "counts")).items() if n}
        for policy in as_list(report["policies"])
    }
    assert [2, 2, 2] == [dig(policy, "matched") for policy in as_list(report["policies"])]
    assert {"MutatingAdmissionPolicy", "ValidatingPolicy"} == {
        dig(finding, "language") for finding in as_list(report["findings"])
    }


def test_each_policy_has_a_page_of_its_own(same: Assay, home: Path) -> None:
    """Every list states the language with the name."""
    pages = {page.read_text() for page in (home / "pages/policies").iterdir()}
    assert 3 == len(pages)
    assert 1 == sum("kyverno minds" in page for page in pages)
    assert "same (MutatingAdmissionPolicy)" in (home / "pages/policies.html").read_text()
    assert b"same (ValidatingPolicy)" in same("report").stdout


def test_all_policies_of_the_name_are_explained(same: Assay) -> None:
    """`assay explain` prints every policy with the name."""
    text = same("explain", "same").stdout.decode()
    assert 3 == sum(
        f"{language} same" in text
        for language in ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", "\nValidatingPolicy")
    )
    assert "it matched 2 objects and has 0 findings" in text


def test_a_policy_of_the_name_in_another_language_keeps_no_finding_open(
    same: Assay, write: Callable[[str, str], Path]
) -> None:
    """The mutating policy was deleted: its drift is resolved as unbound, although two other policies have its name."""
    write(
        "all.yaml", f"{config_map('one')}---\n{config_map('two')}---\n{bound('same', expression='true')}---\n{KYVERNO}"
    )
    report = same("scan", "--from", "all.yaml", "-q", "-o", "json").report
    drift = [each for each in as_list(report["resolved"]) if dig(each, "language") == "MutatingAdmissionPolicy"]
    assert ["unbound", "unbound"] == [dig(each, "resolution") for each in drift]
