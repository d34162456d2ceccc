"""A new policy language is one file and one line: other modules do not change. A language of a family is no more."""

from __future__ import annotations

from pathlib import Path

import yaml

from scanner.cli.scanning.inputs import read_policy_files
from scanner.cluster.files.snapshot import SnapshotCluster
from scanner.model.scans.out_of_scope import Unneeded
from scanner.model.scans.scan import ScanState, Scope
from scanner.model.scans.tally import OutcomeName
from scanner.policies.language import LANGUAGES, Language
from scanner.scan.options import Options
from scanner.scan.run import run
from tests.documents import binding, namespace, pod, policy
from tests.policies.required_label import EXEMPTION, KIND, RequiredLabels
from tests.scan.fakes import NOON, FakeStore, Recorded

WITH_LABELS: tuple[Language, ...] = (*LANGUAGES, RequiredLabels())
OWNED = {"apiVersion": "labels.example.com/v1", "kind": KIND, "metadata": {"name": "owned"}, "spec": {"key": "team"}}
POLICIES = (OWNED, policy("p", "object.metadata.name != 'bare'"), binding())
OBJECTS = (namespace("default"), pod("labelled", labels={"team": "a"}), pod("bare"))


def scan_of(folder: Path, languages: tuple[Language, ...]) -> Recorded:
    """A scan of a folder of objects by a folder of policies."""
    for name, documents in (("policies", POLICIES), ("objects", OBJECTS)):
        (folder / name).mkdir()
        (folder / name / "all.yaml").write_text(yaml.safe_dump_all(documents))
    options = Options(Scope(), read_policy_files([folder / "policies"]).manifests, languages=languages)
    store = FakeStore()
    scan = run(SnapshotCluster([folder / "objects"]), store, options, scan_id="s1", clock=lambda: NOON)
    return Recorded(scan, store.starts[0], store.ends[0], tuple(store.pages))


def test_a_new_language_finds_beside_the_others(tmp_path: Path) -> None:
    """Findings name the language, its policies are recorded, and every object is counted."""
    scan = scan_of(tmp_path, WITH_LABELS)

    assert [("ValidatingAdmissionPolicy", "bare"), (KIND, "bare")] == [
        (finding.language, finding.name) for finding in scan.findings
    ]
    assert {"owned": "it needs the label team"} == {
        finding.policy: finding.outcome.message for finding in scan.findings if finding.language == KIND
    }
    assert [("owned", KIND), ("p", "ValidatingAdmissionPolicy")] == [
        (policy_record.name, policy_record.language) for policy_record in scan.start.policies
    ]
    assert (2, 2) == (scan.counted(OutcomeName.PASSED), scan.counted(OutcomeName.VIOLATED))


def test_a_new_language_takes_part_in_history(tmp_path: Path) -> None:
    """The scan records the policy as evaluated, so that its missing findings are resolved."""
    scan = scan_of(tmp_path, WITH_LABELS)

    assert (ScanState.COMPLETE, True) == (scan.scan.state, (KIND, "owned") in scan.end.evaluated_policies)


def test_without_its_line_a_language_is_unknown(tmp_path: Path) -> None:
    """The documents of a language that is not in the table are no params either, so the scan does not need them."""
    scan = scan_of(tmp_path, LANGUAGES)

    assert ["ValidatingAdmissionPolicy"] == [finding.language for finding in scan.findings]
    unused = [item.name.rpartition("/")[2] for item in scan.end.outside if item.kind is Unneeded.UNUSED_DOCUMENT]
    assert (["all.yaml, document 1"], ()) == (unused, scan.gaps)


def test_documents_of_a_new_language_need_no_definition(tmp_path: Path) -> None:
    """A cluster of files serves the custom kinds of its languages."""
    (tmp_path / "owned.yaml").write_text(yaml.safe_dump(OWNED))

    discovery = SnapshotCluster([tmp_path], languages=WITH_LABELS).discover()

    served = {kind for kind in discovery.kinds if kind.kind in (KIND, EXEMPTION)}
    assert ({*RequiredLabels().custom_kinds}, ()) == (served, discovery.gaps)
