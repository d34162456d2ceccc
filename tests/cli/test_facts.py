"""Every format has severity, owner, status, cause and waiver of a finding, where it has a place for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.report import FORMATS
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_explain import Write
from tests.cli.test_waivers import waiver

pytestmark = pytest.mark.long

ANNOTATED = "  annotations: {assay.dev/severity: critical}\n"
FACTS = {
    "severity": ("critical",),
    "owner": ("blue-team",),
    "status": ("new",),
    "cause": ("the object was not in the earlier scan", "objectNotInEarlierScan"),
    "waiver": ("legacy-maps",),
}
NO_FINDINGS = {"openmetrics", "openmetrics-detailed", "csv-population", "csv-rules", "json-rules"}
"""Formats that list no finding, which have a part of the facts only: see the tests below."""
NO_PLACE = {"table": {"cause", "waiver"}}
"""The facts that a format has no place for: `assay explain` has them, one command away."""


@pytest.fixture
def reported(assay: Assay, write: Write) -> Assay:
    """Two scans of a folder: the second one finds two new objects, one of which is waived."""
    policy = bound("strict").replace("  name: strict\n", f"  name: strict\n{ANNOTATED}", 1)
    objects = [_owned("kept")]
    write("shop/all.yaml", "---\n".join([policy, *objects]))
    assay("scan", "--from", "shop", "-q")
    objects += [_owned("late"), _owned("lawful")]
    write("shop/all.yaml", "---\n".join([policy, *objects]))
    write("waivers.yaml", waiver("legacy-maps", "object: ConfigMap/lawful", policy="strict"))
    assay("scan", "--from", "shop", "-q", "--waivers", "waivers.yaml")
    return assay


def _owned(name: str) -> str:
    return config_map(name).replace("metadata:", "metadata:\n  labels: {team: blue-team}")


def written(assay: Assay, home: Path, name: str) -> str:
    """The report in a format: what it prints, or all its pages."""
    if FORMATS[name].target != "folder":
        return assay("report", "-o", name).stdout.decode()
    assay("report", "--export", f"{name}={home / 'pages'}")
    return "\n".join(page.read_text() for page in sorted((home / "pages").rglob("*")) if page.is_file())


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - NO_FINDINGS))
def test_every_format_of_findings_has_the_facts(reported: Assay, home: Path, name: str) -> None:
    """Severity, owner, status, cause and waiver, in words or as the values that a schema names."""
    text = written(reported, home, name)

    missing = {fact for fact, words in FACTS.items() if not any(word in text for word in words)}
    assert NO_PLACE.get(name, set()) == missing


def test_metrics_have_the_facts_that_are_numbers(reported: Assay) -> None:
    """Severity, owner and status count problems; a waiver counts by its state."""
    text = reported("report", "-o", "openmetrics-detailed").stdout.decode()

    assert 'severity="critical"' in text
    assert 'owner="blue-team"' in text
    assert 'assay_waivers{cluster="shop",state="active"} 1' in text
    assert (
        'assay_problems_new{cluster="shop",language="ValidatingAdmissionPolicy",policy="strict",severity="critical"} 1'
        in text
    )


def test_the_population_has_the_labels_that_name_owners(reported: Assay) -> None:
    """It is about objects, and has the number of their findings."""
    lines = reported("report", "-o", "csv-population").stdout.decode().splitlines()

    assert 3 == sum("team=blue-team" in line for line in lines)
