"""The manifests of policies as their authors wrote them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scanner.model.json import JsonObject
from scanner.report.document.by_policy import drop_server_fields, restore_written
from scanner.report.document.policy_text import yaml_of

COPY = "kubectl.kubernetes.io/last-applied-configuration"
WRITTEN = {
    "apiVersion": "v1beta1",
    "kind": "P",
    "spec": {"rules": [{"a": ["x"]}], "validations": [{"expression": "e"}]},
}
SPEC = {"failurePolicy": "Fail", "rules": [{"a": ["x"], "scope": "*"}], "validations": [{"expression": "e"}]}


def stored(copy: object, spec: Any = SPEC) -> JsonObject:
    """A policy of a server, with a copy of what kubectl applied."""
    annotations = {"assay.dev/severity": "high", COPY: copy if isinstance(copy, str) else json.dumps(copy)}
    return {
        "apiVersion": "v1",
        "kind": "P",
        "metadata": {"name": "p", "uid": "u", "annotations": annotations},
        "spec": spec,
        "status": {"observedGeneration": 1},
    }


def test_the_written_spec_has_no_defaults() -> None:
    """Name and annotations are those of the server, without the copy itself."""
    assert {
        **WRITTEN,
        "metadata": {"name": "p", "annotations": {"assay.dev/severity": "high"}},
    } == restore_written(stored(WRITTEN))


@pytest.mark.parametrize(
    "spec",
    [
        {**SPEC, "validations": [{"expression": "other"}]},
        {**SPEC, "validations": [*SPEC["validations"], {"expression": "one more"}]},
        {key: value for key, value in SPEC.items() if key != "rules"},
        None,
    ],
)
def test_a_copy_that_is_out_of_date_is_not_what_was_written(spec: object) -> None:
    """The policy was edited by other means since."""
    assert {} == restore_written(stored(WRITTEN, spec))


@pytest.mark.parametrize("copy", ["", "no JSON", "[]", "{}", '{"spec": 1}', '{"spec": {"validations": [[]]}}'])
def test_a_copy_that_is_none_is_no_text(copy: str) -> None:
    """Every user who may create policies can write the annotation."""
    assert {} == restore_written(stored(copy))


def test_without_a_copy_the_text_is_that_of_the_server() -> None:
    """Without status and without the fields that a server sets."""
    assert "uid" not in yaml_of(drop_server_fields(stored("no JSON")))
