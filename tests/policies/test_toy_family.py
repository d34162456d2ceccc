"""A second language of a family is one file and one line: it shares options and documents, and answers for its own policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from scanner.audit.redact import WITHHELD_ANY
from scanner.cluster.files.snapshot import SnapshotCluster
from scanner.rbac import list_permissions
from scanner.scan.options import Options
from tests.documents import CONFIG_MAPS, KINDS, namespace, pod, thing
from tests.policies.required_label import (
    ANNOTATED,
    ANNOTATION,
    EXEMPTION,
    EXEMPTIONS,
    GROUP,
    KIND,
    LABELLED,
    OWN_KINDS,
    RequirementOptions,
    requirement,
    with_requirements,
)
from tests.scan.fakes import FakeCluster, Recorded, scanned
from tests.scan.test_needs import text_of

ADVICE = {**thing(CONFIG_MAPS, "advice", "default"), "data": {"advice": "ask the platform team"}}
WITH_ADVICE = Options(languages=with_requirements(RequirementOptions("advice")))
WITHOUT_ADVICE = Options(languages=with_requirements())


def cluster(*documents: Any) -> FakeCluster:
    """A cluster with a policy of each language, an object that passes neither, and further documents."""
    of_all = (namespace("default"), ADVICE, LABELLED, ANNOTATED, pod("bare"), *documents)
    return FakeCluster(of_all, kinds=(*KINDS, *OWN_KINDS))


def messages(scan: Recorded) -> dict[str, str]:
    """The messages of the findings by language."""
    return {finding.language: finding.outcome.message for finding in scan.findings}


def test_both_languages_of_a_family_evaluate() -> None:
    """Each has its findings under its own name, and its policies count as evaluated."""
    scan = scanned(cluster(), WITHOUT_ADVICE)

    assert {KIND: "it needs the label team", ANNOTATION: "it needs the annotation docs"} == messages(scan)
    assert {(KIND, "labelled"), (ANNOTATION, "annotated")} == set(scan.end.evaluated_policies)


def test_a_family_has_one_value_of_options() -> None:
    """An option that is given once reaches both languages. Each decides whether the text that it adds may be shown."""
    scan = scanned(cluster(), WITH_ADVICE)

    assert {KIND: "it needs the label team: ask the platform team", ANNOTATION: WITHHELD_ANY} == messages(scan)


def test_a_document_of_a_family_is_about_the_policies_of_each_language() -> None:
    """An exemption exempts an object from both."""
    scan = scanned(cluster(requirement(EXEMPTION, "bare", pod="bare")), WITHOUT_ADVICE)

    assert ((), {KIND, ANNOTATION}) == (scan.findings, {used.language for used in scan.start.policies})


def test_the_languages_of_a_family_make_each_list_once() -> None:
    """The list of the documents that they share, and that of the configuration that both read."""
    of_family = cluster(requirement(EXEMPTION, "other", pod="other"))
    scanned(of_family, WITH_ADVICE)

    lists = ("default/configmaps", *(kind.resource for kind in OWN_KINDS))
    assert dict.fromkeys(lists, 1) == {name: of_family.listed.count(name) for name in lists}


def test_the_rights_of_a_family_are_those_of_its_languages() -> None:
    """A right that both need is one right."""
    wanted = list_permissions(cluster(), WITH_ADVICE).rights
    of_family = [text_of(need) for need in wanted if need.group == GROUP or need.resource == "configmaps"]

    assert sorted(["default/configmaps", *(kind.resource for kind in OWN_KINDS)]) == sorted(of_family)


def test_files_serve_the_kinds_of_each_language(tmp_path: Path) -> None:
    """The kind that both languages read is served once."""
    documents = [LABELLED, ANNOTATED, requirement(EXEMPTION, "bare", pod="bare")]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(documents))

    discovery = SnapshotCluster([tmp_path], languages=with_requirements()).discover()

    served = [kind for kind in discovery.kinds if kind.group == GROUP]
    assert (len(OWN_KINDS), {*OWN_KINDS}, ()) == (len(served), {*served}, discovery.gaps)
    assert EXEMPTIONS in served
