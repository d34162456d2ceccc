"""Recorded policies are replayed through a snapshot: a replay has the findings of its scan, but for what redaction prevents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scanner.model.json import Json, as_list, as_text, dig
from tests.cli.conftest import Assay, assay, home
from tests.cli.test_snapshots import findings
from tests.conformance.cases import label, load, parameters

__all__ = ["assay", "home"]

Documents = Iterator[dict[str, Any]]
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
EVALUATED = ("passed", "violated", "erroredWouldDeny", "erroredWouldAdmit", "wouldChange", "excepted")


def renamed(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A document with another name, and without the facts of its server."""
    metadata = {
        key: value for key, value in document["metadata"].items() if key in {"namespace", "labels", "annotations"}
    }
    return {**document, "metadata": {**metadata, "name": name}}


def numbered(documents: list[dict[str, Any]], prefix: str = "case") -> Documents:
    """Documents whose names differ."""
    return (renamed(document, f"{prefix}-{number}") for number, document in enumerate(documents))


def of_policies(data: Any) -> Documents:
    """Policies of users, with the objects of all cases."""
    yield from (
        *data.get("definitions", ()),
        *data["policies"],
        *data["bindings"],
        *data["params"],
        *data["namespaces"],
    )
    yield from numbered([case["object"] for case in data["cases"]])


def of_mutations(data: Any) -> Documents:
    """Mutating policies."""
    params = data["params"] if isinstance(data["params"], list) else [data["params"]]
    yield from (data["namespace"], *params, *numbered([*data["objects"].values()]))
    for case in data["cases"]:
        yield from (case["policy"], *([case["binding"]] if "binding" in case else []))


def of_pod_security(data: Any) -> Documents:
    """Pods and workloads in a namespace with the level restricted."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "levels", "labels": _RESTRICTED}}
    for document in numbered(data["objects"]):
        yield {**document, "metadata": {**document["metadata"], "namespace": "levels"}}


BY_FILE: dict[str, Callable[[Any], Documents]] = {
    "policies": of_policies,
    "mutations": of_mutations,
    "pod-security": of_pod_security,
}


def checks(report: Json, *outcomes: str) -> int:
    """The number of checks with these outcomes."""
    return sum(number for outcome in outcomes if isinstance(number := dig(report, "totals", outcome), int))


@pytest.mark.parametrize("path", parameters(*BY_FILE))
def test_a_replay_has_the_findings_of_its_scan(path: Path, assay: Assay, home: Path) -> None:
    """Each finding of the replay is equal; each that it lacks is of a policy that the replay names as skipped."""
    name = path.name.removesuffix(".json.gz")
    (home / "in").mkdir()
    documents = {"apiVersion": "v1", "kind": "List", "items": [*BY_FILE[name](load(path))]}
    (home / "in/all.json").write_text(json.dumps(documents))
    live = assay("scan", "-q", "--from", "in", "--snapshot", "x.snapshot", "-o", "json").report
    replay = assay("scan", "-q", "--from", "x.snapshot", "-o", "json").report
    before, after = findings(live), findings(replay)
    withheld = [
        as_text(dig(gap, "where")) + as_text(dig(gap, "why"))
        for gap in as_list(dig(replay, "gaps"))
        if "withholds" in as_text(dig(gap, "why"))
    ]
    lost = {key: found for key, found in before.items() if key not in after}
    evaluated = checks(live, *EVALUATED)
    again = checks(replay, *EVALUATED)

    print(  # noqa: T201 - what `pytest -s` is for
        f"{label(path)}: redaction prevents {evaluated - again:,} of {evaluated:,} checks"
        f" ({(evaluated - again) / evaluated:.1%}), and {len(lost):,} of {len(before):,} findings"
    )
    assert len(before) > 50
    assert {} == {key: found for key, found in after.items() if before.get(key) != found}
    assert [] == [found["policy"] for found in lost.values() if not any(found["policy"] in gap for gap in withheld)]
    assert (evaluated == again) or withheld
