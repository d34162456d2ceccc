"""Parts of the objects that the chart renders."""

from __future__ import annotations

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig


def of_kind(documents: list[JsonObject], kind: str, name: str = "") -> JsonObject:
    """The one object of a kind, or of those the one with a name."""
    (document,) = (
        document
        for document in documents
        if document["kind"] == kind and name in {"", dig(document, "metadata", "name")}
    )
    return document


def kinds(documents: list[JsonObject]) -> list[str]:
    """The kinds of the objects, sorted."""
    return sorted(as_text(document["kind"]) for document in documents)


def job(documents: list[JsonObject]) -> JsonObject:
    """The spec of the Jobs of the CronJob."""
    return as_object(dig(of_kind(documents, "CronJob"), "spec", "jobTemplate", "spec"))


def container(pod: Json, name: str = "assay", place: str = "containers") -> JsonObject:
    """The container of a pod with a name."""
    (each,) = (each for each in as_list(dig(pod, "spec", place)) if dig(each, "name") == name)
    return as_object(each)


def variables(of: JsonObject) -> dict[str, Json]:
    """The environment of a container, by name."""
    return {as_text(dig(each, "name")): each for each in as_list(of["env"])}


def pods(documents: list[JsonObject]) -> list[Json]:
    """The pods and the templates of pods."""
    places: dict[str, tuple[str, ...]] = {
        "CronJob": ("spec", "jobTemplate", "spec", "template"),
        "Deployment": ("spec", "template"),
        "Pod": (),
    }
    return [
        dig(document, *places[kind]) if places[kind] else document
        for document in documents
        if (kind := as_text(document["kind"])) in places
    ]
