"""Files of other tools among manifests: what is recognised, and what may be a manifest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.cluster.files.snapshot import SnapshotCluster

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
Folder = Callable[..., SnapshotCluster]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A cluster of files with these texts, by path."""

    def make(**files: str) -> SnapshotCluster:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return SnapshotCluster([tmp_path])

    return make


def outside(cluster: SnapshotCluster) -> list[tuple[str, str]]:
    """The kinds and places of what is out of scope."""
    return sorted((str(item.kind), item.name) for item in cluster.discover().outside)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("kustomization.yaml", "resources: [a.yaml]", "kustomization"),
        ("kustomization.yml", "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1", "kustomization"),
        ("component.yaml", "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1", "kustomization"),
        ("labels.yaml", "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: a}", "kustomizeInput"),
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0", "helmChart"),
        ("index.yaml", "apiVersion: v1\nentries: {web: []}", "helmChart"),
        ("requirements.yaml", "dependencies: []", "helmChart"),
        ("values.yaml", "replicas: 3", "helmValues"),
        ("values-prod.yaml", "spec: {a: 1}", "helmValues"),
        ("prod.values.yaml", "a: 1", "helmValues"),
        ("kyverno-test.yaml", "name: t\npolicies: [p.yaml]", "testSuite"),
        ("kyverno-test.yaml", "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}", "testSuite"),
        (
            "chainsaw-test.yaml",
            "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}",
            "testSuite",
        ),
        ("suite.yaml", "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite", "testSuite"),
        ("artifacthub-pkg.yml", "name: owner\nversion: 1.0.0", "packageMetadata"),
        ("package.json", '{"name": "web", "version": "1.0.0"}', "packageMetadata"),
        ("tests.json", '[{"name": "a pod", "expected": "fail"}]', "noManifest"),
        ("dashboard.json", '{"panels": [], "title": "Web"}', "noManifest"),
        ("datasources.yaml", "apiVersion: 1\ndatasources: []", "noManifest"),
        ("patch.yaml", "- {op: add, path: /spec/replicas, value: 3}", "kustomizeInput"),
    ],
)
def test_a_file_of_another_tool_is_out_of_scope(folder: Folder, name: str, text: str, kind: str) -> None:
    """No API server stores it, so it is no gap."""
    cluster = folder(**{name: text})

    assert ([(kind, f"{name}, document 1")], ()) == (outside(cluster), cluster.discover().gaps)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "metadata: {name: a}"),
        ("a.yaml", "Kind: Pod\napiVersion: v1"),
        ("a.yaml", "spec: {containers: []}"),
        ("a.yaml", "kind: Pod\nmetadata: {name: a}"),
        ("a.yaml", "apiVersion v1 kind Pod"),
        ("a.json", '[{"kind": "Pod"}]'),
        ("values.yaml", "kind: Pod"),
        ("kustomization.yaml", "apiVersion: v1\nkind: Pod"),
        ("Chart.yaml", "apiVersion: v1\nkind: Pod"),
        ("a.yaml", "name: {{ .Values.name }}"),
        ("templates/a.yaml", "name: {{ .Values.name }}"),
    ],
)
def test_a_document_that_may_be_a_manifest_is_a_gap(folder: Folder, name: str, text: str) -> None:
    """It has a field of manifests, is no object, or belongs to no chart."""
    cluster = folder(**{name: text})

    assert ([], [f"{name}, document 1"]) == (outside(cluster), [gap.where for gap in cluster.discover().gaps])


def test_a_manifest_is_read_under_any_name(folder: Folder) -> None:
    """The name of a file alone decides nothing."""
    cluster = folder(
        **{"values.yaml": POD, "package.json": '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}'}
    )

    assert [] == outside(cluster)
    assert [("v1", "Node"), ("v1", "Pod")] == sorted(
        (place.group or "v1", place.kind) for place in cluster.list_places()
    )


def test_templates_of_a_chart_are_named_and_other_manifests_of_it_are_read(folder: Folder) -> None:
    """A file without an action of a template is the same after `helm template`; values may name a kind."""
    cluster = folder(
        **{
            "web/Chart.yaml": "apiVersion: v2\nname: web",
            "web/values.yaml": "kind: DaemonSet",
            "web/templates/deployment.yaml": "apiVersion: apps/v1\nkind: {{ .Values.kind }}",
            "web/templates/nested/pod.yaml": POD,
            "web/crds/pod.yaml": POD.replace("name: a", "name: b"),
        }
    )

    assert [
        ("helmChart", "web/Chart.yaml, document 1"),
        ("helmTemplate", "web/templates/deployment.yaml"),
        ("helmValues", "web/values.yaml, document 1"),
    ] == outside(cluster)
    assert (["a", "b"], ()) == (sorted(place.name for place in cluster.list_places()), cluster.discover().gaps)


def test_patches_and_data_of_a_kustomization_are_named(folder: Folder) -> None:
    """A file that some kustomization names as a resource is a manifest."""
    cluster = folder(
        **{
            "base/kustomization.yaml": "resources: [pod.yaml]\nconfigMapGenerator: [{name: c, files: [app=settings.yaml]}]",
            "base/pod.yaml": POD,
            "base/settings.yaml": "kind: Settings",
            "prod/kustomization.yaml": "patches: [{path: pod.yaml}, {path: ../base/pod.yaml}]\n"
            "patchesStrategicMerge: [more.yaml, 'kind: Pod\n\n\n  x: y']",
            "prod/pod.yaml": POD,
            "prod/more.yaml": POD,
        }
    )

    named = [name for kind, name in outside(cluster) if kind == "kustomizeInput"]
    assert (["base/settings.yaml", "prod/more.yaml", "prod/pod.yaml"], ()) == (named, cluster.discover().gaps)


def test_a_link_beside_its_target_is_read_once(folder: Folder, tmp_path: Path) -> None:
    """So are a hard link, and a file that is named besides its folder."""
    folder(**{"a.yaml": POD})
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    (tmp_path / "c.yaml").hardlink_to(tmp_path / "a.yaml")

    discovery = SnapshotCluster([tmp_path, tmp_path / "a.yaml"]).discover()

    assert (3, {"repeated"}, ()) == (
        len(discovery.outside),
        {*(item.kind for item in discovery.outside)},
        discovery.gaps,
    )


def test_an_equal_document_is_read_once(folder: Folder) -> None:
    """A document of the same name with other content is a gap."""
    cluster = folder(**{"a.yaml": POD, "b.yaml": POD, "c.yaml": f"{POD}spec: {{}}\n"})

    assert [("repeated", "b.yaml, document 1")] == outside(cluster)
    assert ["c.yaml, document 1"] == [gap.where for gap in cluster.discover().gaps]


def test_objects_with_generated_names_are_read_under_different_names(folder: Folder) -> None:
    """The endings are such as a server makes; one note counts them."""
    text = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: job-}\n"
    cluster = folder(**{"a.yaml": f"{text}---\n{text}", "b.yaml": text.replace("job-", "x" * 70)})

    names = sorted(place.name for place in cluster.list_places())
    assert (["job-xxxxb", "job-xxxxx", "x" * 63], ()) == (names, cluster.discover().gaps)
    assert [True] == [note.startswith("3 objects have a generateName") for note in cluster.discover().notes]
