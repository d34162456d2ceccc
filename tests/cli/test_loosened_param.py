"""A param that was loosened is no remediation: the content of the param and another digest show that the rules changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from scanner.model.json import Json, JsonObject, as_list, dig
from tests.cli.conftest import Assay

Write = Callable[[str, str], Path]

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: replicas
  annotations: {{title: "{title}"}}
spec:
  paramKind: {{apiVersion: v1, kind: ConfigMap}}
  matchConstraints:
    resourceRules:
      - {{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}}
  validations:
    - {{expression: "object.spec.replicas <= int(params.data.maximum)"}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: replicas
spec:
  policyName: replicas
  validationActions: [Deny]
  paramRef: {{name: limits, namespace: shop, parameterNotFoundAction: Deny}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: limits
  namespace: shop
data:
  maximum: "{maximum}"
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 10
"""


@pytest.fixture
def database(home: Path) -> Path:
    """The database of the scans."""
    return home / "assay.db"


@pytest.fixture
def scan(assay: Assay, write: Write, database: Path) -> Callable[..., JsonObject]:
    """Scan a Deployment with 10 replicas, given the maximum in the param; returns the JSON report."""

    def scanned(maximum: int, *, title: str = "Few replicas") -> JsonObject:
        write(f"{maximum}/all.yaml", POLICY.format(maximum=maximum, title=title))
        where = ("--from", str(maximum), "--cluster-name", "shop", "--db", database)
        return assay("scan", *where, "-o", "json", "-q").report

    return scanned


def maxima(report: JsonObject) -> list[Json]:
    """The maximum in each param of a report."""
    return [
        dig(rule, "document", "data", "maximum") for rule in as_list(report["rules"]) if dig(rule, "type") == "param"
    ]


def digest(report: JsonObject, name: str = "policySetDigest") -> Json:
    """A digest in a report."""
    return dig(report, "provenance", name)


def test_the_reports_show_the_param_before_and_after(scan: Callable[..., JsonObject]) -> None:
    """The finding is resolved, and both reports have the content of the param that was used."""
    strict, loose = scan(3), scan(300)

    assert (1, 0, 1) == tuple(
        len(as_list(report[part])) for report, part in ((strict, "findings"), (loose, "findings"), (loose, "resolved"))
    )
    assert (["3"], ["300"]) == (maxima(strict), maxima(loose))


def test_another_param_is_another_policy_set(scan: Callable[..., JsonObject]) -> None:
    """The digest of the policies alone would be the same."""
    strict, loose, again = scan(3), scan(300), scan(3)

    assert digest(strict) == digest(again) != digest(loose)


def test_the_database_keeps_both_contents(scan: Callable[..., JsonObject], database: Path) -> None:
    """The scan with the old content is read from the database as it was."""
    scan(3)
    scan(300)
    with closing(sqlite3.connect(database)) as connection:
        documents = [text for (text,) in connection.execute("SELECT document FROM rules ORDER BY id")]

    assert [True, True] == ['"maximum":"3"' in documents[0], '"maximum":"300"' in documents[1]]


def test_an_unchanged_param_is_stored_once(scan: Callable[..., JsonObject], database: Path) -> None:
    """The second scan refers to the rules of the first."""
    scan(3)
    scan(3)
    with closing(sqlite3.connect(database)) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("rules", "scan_rules")
        ]

    assert [1, 1] == counts


def test_a_title_changes_the_descriptions_alone(scan: Callable[..., JsonObject]) -> None:
    """What a policy demands does not depend on its annotations."""
    first, other = scan(3), scan(3, title="At most three replicas")

    assert digest(first) == digest(other)
    assert digest(first, "descriptionDigest") != digest(other, "descriptionDigest")
