"""kustomize builds the base and the overlay, and the base is the chart with its default values."""

from __future__ import annotations

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.deploy.comparison import comparable
from tests.deploy.programs import built, rendered

OVERLAY = "overlays/postgres"
WITH_BACKUP = "overlays/backup"


def from_chart(values: JsonObject) -> dict[str, Json]:
    """The objects of the chart, without its test."""
    return comparable([document for document in rendered(values) if document["kind"] != "Pod"])


def without_selectors(document: Json) -> Json:
    """A document without the selectors of pods, which name the labels of the chart or of kustomize."""
    match document:
        case dict():
            return {key: without_selectors(value) for key, value in document.items() if key != "labelSelector"}
        case list():
            return [without_selectors(item) for item in document]
        case _:
            return document


def from_kustomize(folder: str) -> dict[str, Json]:
    """The objects of a kustomization, without the namespace, which helm creates itself."""
    return comparable([document for document in built(folder) if document["kind"] != "Namespace"])


@pytest.mark.parametrize(
    ("folder", "values"),
    [
        ("base", {}),
        (OVERLAY, {"database": {"existingSecret": "assay-db"}}),
        (WITH_BACKUP, {"backup": {"enabled": True}}),
    ],
    ids=["sqlite", "postgresql", "backup"],
)
def test_chart_and_kustomize_install_the_same(folder: str, values: JsonObject) -> None:
    """The rights, the job and the configuration are equal, field by field."""
    chart, kustomize = from_chart(values), from_kustomize(folder)
    assert chart.keys() == kustomize.keys()
    assert without_selectors(as_object(chart)) == without_selectors(as_object(kustomize))


@pytest.mark.parametrize("folder", ["base", OVERLAY, WITH_BACKUP])
def test_the_namespace_enforces_the_restricted_standard(folder: str) -> None:
    """A pod that is not restricted is not admitted to the namespace."""
    (namespace,) = (document for document in built(folder) if document["kind"] == "Namespace")
    assert "restricted" == dig(namespace, "metadata", "labels", "pod-security.kubernetes.io/enforce")


def test_the_overlay_has_no_volume_for_a_database() -> None:
    """The claim is gone, and /data is an empty folder."""
    documents = {as_text(document["kind"]): document for document in built(OVERLAY)}
    volumes = as_list(dig(documents["CronJob"], "spec", "jobTemplate", "spec", "template", "spec", "volumes"))
    assert "PersistentVolumeClaim" not in documents
    assert {"name": "data", "emptyDir": {}} in volumes
