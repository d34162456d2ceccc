"""Mappings of controls are read, and errors are named with line and column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scanner.documents.composer import compose
from scanner.documents.controls import list_shipped, read_framework, read_frameworks
from scanner.documents.files import read
from scanner.documents.nodes import BadDocument
from scanner.errors import UsageError
from scanner.policies import language as language_table
from scanner.policies.pod_security.standards import STANDARDS
from scanner.posture.control_checks import (
    CheckSelector,
    CheckSelectorKind,
    Control,
    Framework,
    PolicySelector,
    SelectorKind,
)

ROOT = Path(__file__).parents[2]
SCHEMA: Any = json.loads((ROOT / "docs" / "controls.schema.json").read_text("utf-8"))
LANGUAGES = tuple(name for language in language_table.LANGUAGES for name in language.names)
HEAD = "apiVersion: assay.dev/v1alpha1\nkind: ControlMapping\n"
WHOLE = (
    HEAD
    + """\
metadata:
  name: house-rules
spec:
  title: House rules
  version: "3"
  controls:
    - id: "1.1"
      title: One
      policies:
        - name: limits
        - {glob: "team-*", language: ValidatingPolicy}
        - {label: example.com/control, value: "1.1"}
        - {annotation: note}
    - {id: "1.2", title: Two}
