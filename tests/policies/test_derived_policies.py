"""Policies that no document contains: they follow from the labels of namespaces, and are policies like all others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from scanner.audit.fast_path import FastPath
from scanner.cli.scanning.inputs import read_policy_files
from scanner.cluster.files.snapshot import SnapshotCluster
from scanner.errors import UsageError
from scanner.model.json import dig
from scanner.model.outcome import Evidence, GapKind, Reason
from scanner.model.policy import NAMESPACE_LABELS
from scanner.model.rule import RuleType
from scanner.model.scans.health import HealthKind
from scanner.model.scans.scan import ScanState, Scope
from scanner.model.scans.tally import OutcomeName
from scanner.policies.language import LANGUAGES, Language
from scanner.rbac import list_permissions
from scanner.scan.options import Options
from scanner.scan.prepare import prepare
from scanner.scan.run import run
from tests.audit.test_fast_path import NoFastPath, facts, page
from tests.documents import PODS, Document, binding, namespace, pod, policy
from tests.policies.pod_levels import ENFORCE, KIND, NAME, WARN, PodLevels
from tests.scan.fakes import NOON, FakeCluster, FakeStore, Recorded, forbidden, scanned

WITH_LEVELS: tuple[Language, ...] = (*LANGUAGES, PodLevels())
SAFE = {"name": "app", "securityContext": {"runAsNonRoot": True}}
OPEN = {"name": "app"}
DOCUMENTS = (
    namespace("strict", **{ENFORCE: "strict"}),
    namespace("basic", **{ENFORCE: "basic", WARN: "strict"}),
    namespace("free"),
    pod("open", "strict", containers=[OPEN]),
    pod("safe", "strict", containers=[SAFE]),
    pod("open", "basic", containers=[OPEN]),
    pod("host", "basic", containers=[SAFE], hostNetwork=True),
    pod("host", "free", containers=[OPEN], hostNetwork=True),
)


def scan_of(*documents: Document, **options: Any) -> Recorded:
    """A scan of a cluster by policies of all languages."""
    return scanned(FakeCluster(documents or DOCUMENTS), Options(languages=WITH_LEVELS, **options))


def found(scan: Recorded) -> list[str]:
    """The findings as binding, object and check, sorted."""
    return sorted(f"{each.binding} {each.namespace}/{each.name} {each.check.expression}" for each in scan.findings)


EVERY_FINDING = [
    "enforce-basic basic/host hostNetwork",
    "enforce-strict strict/open runAsNonRoot",
    "warn-strict basic/host hostNetwork",
    "warn-strict basic/open runAsNonRoot",
    "warn-strict strict/open runAsNonRoot",
]


def test_labels_of_namespaces_bind() -> None:
    """Each namespace is evaluated by the levels of its own labels, one without labels by none, and the actions are the mode's."""
    scan = scan_of()

    assert EVERY_FINDING == found(scan)
    assert {
        ("enforce-basic", ("Deny",), True),
        ("enforce-strict", ("Deny",), True),
        ("warn-strict", ("Warn",), False),
    } == {(each.binding, each.actions, each.denies) for each in scan.findings}
    assert ScanState.COMPLETE is scan.scan.state


def test_every_matched_object_is_counted() -> None:
    """A pod counts once for each binding that covers its namespace and each check of the level: passed, or violated."""
    scan = scan_of()

    assert {"enforce-strict": 4, "warn-strict": 8, "enforce-basic": 2} == Counter(
        {
            name: sum(count for key, count in scan.tallies.items() if key.binding == name)
            for name in ("enforce-strict", "warn-strict", "enforce-basic")
        }
    )
    assert (9, 5) == (scan.counted(OutcomeName.PASSED), scan.counted(OutcomeName.VIOLATED))


def test_a_derived_policy_is_recorded_like_a_written_one() -> None:
    """One policy has one binding for each mode and level in use; their source tells that no document contains them."""
    start = scan_of(*DOCUMENTS, policy("p", "true"), binding()).start

    assert [("p", "cluster"), (NAME, NAMESPACE_LABELS)] == [(each.name, each.source) for each in start.policies]
    assert [
        ("b", "cluster"),
        *((name, NAMESPACE_LABELS) for name in ("enforce-basic", "enforce-strict", "warn-strict")),
    ] == [(each.name, each.source) for each in start.bindings]


def test_labels_that_decide_are_rule_objects() -> None:
    """The labels of each namespace that has one are recorded; other labels are not."""
    scan = scan_of(*DOCUMENTS, namespace("none", **{ENFORCE: "none", "team": "a"}))

    assert {"basic": {ENFORCE: "basic", WARN: "strict"}, "none": {ENFORCE: "none"}, "strict": {ENFORCE: "strict"}} == {
        rule.name: dig(rule.document, "metadata", "labels")
        for rule in scan.start.rules
        if rule.type is RuleType.NAMESPACE_LABELS
    }


