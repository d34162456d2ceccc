"""What Kyverno's expressions can read of the cluster: objects that were listed before the first object is judged.

One scan shows one state: what `resource.Get` and `resource.List` answer is what the lists showed, and an answer that would take
a list that nobody could foresee is not available. Source of truth: Kyverno's resource and global context loaders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from scanner.cel import EvaluationError, Value
from scanner.cel.kyverno import Alone, Collection, Unavailable
from scanner.cel.kyverno.needs import Need, needs
from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.resource import Kind, Resource
from scanner.policies.kyverno.decide import Decision
from scanner.policies.kyverno.request import with_doubles
from scanner.policies.validating import Bound

Parse = Callable[[str], Json]
Places = Mapping[Kind, tuple[str, ...]]
_EVERYWHERE = ""


class Inventory(Alone):
    """The answers to what expressions ask. `parse` reads YAML; `entries` are the GlobalContextEntry manifests."""

    def __init__(self, kinds: Iterable[Kind], entries: Iterable[JsonObject] = (), parse: Parse | None = None) -> None:
        """Nothing is listed yet: see `wanted` and `put`."""
        self._kinds = {Collection(kind.group, kind.version, kind.plural): kind for kind in kinds}
        self._named = {(kind.group, kind.version, kind.kind): place for place, kind in self._kinds.items()}
        self._entries = {as_text(dig(entry, "metadata", "name")): entry for entry in entries}
        self._parse = parse
        self._listed: dict[Kind, set[str]] = {}
        self._objects: dict[Kind, dict[tuple[str, str], JsonObject]] = {}

    def wanted(self, entry: Bound) -> Places:
        """The kinds that a policy reads, each with the namespaces to list; the empty one stands for all of them."""
        wanted: dict[Kind, set[str]] = {}
        for need in _needs(entry):
            for kind, namespace in self._resolved(need):
                wanted.setdefault(kind, set()).add(namespace if kind.namespaced else _EVERYWHERE)
        return {kind: _places(namespaces) for kind, namespaces in wanted.items()}

    def put(self, kind: Kind, namespace: str, resources: Iterable[Resource]) -> None:
        """Take the objects of a namespace, or of all."""
        known = self._objects.setdefault(kind, {})
        known.update({(resource.namespace, resource.name): resource.body for resource in resources})
        self._listed.setdefault(kind, set()).add(namespace)

    def _resolved(self, need: Need) -> Iterator[tuple[Kind, str]]:
        if need.entry:
            spec = dig(self._entries.get(need.entry), "spec", "kubernetesResource")
            group, version, plural = (as_text(dig(spec, name)) for name in ("group", "version", "resource"))
            kind = self._kinds.get(Collection(group, version, plural))
            namespace: str | None = as_text(dig(spec, "namespace"))
        else:
            named = self._named.get((need.group, need.version, need.kind))
            kind = self._kinds.get(named or Collection(need.group, need.version, need.resource))
            namespace = need.namespace
        if kind is not None:
            yield kind, namespace or _EVERYWHERE

    def get(self, collection: Collection, namespace: str, name: str, /) -> Value:
        """See Surroundings."""
        kind = self._kinds.get(collection)
        if kind is None:
            return None
        self._require(kind, namespace)
        return self._objects[kind].get((namespace, name))

    def list(self, collection: Collection, namespace: str, labels: Mapping[str, str], /) -> Value:
        """See Surroundings."""
        kind = self._kinds.get(collection)
        if kind is None:
            raise EvaluationError("failed to list resource: the server could not find the requested resource")
        self._require(kind, namespace)
        items = [body for body in self._within(kind, namespace) if _labelled(body, labels)]
        return {"apiVersion": kind.api_version, "kind": f"{kind.kind}List", "metadata": {}, "items": items}

    def collection(self, group: str, version: str, kind: str, /) -> Collection:
        """See Surroundings."""
        found = self._named.get((group, version, kind))
        if found is None:
            name = f"{group}/{version}" if group else version
            raise EvaluationError(f'failed to map kind to resource: no matches for kind "{kind}" in version "{name}"')
        return found

    def entry(self, name: str, projection: str, /) -> Value:
        """See Surroundings."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        spec = dig(entry, "spec", "kubernetesResource")
        if spec is None:
            raise Unavailable(f"it reads the global context entry {name}, which calls an API, and a scan does not")
        if projection:
            raise Unavailable(f"it reads the projection {projection} of the global context entry {name}, in JMESPath")
        group, version, plural = (as_text(dig(spec, part)) for part in ("group", "version", "resource"))
        kind = self._kinds.get(Collection(group, version, plural))
        if kind is None:
            raise EvaluationError(f"failed to get global reference: {plural} are not served")
        namespace = as_text(dig(spec, "namespace"))
        self._require(kind, namespace)
        return self._within(kind, namespace)

    def parse_yaml(self, text: str, /) -> Value:
        """See Surroundings."""
        if self._parse is None:
            return super().parse_yaml(text)
        try:
            return with_doubles(self._parse(text))
        except ValueError as error:
            raise EvaluationError(f"error converting YAML to JSON: yaml: {error}") from None

    def _require(self, kind: Kind, namespace: str) -> None:
        """Raise Unavailable unless the objects of a namespace have been listed."""
        if not self._listed.get(kind, set()) & {namespace, _EVERYWHERE}:
            raise Unavailable(f"it reads {kind.resource}, which only its evaluation tells, and which were not listed")

    def _within(self, kind: Kind, namespace: str) -> Sequence[JsonObject]:
        objects = self._objects[kind]
        return [objects[key] for key in sorted(objects) if namespace in (_EVERYWHERE, key[0])]


def _needs(entry: Bound) -> frozenset[Need]:
    texts = [expression.text for _, expression in entry.compiled.expressions()]
    if isinstance(entry.decide, Decision):
        texts += [expression.text for one in entry.decide.exceptions for _, expression in one.conditions]
    return frozenset(need for text in texts for need in needs(text, entry.namespace))


def _places(namespaces: set[str]) -> tuple[str, ...]:
    return (_EVERYWHERE,) if _EVERYWHERE in namespaces else tuple(sorted(namespaces))


def _labelled(body: JsonObject, labels: Mapping[str, str]) -> bool:
    own = as_object(dig(body, "metadata", "labels"))
    return all(own.get(key) == value for key, value in labels.items())