"""
)


def framework(text: str) -> Framework:
    """The framework of the only document of a text."""
    [node] = compose(text.encode(), "f.yaml")
    return read_framework(node, languages=LANGUAGES)


def test_a_mapping_has_controls_and_selectors() -> None:
    """By name, glob, label and annotation."""
    selectors = (
        PolicySelector(SelectorKind.NAME, "limits"),
        PolicySelector(SelectorKind.GLOB, "team-*", language="ValidatingPolicy"),
        PolicySelector(SelectorKind.LABEL, "example.com/control", "1.1"),
        PolicySelector(SelectorKind.ANNOTATION, "note"),
    )
    controls = Control("1.1", "One", selectors), Control("1.2", "Two")
    assert Framework("house-rules", "House rules", "3", controls) == framework(WHOLE)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("v1alpha1", "v1", "f.yaml, line 1, column 13: apiVersion: must be assay.dev/v1alpha1$"),
        ("ControlMapping", "Waiver", "line 2, column 7: kind: must be ControlMapping$"),
        ("house-rules", "House/Rules", "line 4, column 9: metadata.name: must be the name of a framework"),
        ("  title: House", "  titel: House", r"line 6, column 3: unknown field spec.titel. Did you mean title\?"),
        ("  title: House rules\n", "", "line 6, column 3: spec: the field title is missing"),
        ('version: "3"', "version: 3.0", "line 7, column 12: spec.version: must be a string, not a number: quote it"),
        ('id: "1.1"', "id: 1.1", r"line 9, column 11: spec.controls\[0\].id: must be a string, not a number: quote it"),
        ('id: "1.2"', 'id: "1.1"', r"line 16, column 12: .*1.1 is the id of the control at f.yaml, line 9, column 11"),
        ("title: One", 'title: "a\\x1bb"', "must be one line of printable characters"),
        ("title: One", "title: " + "x" * 301, "must have at most 300 characters, not 301"),
        ("name: limits", "{}", "must have exactly one of name, glob, label, annotation"),
        ("name: limits", "{name: a, glob: b}", "must have exactly one of name, glob, label, annotation"),
        ("name: limits", "{name: a, value: b}", "value: belongs to a label or an annotation"),
        ("name: limits", "{name: [a]}", "must be a string, not a list"),
        ("name: limits", "limits", "must be an object, not a string"),
        ("ValidatingPolicy", "ValidatingPolice", r"must be one of .* Did you mean ValidatingPolicy\?"),
    ],
)
def test_an_error_has_its_line_and_column(before: str, after: str, message: str) -> None:
    """Nothing that is written in a mapping is ignored."""
    assert before in WHOLE
    with pytest.raises(BadDocument, match=message):
        framework(WHOLE.replace(before, after, 1))


def test_a_mapping_without_controls_is_an_error() -> None:
    """A report by no control would look like a clean one."""
    with pytest.raises(BadDocument, match=r"spec\.controls: must have at least one control"):
        framework(HEAD + "metadata: {name: a}\nspec: {title: A, controls: []}\n")


def test_frameworks_are_read_from_files_and_folders(tmp_path: Path) -> None:
    """In the order of the paths and of the files in a folder."""
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.yaml").write_text(WHOLE.replace("house-rules", name))
    paths = [tmp_path / "c.yaml"]
    assert ["c"] == [each.name for each in read_frameworks(paths, languages=LANGUAGES)]
    assert ["a", "b", "c"] == [each.name for each in read_frameworks([tmp_path], languages=LANGUAGES)]


def test_a_framework_is_described_once(tmp_path: Path) -> None:
    """Two documents of one name would contradict each other: also the same file, named twice."""
    path = tmp_path / "a.yaml"
    path.write_text(WHOLE)
    with pytest.raises(BadDocument, match=r"house-rules is described in .*a\.yaml, line 1, column 1 already"):
        read_frameworks([path, tmp_path], languages=LANGUAGES)


def test_a_path_without_a_document_is_an_error(tmp_path: Path) -> None:
    """An empty folder is no mapping."""
    with pytest.raises(UsageError, match="has no document: check the path"):
        read_frameworks([tmp_path], languages=LANGUAGES)


def test_the_schema_is_a_schema_of_mappings() -> None:
    """The committed schema accepts the mapping of this test and the examples, and knows the languages."""
    Draft202012Validator.check_schema(SCHEMA)
    examples = sorted((ROOT / "examples" / "controls").glob("*.yaml"))
    assert examples
    for node in (*compose(WHOLE.encode(), "f.yaml"), *(node for path in examples for node in read(path))):
        Draft202012Validator(SCHEMA).validate(node.json())
    assert LANGUAGES == tuple(SCHEMA["$defs"]["selector"]["properties"]["language"]["enum"])


@pytest.mark.parametrize(
    "change",
    [
        ("v1alpha1", "v1"),
        ("house-rules", "House/Rules"),
        ("  title: House", "  titel: House"),
        ('version: "3"', "version: 3.0"),
        ("name: limits", "{name: a, glob: b}"),
        ("name: limits", "{name: a, value: b}"),
        ("name: limits", "{}"),
        ("ValidatingPolicy", "ValidatingPolice"),
        ("title: One", "title: ''"),
    ],
)
def test_the_schema_rejects_what_the_reader_rejects(change: tuple[str, str]) -> None:
    """An editor shows the same errors."""
    [node] = compose(WHOLE.replace(*change, 1).encode(), "f.yaml")
    assert not Draft202012Validator(SCHEMA).is_valid(node.json())
    with pytest.raises(BadDocument):
        read_framework(node, languages=LANGUAGES)


CHECKS = (
    HEAD
    + """\
metadata: {name: a}
spec:
  title: A
  controls:
    - id: "1"
      title: One
      cannotShow: no object shows it
      policies: [{name: limits, optional: true}]
      checks:
        - {podSecurity: privileged, optional: true}
        - {podSecurity: capabilities, level: baseline}
        - {podSecurity: hostNamespaces, level: restricted, stricter: true}
        - {id: c-0123456789ab, policy: {glob: "a*"}}
        - {expression: " has(object.spec) "}