def test_without_a_label_no_policy_is_derived() -> None:
    """A scan of a cluster that does not use the language records nothing of the language."""
    start = scan_of(namespace("free"), pod("open", "free", containers=[OPEN]), allow_empty=True).start

    assert ((), ()) == (start.policies, start.bindings)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(policies=("pod-*",)), EVERY_FINDING),
        (
            Scope(policies=("p",)),
            ["b basic/open object.metadata.name != 'open'", "b strict/open object.metadata.name != 'open'"],
        ),
        (Scope(bindings=("enforce-*",)), EVERY_FINDING[:2]),
        (
            Scope(namespaces=("strict",)),
            ["b strict/open object.metadata.name != 'open'", EVERY_FINDING[1], EVERY_FINDING[4]],
        ),
    ],
    ids=["policy", "other policy", "binding", "namespace"],
)
def test_filters_choose_derived_policies(scope: Scope, expected: list[str]) -> None:
    """`--policy`, `--binding` and `--namespace` see derived policies and bindings as they see written ones."""
    documents = (*DOCUMENTS, policy("p", "object.metadata.name != 'open'"), binding())

    assert expected == found(scan_of(*documents, scope=scope))


def test_a_filter_that_matches_no_derived_policy_is_an_error() -> None:
    """The message names the derived policy."""
    with pytest.raises(UsageError, match=f"--policy pod-level matches nothing; there is: {NAME}"):
        scan_of(scope=Scope(policies=("pod-level",)))


def test_a_derived_policy_can_be_previewed() -> None:
    """A policy that no label puts into force is unbound; an assumed binding covers every namespace."""
    documents = (namespace("none", **{ENFORCE: "none"}), *DOCUMENTS[2:])
    unbound = scan_of(*documents, allow_empty=True)
    preview = scan_of(*documents, assume_bound=((NAME, "Warn"),))

    assert ([], [("unbound", NAME, "")]) == (found(unbound), unbound.health)
    assert [f"assumed:{NAME} {each}" for each in ("free/host hostNetwork", "free/host runAsNonRoot")] == [
        each for each in found(preview) if "free" in each
    ]


def test_a_derived_binding_leaves_nothing_to_preview() -> None:
    """The message does not recommend to copy a binding that no file contains."""
    with pytest.raises(UsageError) as error:
        scan_of(assume_bound=((NAME, "Deny"),))

    names = "enforce-basic, enforce-strict, warn-strict"
    assert f"--assume-bound {NAME}: the policy is bound already, by {names}. Leave out --assume-bound {NAME}" == str(
        error.value
    )


def test_without_cluster_policies_none_is_derived() -> None:
    """The labels are policies of the cluster, which the user leaves out."""
    start = scan_of(derived_policies=False, cluster_policies=False, allow_empty=True).start

    assert () == start.policies


def test_thousands_of_namespaces_are_a_handful_of_bindings() -> None:
    """Names and values of labels of namespaces do not enter the bindings, however many and long they are."""
    hostile = [namespace(f"n{number}", **{ENFORCE: f"{number}" * 60, WARN: "basic"}) for number in range(3000)]
    pods = [pod("open", f"n{number}", containers=[OPEN]) for number in range(0, 3000, 100)]
    scan = scanned(FakeCluster((*hostile, *pods), page_size=500), Options(languages=WITH_LEVELS))

    assert (["enforce-strict", "warn-basic"], 30) == ([each.name for each in scan.start.bindings], len(scan.findings))
    assert ["3000 labels name no level"] == [each.detail for each in scan.end.health if each.kind is HealthKind.NOTE]


def test_namespaces_that_cannot_be_listed_are_a_gap() -> None:
    """Policies may be missing, so the scan is incomplete and did not read all policies of the language."""
    cluster = FakeCluster((*DOCUMENTS, policy("p", "true"), binding()), refused={"namespaces": forbidden("namespaces")})
    scan = scanned(cluster, Options(languages=WITH_LEVELS, scope=Scope(policies=("p", NAME))))
    why = "policies that follow from namespaces may be missing from this scan: cannot list namespaces: forbidden"

    assert [(GapKind.LIST, "v1/Namespace", why)] == [(gap.kind, gap.where, gap.why) for gap in scan.gaps]
    assert (ScanState.INCOMPLETE, False, True) == (
        scan.scan.state,
        KIND in scan.end.read_languages,
        "ValidatingAdmissionPolicy" in scan.end.read_languages,
    )


def test_rights_include_those_of_derived_policies() -> None:
    """A role for a scan names the kinds that derived policies evaluate; without the namespaces, the rights are not known."""
    options = Options(languages=WITH_LEVELS)
    wanted = list_permissions(FakeCluster(DOCUMENTS), options)
    unknown = list_permissions(FakeCluster(DOCUMENTS, refused={"namespaces": forbidden("namespaces")}), options)

    assert [f"policy {NAME}"] == [need.why for need in wanted.rights if need.resource == "pods"]
    assert ([], ["v1/Namespace"]) == ([*wanted.gaps], [gap.where for gap in unknown.gaps])


