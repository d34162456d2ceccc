"""The objects, images and responses of a suite, in place of a cluster and registries.

Mirrors the fake client of the Kyverno CLI: other objects do not exist, and label selectors have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from scanner.cel import EvaluationError, Value
from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.resource import Kind
from scanner.policies.kyverno.libraries import Call, Collection, NoClusterData
from scanner.policies.kyverno.request import with_doubles

_OK = 200


@dataclass(frozen=True, slots=True)
class Given(NoClusterData):
    """The cluster data of a suite. `parse` decodes YAML."""

    kinds: Mapping[tuple[str, str], Kind]
    objects: tuple[JsonObject, ...]
    images: Mapping[str, JsonObject]
    answers: Mapping[tuple[str, str], JsonObject] = field(default_factory=dict)
    entries: Mapping[str, Json] = field(default_factory=dict)
    parse: Callable[[str], Json] | None = None

    def get(self, collection: Collection, namespace: str, name: str, /) -> Value:
        """The object of that name as a map, or None."""
        return next(
            (document for document in self._of(collection, namespace) if dig(document, "metadata", "name") == name),
            None,
        )

    def list(self, collection: Collection, namespace: str, labels: Mapping[str, str], /) -> Value:
        """A list object with all objects of a collection; the labels select nothing.

        Raises EvaluationError for a kind that the suite does not know.
        """
        del labels
        items = [*self._of(collection, namespace)]
        if not items and all(_place(kind) != collection for kind in self.kinds.values()):
            raise EvaluationError("failed to list resource: the server could not find the requested resource")
        return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}

    def collection(self, group: str, version: str, kind: str, /) -> Collection:
        """The collection of the objects of a kind. Raises EvaluationError for a kind that the suite does not know."""
        name = f"{group}/{version}" if group else version
        served = self.kinds.get((name, kind))
        if served is None:
            raise EvaluationError(f'failed to map kind to resource: no matches for kind "{kind}" in version "{name}"')
        return _place(served)

    def image(self, reference: str, /) -> Value:
        """The image data in the suite, as a map. Raises EvaluationError for an image that the suite does not describe."""
        if reference not in self.images:
            raise EvaluationError(f"failed to get image data: the suite does not describe {reference}")
        return self.images[reference]

    def request(self, call: Call, /) -> Value:
        """The response in the suite, with its body under `body`.

        Raises EvaluationError for a request that the suite does not describe.
        """
        answer = self.answers.get((call.method, call.url)) or self.answers.get(("", call.url))
        if answer is None:
            raise EvaluationError(f"request failed: the suite describes no answer to {call.method} {call.url}")
        status = answer.get("statusCode")
        return {"body": with_doubles(answer.get("body")), "statusCode": status if isinstance(status, int) else _OK}

    def entry(self, name: str, projection: str, /) -> Value:
        """An entry of the global context in the suite, or None. Raises EvaluationError for an unknown projection."""
        data = self.entries.get(name)
        if not projection or data is None:
            return data
        if projection not in as_object(data):
            raise EvaluationError(f'failed to get global reference: projection "{projection}" not found')
        return as_object(data)[projection]

    def parse_yaml(self, text: str, /) -> Value:
        """See ClusterData. Raises EvaluationError for a text that is no YAML."""
        if self.parse is None:
            raise EvaluationError("YAML is not read here")
        try:
            return with_doubles(self.parse(text))
        except ValueError as error:
            raise EvaluationError(f"error converting YAML to JSON: yaml: {error}") from None

    def _of(self, collection: Collection, namespace: str) -> Iterator[JsonObject]:
        for document in self.objects:
            kind = self.kinds.get(_key(document))
            here = namespace in ("", as_text(dig(document, "metadata", "namespace")))
            if kind is not None and _place(kind) == collection and here:
                yield document


def _key(document: JsonObject) -> tuple[str, str]:
    return as_text(document.get("apiVersion")), as_text(document.get("kind"))


def _place(kind: Kind) -> Collection:
    return Collection(kind.group, kind.version, kind.plural)


def with_unknown(kinds: Iterable[Kind], documents: Iterable[JsonObject]) -> tuple[Kind, ...]:
    """The kinds, and the kinds of objects that are not among them: with a guessed plural, and namespaced if the object is."""
    served = {(kind.api_version, kind.kind): kind for kind in kinds}
    plurals = {kind.kind: kind.plural for kind in served.values()}
    for document in documents:
        version, name = _key(document)
        if (version, name) not in served and version and name:
            group, _, short = version.rpartition("/")
            placed = dig(document, "metadata", "namespace") is not None
            plural = plurals.get(name, f"{name.lower()}s")
            served[version, name] = Kind(group, short, name, plural, namespaced=placed)
    return tuple(served.values())