"""
)


def test_a_mapping_selects_checks() -> None:
    """By the name of a Pod Security check, with the checks that replace it, by id, and by expression."""
    [control] = framework(CHECKS).controls
    by = CheckSelectorKind
    assert "no object shows it" == control.cannot_show
    assert (PolicySelector(SelectorKind.NAME, "limits", optional=True),) == control.policies
    assert (
        CheckSelector(by.POD_SECURITY, "privileged", names=("privileged",), optional=True, level="baseline"),
        CheckSelector(
            by.POD_SECURITY,
            "capabilities_baseline",
            names=("capabilities_baseline",),
            replaced_by=("capabilities_restricted",),
            level="baseline",
        ),
        CheckSelector(by.POD_SECURITY, "hostNamespaces", names=("hostNamespaces",), stricter=True, level="baseline"),
        CheckSelector(by.ID, "c-0123456789ab", PolicySelector(SelectorKind.GLOB, "a*")),
        CheckSelector(by.EXPRESSION, "has(object.spec)"),
    ) == control.checks


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("podSecurity: privileged", "podSecurity: privilege", r"must be one of .* Did you mean privileged\?"),
        ("level: baseline", "level: base", r"level: must be one of baseline, restricted\. Did you mean baseline\?"),
        ("hostNamespaces", "hostPathVolumes", "level: has no check hostPathVolumes: its checks are"),
        ('policy: {glob: "a*"}', "stricter: true", "the field policy is missing: an id names a check of a policy"),
        ('policy: {glob: "a*"}', "podSecurity: privileged", "must have exactly one of id, podSecurity, expression"),
        ('{glob: "a*"}', "{glob: a, optional: true}", "unknown field .*policy.optional"),
        ("podSecurity: privileged", "podSecurity: privileged, policy: {name: a}", "belongs to an id or an expression"),
        ("id: c-0123456789ab", "level: baseline, id: a", "level: belongs to a Pod Security check"),
        ("has(object.spec)", "x" * 10_001, "must have at most 10,000 characters, not 10,001"),
        (
            "optional: true}\n        - {podSecurity: cap",
            'optional: "yes"}\n        - {podSecurity: cap',
            "optional: must be",
        ),
    ],
)
def test_an_error_of_a_check_has_its_place(before: str, after: str, message: str) -> None:
    """A check that is misspelled would leave its control uncovered."""
    assert before in CHECKS
    with pytest.raises(BadDocument, match=message):
        framework(CHECKS.replace(before, after, 1))


@pytest.mark.parametrize("name", list_shipped())
def test_shipped_mappings_are_selected_by_name(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file of the working directory with that name comes first; the schema accepts every shipped file."""
    monkeypatch.chdir(tmp_path)
    [shipped] = read_frameworks([Path(name)], languages=LANGUAGES)
    assert name == shipped.name
    [node] = read(list_shipped()[name])
    Draft202012Validator(SCHEMA).validate(node.json())

    Path(name).write_text(WHOLE)
    assert ["house-rules"] == [each.name for each in read_frameworks([Path(name)], languages=LANGUAGES)]


def test_a_misspelled_name_of_a_shipped_mapping_is_an_error() -> None:
    """The message has the name."""
    with pytest.raises(UsageError, match=r"there is no mapping cis-kubernets-5, .* Did you mean cis-kubernetes-5\?"):
        read_frameworks([Path("cis-kubernets-5")], languages=LANGUAGES)


def test_the_schema_accepts_selectors_of_checks() -> None:
    """And rejects those that the reader rejects by their form."""
    [node] = compose(CHECKS.encode(), "f.yaml")
    Draft202012Validator(SCHEMA).validate(node.json())
    for before, after in (('policy: {glob: "a*"}', "stricter: true"), ("level: baseline", "level: base")):
        [node] = compose(CHECKS.replace(before, after, 1).encode(), "f.yaml")
        assert not Draft202012Validator(SCHEMA).is_valid(node.json())


def test_every_check_of_pod_security_belongs_to_one_control_of_its_standards() -> None:
    """The mapping of the Pod Security Standards leaves no check out."""
    [standards] = read_frameworks([Path("pod-security-standards")], languages=LANGUAGES)
    assert sorted(each.id for each in STANDARDS) == sorted(
        name for control in standards.controls for check in control.checks for name in check.names
    )