def test_files_derive_policies(tmp_path: Path) -> None:
    """Namespaces among manifests decide as those of a cluster do, with policies of files beside them."""
    scan = scan_of_files(tmp_path, DOCUMENTS)

    written = [f"b {namespace}/open object.metadata.name != 'open'" for namespace in ("basic", "strict")]
    assert [*written, *EVERY_FINDING] == found(scan)


def test_a_namespace_that_no_file_describes_is_a_gap(tmp_path: Path) -> None:
    """Its labels may bind the policy: the gap names them."""
    scan = scan_of_files(tmp_path, (*DOCUMENTS, pod("web", "shop")))

    assert [f"policy {NAME} ({KIND})"] == [gap.where for gap in scan.gaps]
    assert f"it depends on the label {ENFORCE}, the label {WARN} of the namespace shop" in scan.gaps[0].why
    assert KIND not in {language for language, _ in scan.end.evaluated_policies}


def scan_of_files(folder: Path, documents: tuple[Document, ...]) -> Recorded:
    """A scan of a folder of manifests, by a policy in a file and by those that follow from the manifests."""
    written = (policy("p", "object.metadata.name != 'open'"), binding())
    for name, own in (("policies", written), ("objects", documents)):
        (folder / name).mkdir()
        (folder / name / "all.yaml").write_text(yaml.safe_dump_all(own))
    options = Options(
        manifests=read_policy_files([folder / "policies"]).manifests, languages=WITH_LEVELS, cluster_policies=False
    )
    store = FakeStore()
    scan = run(SnapshotCluster([folder / "objects"]), store, options, scan_id="s1", clock=lambda: NOON)
    return Recorded(scan, store.starts[0], store.ends[0], tuple(store.pages))


def test_evidence_has_the_fields_that_decided() -> None:
    """The field and the label of the namespace, with their values; a field that is absent is not set."""
    scan = scan_of()

    assert {
        "host": Evidence(
            (
                Reason("object.spec.hostNetwork", "true", "spec.hostNetwork"),
                Reason(LABELS.format(WARN), '"strict"', LABELS.format(WARN)),
            ),
            excerpt='spec: {"hostNetwork": true, "containers": […]}',
        ),
        "open": Evidence(
            (
                Reason(f"object.{NON_ROOT}", "not set", NON_ROOT),
                Reason(LABELS.format(WARN), '"strict"', LABELS.format(WARN)),
            ),
        ),
    } == {
        each.name: each.evidence
        for each in scan.findings
        if each.binding == "warn-strict" and each.namespace == "basic"
    }


LABELS = "namespaceObject.metadata.labels['{}']"
NON_ROOT = "spec.containers[0].securityContext.runAsNonRoot"


def test_a_long_value_is_cut_and_a_secret_one_withheld() -> None:
    """The values of fields are shown by the rules of all evidence, and the message without the values of secrets."""
    password = {"name": "app", "env": [{"name": "PASSWORD", "value": "hunter2hunter2"}]}
    named = {"name": "hunter2hunter2", "securityContext": {"runAsNonRoot": "t" * 400}}
    scan = scan_of(namespace("n", **{ENFORCE: "strict", WARN: "none"}), pod("web", "n", containers=[password, named]))
    (finding,) = scan.findings

    assert "runAsNonRoot is wrong in a pod with the containers app, [redacted]" == finding.outcome.message
    assert ["not set", f'"{"t" * 239}… [400 characters]', '"strict"'] == [
        each.value for each in finding.evidence.reasons
    ]


def test_more_fields_than_a_finding_keeps_are_counted() -> None:
    """A pod with a thousand containers has eight reasons, and the number of the others."""
    labelled = namespace("n", **{ENFORCE: "strict", WARN: "none"})
    (finding,) = scan_of(labelled, pod("web", "n", containers=[OPEN] * 1000)).findings

    assert (8, 993) == (len(finding.evidence.reasons), finding.evidence.left_out)


def test_the_fast_path_counts_what_passes_every_field() -> None:
    """A language without expressions has a fast form for each namespace, with the same results as without."""
    prepared = prepare(FakeCluster(DOCUMENTS), Options(languages=WITH_LEVELS), NOON)
    (of_pods,) = (each for each in prepared.plans if each.kind == PODS)
    evaluator = prepared.evaluation.page_evaluator
    pods = page(PODS, [document for document in DOCUMENTS if document["kind"] == "Pod"])
    slow = replace(evaluator, fast_paths={PODS: NoFastPath(evaluator.context, of_pods)})

    bindings = {
        namespace: [
            fast_policy and [each.name for each in fast_policy.bindings]
            for fast_policy in (
                FastPath(evaluator.context, of_pods).get_fast_policy(number, namespace) for number in range(3)
            )
        ]
        for namespace in ("basic", "free")
    }
    assert {"basic": [["enforce-basic"], [], ["warn-strict"]], "free": [[], [], []]} == bindings
    assert facts(slow.evaluate(pods, of_pods)) == facts(evaluator.evaluate(pods, of_pods))
