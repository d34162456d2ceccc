"""The JSON report of a scan with everything that a scan can have, against its schema."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scanner.model.json import Json
from tests.cli.conftest import EXAMPLES, Assay
from tests.cli.test_explain import Write
from tests.cli.test_waivers import waiver
from tests.report.test_json import SCHEMA, strict

pytestmark = pytest.mark.long

FLAGS = (
    *(part for folder in ("policies", "policies-mutating", "policies-kyverno") for part in ("-f", EXAMPLES / folder)),
    *("-f", EXAMPLES / "policies-unbound", "--assume-bound", "graceful-shutdown=Warn"),
    *("--controls", EXAMPLES / "controls", "--waivers", "waivers.yaml", "--cluster-name", "shop"),
    *("--second-opinion", "cel-python", "--second-opinion-sample", "100", "-q", "-o", "json"),
)
NEVER_IN_FILES = {"outside"}
"""Sections that only a live cluster fills; `test_json` has records with them."""


def empty_sections(report: dict[str, Any]) -> Iterator[str]:
    """The sections without content."""
    return (name for name, value in report.items() if value in ([], {}, None))


def fields_of(value: Json) -> Iterator[str]:
    """The names of all fields of a value."""
    if isinstance(value, dict):
        yield from value
        for part in value.values():
            yield from fields_of(part)
    if isinstance(value, list):
        for part in value:
            yield from fields_of(part)


def test_every_field_is_in_the_schema(assay: Assay, write: Write) -> None:
    """Two scans of the example cluster with controls, waivers, previews, drift and a second opinion fill every section."""
    write("waivers.yaml", waiver("accepted", "namespace: staging", policy="host-access"))
    assay("scan", "--from", EXAMPLES / "cluster" / "before", *FLAGS)
    report: Any = assay("scan", "--from", EXAMPLES / "cluster" / "after", *FLAGS).report

    validator = Draft202012Validator(strict(deepcopy(SCHEMA)), format_checker=Draft202012Validator.FORMAT_CHECKER)
    assert [] == [f"{error.json_path}: {error.message}" for error in validator.iter_errors(report)]
    assert NEVER_IN_FILES >= set(empty_sections(report))
    assert {"drift", "excerpt", "withWaivers", "continues", "derived"} <= set(fields_of(report))
    assert {"new", "open", "preview"} <= {finding["status"] for finding in report["findings"]}
