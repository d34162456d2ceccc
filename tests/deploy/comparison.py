"""Objects in a form in which two ways to install the same are equal."""

from __future__ import annotations

import yaml

from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from tests.deploy.programs import without_labels


def comparable(documents: list[JsonObject]) -> dict[str, Json]:
    """The objects by kind and name, without labels and annotations, and the files of ConfigMaps as data."""
    return {f"{document['kind']} {dig(document, 'metadata', 'name')}": _comparable(document) for document in documents}


def _comparable(document: JsonObject) -> Json:
    metadata = {key: value for key, value in as_object(document["metadata"]).items() if key != "annotations"}
    plain = without_labels({**document, "metadata": metadata})
    if document["kind"] != "ConfigMap":
        return plain
    data = {name: yaml.safe_load(as_text(text)) for name, text in as_object(document["data"]).items()}
    return {**as_object(plain), "data": data}
