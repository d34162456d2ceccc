"""A policy language is one file and one line: what is beside it in a scan has never heard of it."""

from __future__ import annotations

from pathlib import Path

import yaml

from scanner.cli.inputs import policy_files
from scanner.cluster.files import SnapshotCluster
from scanner.model.scan import OutcomeName, ScanState, Scope
from scanner.policies.language import LANGUAGES, Language
from scanner.scan.options import Options
from scanner.scan.run import run
from tests.documents import binding, namespace, pod, policy
from tests.policies.required_label import KIND, RequiredLabels
from tests.scan.fakes import NOON, FakeStore, Recorded

WITH_LABELS: tuple[Language, ...] = (*LANGUAGES, RequiredLabels())
OWNED = {"apiVersion": "labels.example.com/v1", "kind": KIND, "metadata": {"name": "owned"}, "spec": {"label": "team"}}
POLICIES = (OWNED, policy("p", "object.metadata.name != 'bare'"), binding())
OBJECTS = (namespace("default"), pod("labelled", labels={"team": "a"}), pod("bare"))


def scan_of(folder: Path, languages: tuple[Language, ...]) -> Recorded:
    """A scan of a folder of objects by a folder of policies."""
    for name, documents in (("policies", POLICIES), ("objects", OBJECTS)):
        (folder / name).mkdir()
        (folder / name / "all.yaml").write_text(yaml.safe_dump_all(documents))
    options = Options(Scope(), policy_files([folder / "policies"]), languages=languages)
    store = FakeStore()
    scan = run(SnapshotCluster([folder / "objects"]), store, options, scan_id="s1", clock=lambda: NOON)
    return Recorded(scan, store.starts[0], store.ends[0], tuple(store.pages))


def test_a_new_language_finds_beside_the_others(tmp_path: Path) -> None:
    """Its findings name the language, its policies are recorded, and every object is counted."""
    told = scan_of(tmp_path, WITH_LABELS)

    assert [("ValidatingAdmissionPolicy", "bare"), (KIND, "bare")] == [(it.language, it.name) for it in told.findings]
    assert {"owned": "it needs the label team"} == {
        it.policy: it.outcome.message for it in told.findings if it.language == KIND
    }
    assert [("owned", KIND), ("p", "ValidatingAdmissionPolicy")] == [
        (it.name, it.language) for it in told.start.policies
    ]
    assert (2, 2) == (told.counted(OutcomeName.PASSED), told.counted(OutcomeName.VIOLATED))


def test_a_new_language_takes_part_in_history(tmp_path: Path) -> None:
    """The scan tells that it evaluated the policy, so that what no longer is found is resolved."""
    told = scan_of(tmp_path, WITH_LABELS)

    assert (ScanState.COMPLETE, True) == (told.scan.state, (KIND, "owned") in told.end.evaluated_policies)


def test_without_its_line_a_language_is_unknown(tmp_path: Path) -> None:
    """Its documents are gaps: nothing finds a language that the table does not name."""
    told = scan_of(tmp_path, LANGUAGES)

    assert ["ValidatingAdmissionPolicy"] == [it.language for it in told.findings]
    assert ["all.yaml, document 1"] == [gap.where.rpartition("/")[2] for gap in told.gaps]
