"""Waivers are read from files and ConfigMaps."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from scanner.documents.nodes import BadDocument
from scanner.documents.waivers import read_config_map_waivers, read_waivers
from scanner.model.population import DEFAULT_KEYS
from scanner.model.selector import Requirement, Selector
from scanner.model.waiver import LabelledConfigMap, Waiver, WaiverSet

FULL = """\
apiVersion: assay.dev/v1alpha1
kind: Waiver
metadata:
  name: legacy
spec:
  cluster: prod-*
  policy: replicas
  check: |
    object.spec.replicas <= 5
  checkDigest: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
  namespace: shop
  workload: Deployment/web
  object: Pod/web-1
  selector:
    matchLabels: {app: web}
    matchExpressions: [{key: team, operator: NotIn, values: [a, b]}]
  reason: The vendor image needs many replicas.
  requestedBy: ann
  approvedBy: bob
  ticket: "1234"
  from: 2026-01-01
  until: 2026-03-31
  control: Pods are checked by hand each week.
"""


def minimal(name: str, extra: str = "") -> str:
    """A document with the required fields; `extra` are further lines of the spec."""
    return (
        f"apiVersion: assay.dev/v1alpha1\nkind: Waiver\nmetadata: {{name: {name}}}\nspec:\n  policy: p\n  reason: r\n"
        f"  requestedBy: ann\n  approvedBy: bob\n  until: 2026-03-31\n{extra}---\n"
    )


def _read(tmp_path: Path, text: str) -> WaiverSet:
    file = tmp_path / "w.yaml"
    file.write_text(text)
    return read_waivers(file, DEFAULT_KEYS)


def test_every_field_is_read(tmp_path: Path) -> None:
    """An expression loses the spaces at its ends."""
    expected = Waiver(
        name="legacy",
        policy="replicas",
        until=date(2026, 3, 31),
        reason="The vendor image needs many replicas.",
        requested_by="ann",
        approved_by="bob",
        cluster="prod-*",
        check="object.spec.replicas <= 5",
        namespace="shop",
        workload="Deployment/web",
        object="Pod/web-1",
        selector=Selector((Requirement("app", "In", ("web",)), Requirement("team", "NotIn", ("a", "b")))),
        ticket="1234",
        since=date(2026, 1, 1),
        control="Pods are checked by hand each week.",
        source=str(tmp_path / "w.yaml"),
        check_digest="sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    )
    assert WaiverSet((expected,)) == _read(tmp_path, FULL)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (FULL.replace("assay.dev/v1alpha1", "v1"), "line 1, column 13: apiVersion: must be assay.dev/v1alpha1"),
        (FULL.replace("kind: Waiver", "kind: ConfigMap"), "line 2, column 7: kind: must be Waiver"),
        (FULL.replace("  until: 2026-03-31\n", ""), "line 6, column 3: spec.until is missing"),
        (FULL.replace("2026-03-31", "2025-03-31"), "line 22, column 10: spec.until: 2025-03-31 is before from, 2026-01-01"),
        (FULL.replace("2026-03-31", "2026-02-30"), "line 22, column 10: spec.until: must be a date"),
        (FULL.replace("  until:", "  untill:"), "line 22, column 3: unknown field spec.untill. Did you mean until?"),
        (FULL.replace('"1234"', "1234"), "line 20, column 11: spec.ticket: must be a string, not a number: quote it"),
        (FULL.replace("bob", "<name>"), "line 19, column 15: spec.approvedBy: is a placeholder: write the value"),
        (FULL.replace("Pod/web-1", "a/b/c"), "line 13, column 11: spec.object: must be an object"),
        (FULL.replace("sha256:2c26", "sha256:2C26"), "line 10, column 16: spec.checkDigest: must be a digest: write sha256:"),
        (minimal("a", "  checkDigest: sha256:x\n"), "line 10, column 16: spec.checkDigest: there is no check: write its id into check, or delete checkDigest"),
        (FULL.replace("{app: web}", "{tier: web}"), "line 15, column 25: spec.selector.matchLabels.tier: the scan does not keep the label tier: scan with --keep-label tier"),
        (FULL.replace("key: team", "key: x/y"), "line 16, column 30: spec.selector.matchExpressions[0].key: the scan does not keep the label x/y: scan with --keep-label x/y"),
        (FULL.replace("NotIn", "Notin"), "line 16, column 46: spec.selector.matchExpressions[0].operator: must be one of"),
        (FULL.replace(", values: [a, b]", ""), "values: Invalid value: []"),
        ("- a\n", "line 1, column 1: must be an object, not a list"),
        (minimal("a") + minimal("a"), "line 11, column 1: there is another waiver of this name in"),
    ],
)  # fmt: skip
def test_an_error_is_refused_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    """The message names file, line, column and field."""
    with pytest.raises(BadDocument) as refused:
        _read(tmp_path, text)
    assert problem in str(refused.value)


def test_a_folder_has_the_waivers_of_all_its_files(tmp_path: Path) -> None:
    """Several documents in a file, and several files."""
    (tmp_path / "a.yaml").write_text(minimal("a") + minimal("b"))
    (tmp_path / "b.yaml").write_text(minimal("c"))
    assert ["a", "b", "c"] == [each.name for each in read_waivers(tmp_path, None).waivers]


def test_only_one_namespace_has_waivers_and_a_mistake_waives_nothing() -> None:
    """ConfigMaps of other namespaces are named, and so are the keys that cannot be read."""
    config_maps = [
        LabelledConfigMap("shop", "own", {"w.yaml": minimal("own")}),
        LabelledConfigMap("audit", "b", {"bad.yaml": "kind: [", "good.yaml": minimal("good")}),
        LabelledConfigMap("audit", "a", {"w.yaml": minimal("first")}),
    ]
    waivers = read_config_map_waivers(config_maps, "audit", DEFAULT_KEYS)
    assert ["first", "good"] == [each.name for each in waivers.waivers]
    assert (
        "ConfigMap shop/own has the label assay.dev/waivers and waives nothing: only namespace audit may have waivers",
    ) == waivers.notes
    [fault] = waivers.faults
    assert fault.startswith("ConfigMap audit/b, key bad.yaml, line 2, column 1: this is not YAML")
