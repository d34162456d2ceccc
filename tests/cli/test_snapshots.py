"""A scan that is repeated from its snapshot: the same findings, and what redaction prevents is skipped."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from scanner.model.json import Json, as_list, as_text, dig
from tests.cli.conftest import Assay

EXAMPLES = Path(__file__).parents[2] / "examples"
POLICIES = [
    part for name in ("policies", "policies-kyverno", "policies-mutating") for part in ("-f", str(EXAMPLES / name))
]
DATED = {"openedAt", "firstSeen", "lastSeen"}


def findings(report: Json) -> dict[str, Any]:
    """The findings of a report by fingerprint, without the times of its history."""
    return {
        as_text(dig(finding, "fingerprint")): {key: value for key, value in finding.items() if key not in DATED}
        for finding in as_list(dig(report, "findings"))
        if isinstance(finding, dict)
    }


def thing(api: str, kind: str, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    """A manifest."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def pod(name: str, **fields: Any) -> dict[str, Any]:
    """A pod with a variable whose value is withheld."""
    container = {"name": "web", "image": "nginx:1", "env": [{"name": "A", "value": "opensesame"}]}
    return thing("v1", "Pod", name, "shop", spec={"containers": [container]}, **fields)


def validating(name: str, *expressions: str, **spec: Any) -> list[dict[str, Any]]:
    """A policy for pods, with a validation for each expression, and its binding."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    validations = [{"expression": expression} for expression in expressions]
    group = "admissionregistration.k8s.io/v1"
    match = {"resourceRules": [rule], **spec.pop("match", {})}
    return [
        thing(
            group,
            "ValidatingAdmissionPolicy",
            name,
            spec={"matchConstraints": match, "validations": validations, **spec},
        ),
        thing(
            group, "ValidatingAdmissionPolicyBinding", name, spec={"policyName": name, "validationActions": ["Deny"]}
        ),
    ]


def scan(assay: Assay, home: Path, *manifests: dict[str, Any]) -> Json:
    """The report of a scan of manifests, of which `x.snapshot` is made."""
    (home / "in").mkdir()
    (home / "in" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*manifests]}))
    return assay("scan", "--from", "in", "--snapshot", "x.snapshot", "-o", "json").report


def replay(assay: Assay, *arguments: str) -> Json:
    """The report of the replay of `x.snapshot`."""
    return assay("scan", "--from", "x.snapshot", "-o", "json", *arguments).report


def violated(report: Json) -> list[tuple[str, str]]:
    """The policy and the expression of each finding."""
    return sorted((found["policy"], found["check"]["expression"]) for found in findings(report).values())


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_replay_has_the_findings_of_its_scan(assay: Assay, workers: str) -> None:
    """With policies of every language and any number of workers, messages and evidence included."""
    live = assay(
        "scan", "--from", str(EXAMPLES / "cluster"), *POLICIES, "--snapshot", "x.snapshot", "-o", "json"
    ).report
    again = replay(assay, "--workers", workers)

    assert 70 < len(findings(live))
    assert findings(live) == findings(again)
    assert dig(live, "gaps") == dig(again, "gaps")


def test_a_check_that_may_read_a_withheld_value_is_skipped(assay: Assay, home: Path) -> None:
    """Another check of the same policy, and a loop over another field of the same containers, are evaluated."""
    reads = "object.spec.containers.all(c, c.env.all(e, e.value == ''))"
    others = [
        "object.spec.containers.all(c, c.image == '')",
        "object.spec.containers.all(c, c.env.all(e, e.name == ''))",
    ]
    live = scan(assay, home, pod("a"), *validating("p", reads, *others))

    assert sorted(("p", each) for each in [reads, *others]) == violated(live)
    assert sorted(("p", each) for each in others) == violated(replay(assay))


def test_a_replay_recommends_no_command_about_a_scan_that_no_database_keeps(assay: Assay, home: Path) -> None:
    """The next step is a history for it."""
    scan(assay, home, pod("a"))
    kept = "assay scan --from x.snapshot --record-as NAME"
    alone, recorded = (
        assay("scan", "--from", "x.snapshot"),
        assay("scan", "--from", "x.snapshot", "--record-as", "again"),
    )
    assert (True, False) == (kept in alone.stdout.decode(), "assay explain" in alone.stdout.decode())
    assert kept not in recorded.stdout.decode()


def test_skipped_checks_are_counted_and_named(assay: Assay, home: Path) -> None:
    """No check of the object counts as passed or violated."""
    scan(
        assay, home, pod("a"), *validating("p", "object.spec.containers.all(c, c.env.all(e, e.value == 'opensesame'))")
    )
    again = replay(assay)

    assert (0, 0, 1) == tuple(dig(again, "totals", key) for key in ("passed", "violated", "skipped"))
    [gap] = as_list(dig(again, "gaps"))
    assert ("evaluation", "skipped because they may read what the snapshot withholds: 1") == (
        dig(gap, "kind"),
        dig(gap, "why"),
    )
    assert "incomplete" == dig(again, "provenance", "state")


@pytest.mark.parametrize(
    "spec",
    [
        {"matchConditions": [{"name": "c", "expression": "object.spec.containers[0].env[0].value == 'opensesame'"}]},
        {"variables": [{"name": "v", "expression": "object.spec.containers[0].env[0].value"}]},
    ],
)
def test_what_is_read_on_the_way_counts(assay: Assay, home: Path, spec: dict[str, Any]) -> None:
    """A match condition and a variable may read a withheld value as well as a validation."""
    expression = "variables.v == ''" if "variables" in spec else "false"
    live = scan(assay, home, pod("a"), *validating("p", expression, **spec))

    assert [("p", expression)] == violated(live)
    assert [] == violated(replay(assay))


def test_a_selector_that_reads_a_withheld_label_is_a_gap(assay: Assay, home: Path) -> None:
    """Whether the policy matches is not known, and that is no silence."""
    match = {"objectSelector": {"matchLabels": {"token": "opensesame"}}}
    live = scan(
        assay, home, pod("a", metadata={"labels": {"token": "opensesame"}}), *validating("p", "false", match=match)
    )
    again = replay(assay)

    assert [("p", "false")] == violated(live)
    assert [] == violated(again)
    assert ["policy p: it selects by a label that the snapshot withholds"] == [
        as_text(dig(gap, "why")) for gap in as_list(dig(again, "gaps"))
    ]


def test_a_text_of_the_cluster_that_looks_withheld_is_none(assay: Assay, home: Path) -> None:
    """The snapshot names the places that it withholds; `[redacted]` may be a name that a user chose."""
    named = thing("v1", "Pod", "a", "shop", spec={"containers": [{"name": "x", "image": "[redacted]"}]})
    live = scan(assay, home, named, *validating("p", "object.spec.containers[0].image != '[redacted]'"))

    assert 1 == len(violated(live))
    assert findings(live) == findings(replay(assay))


def test_other_policies_show_what_would_have_been(assay: Assay, home: Path) -> None:
    """The objects are those of the snapshot, the policies those of the flag."""
    scan(assay, home, pod("a"), *validating("p", "true"))
    (home / "new.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": validating("new", "object.metadata.name != 'a'")})
    )

    assert [("new", "object.metadata.name != 'a'")] == violated(replay(assay, "-f", "new.json"))


def test_a_kind_that_the_scan_did_not_list_is_a_gap(assay: Assay, home: Path) -> None:
    """A replay does not claim that there are no such objects."""
    scan(assay, home, pod("a"), thing("v1", "Service", "s", "shop", spec={}), *validating("p", "true"))
    new = json.loads(json.dumps(validating("new", "false")).replace('"pods"', '"services"'))
    (home / "new.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": new}))
    ran = assay("scan", "--from", "x.snapshot", "-o", "json", "-f", "new.json")

    assert 3 == ran.code
    assert "the snapshot does not have them" in ran.stdout.decode()


def test_a_replay_enters_no_history(assay: Assay, home: Path) -> None:
    """The database has one scan, until the replay is recorded under a name."""
    scan(assay, home, pod("a"), *validating("p", "false"))
    replay(assay)
    before = assay("scans").stdout
    replay(assay, "--record-as", "as-it-was")

    assert 2 == len(before.splitlines())
    assert b"as-it-was" in assay("scans").stdout


def test_the_scan_records_the_digest_of_its_snapshot(assay: Assay, home: Path) -> None:
    """The replay names the same digest."""
    live = scan(assay, home, pod("a"), *validating("p", "false"))
    digest = hashlib.sha256((home / "x.snapshot").read_bytes()).hexdigest()

    assert f"The snapshot of this scan has the SHA-256 {digest}." in json.dumps(live)
    assert f"This scan repeats the snapshot with the SHA-256 {digest}." in json.dumps(replay(assay))


def test_a_snapshot_is_made_without_a_report(assay: Assay, home: Path) -> None:
    """`snapshot create` prints the digest of the file, and stores no scan."""
    (home / "all.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod("a"), *validating("p", "false")]})
    )
    ran = assay("snapshot", "create", "y.snapshot", "--from", "all.json")
    digest = hashlib.sha256((home / "y.snapshot").read_bytes()).hexdigest()

    assert f"y.snapshot sha256:{digest}\n" in ran.stdout.decode()
    assert 1 == len(findings(assay("scan", "--from", "y.snapshot", "-o", "json").report))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "x.snapshot", "--from", "in"], "is a snapshot, which stands for a whole cluster: name it alone"),
        (["--from", "x.snapshot", "--snapshot", "y"], "a replay has its snapshot already"),
        (["--from", "in", "--record-as", "x"], "--record-as needs --from with a snapshot"),
        (["--from", "in", "--snapshot", "x.snapshot"], "exists already: name a new file"),
        (["--from", "in", "--snapshot", "y", "--allow-network"], "--snapshot keeps no answers of other servers"),
        (["--from", "in", "--snapshot", "no/y"], "cannot be written"),
    ],
)
def test_flags_that_cannot_be_combined_are_refused(
    assay: Assay, home: Path, arguments: list[str], message: str
) -> None:
    """The message tells what to do, and no partial file stays."""
    scan(assay, home, pod("a"), *validating("p", "false"))
    ran = assay("scan", *arguments)

    assert 2 == ran.code
    assert message in ran.stderr
    assert [] == list(home.rglob("*.partial"))
