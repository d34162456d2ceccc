"""A conversion webhook on loopback: version v1 of a kind calls `heading` what v2 calls `title`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text
from tests.integration.webhooks import answering

_NAMES = {"v1": ("title", "heading"), "v2": ("heading", "title")}


@contextmanager
def converting(folder: Path) -> Iterator[JsonObject]:
    """Run the webhook while the block runs. The value is the `conversion` of a definition that names it."""
    with answering(folder, _convert) as client:
        yield {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}


def _convert(request: JsonObject) -> JsonObject:
    wanted = as_text(request["desiredAPIVersion"])
    objects: list[Json] = [converted(as_object(each), wanted) for each in as_list(request["objects"])]
    return {"result": {"status": "Success"}, "convertedObjects": objects}


def converted(document: JsonObject, api_version: str) -> JsonObject:
    """The object in another version, with the field under the name that this version gives it."""
    before, after = _NAMES[api_version.rpartition("/")[2]]
    spec = as_object(document.get("spec"))
    renamed: dict[str, Json] = {after if name == before else name: value for name, value in spec.items()}
    return {**document, "apiVersion": api_version, "spec": renamed}
