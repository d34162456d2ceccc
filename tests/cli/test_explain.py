"""`assay explain --python`: the compiled form of a policy's expressions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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
