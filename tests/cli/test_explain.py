"""`assay explain`: the compiled form of a policy's expressions, and the evidence and workload of a finding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]


def test_the_python_of_a_policy(assay: Assay, write: Write) -> None:
    """Each expression has the function that evaluates most objects."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict', expression='has(object.data)')}")
    assay("scan", "--from", "all.yaml", "-q")

    ran = assay("explain", "strict", "--python")

    shown = ran.stdout.decode().splitlines()
    assert (0, ["# spec.validations[0].expression", "#     has(object.data)", "# reads object.data"]) == (
        ran.code,
        shown[:3],
    )
    assert ["# has(object.data): bool", "#   object: dyn", "def cel(activation):"] == shown[3:6]
    assert "'data' in object_1" in shown[7]


def test_a_finding_has_no_python(assay: Assay, write: Write) -> None:
    """Only policies have expressions."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    assay("scan", "--from", "all.yaml", "-q")

    ran = assay("explain", "abcdef012345", "--python")

    assert 2 == ran.code
    assert "--python needs the name of a policy" in ran.stderr


def test_a_finding_has_its_evidence(assay: Assay, write: Write) -> None:
    """The output has the values that decided, and their places in the object."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict', expression='object.metadata.name == string(1)')}")
    assay("scan", "--from", "all.yaml", "-q")
    finding_id = json.loads(assay("report", "-o", "json").stdout)["findings"][0]["id"]

    ran = assay("explain", finding_id)

    lines = ran.stdout.decode().splitlines()
    assert '    object.metadata.name is "one"' == lines[lines.index("Evidence:") + 1]


CONTROLLED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: generated
  namespace: shop
  ownerReferences:
    - {apiVersion: apps/v1, kind: ReplicaSet, name: web-6b7f9c, uid: r, controller: true}
---
"""
REPLICA_SET = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-6b7f9c
  namespace: shop
  uid: r
  ownerReferences:
    - {apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: d}
---
"""


@pytest.mark.parametrize(
    ("objects", "workload"),
    [
        pytest.param(CONTROLLED + REPLICA_SET, ["Workload Deployment web"], id="all objects"),
        pytest.param(CONTROLLED, ["Workload ReplicaSet web-6b7f9c (derived)"], id="without its controller"),
        pytest.param(f"{config_map('alone')}---\n", [], id="its own workload"),
    ],
)
def test_a_finding_has_its_workload(assay: Assay, write: Write, objects: str, workload: list[str]) -> None:
    """The top of the controllers, with a mark if a controller was not read; nothing for an object without a controller."""
    write("all.yaml", f"{objects}{bound('strict')}")
    assay("scan", "--from", "all.yaml", "-q")
    finding_id = json.loads(assay("report", "-o", "json").stdout)["findings"][0]["id"]

    lines = assay("explain", finding_id).stdout.decode().splitlines()

    assert workload == [line for line in lines if "Workload" in line]
