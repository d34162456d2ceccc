"""The cluster data that Kyverno's expressions read: objects that were listed before the first object is evaluated.

One scan shows one state: `resource.Get` and `resource.List` return listed objects, and a read whose list was not foreseeable is
unavailable. Entries of the global context that call the API server for a list or an object are answered from lists as well.
Requests beyond the cluster are sent only if the user allows them, and never if expressions read Secrets, whose data stay in
this process. Source of truth: Kyverno's resource and global context loaders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson

from scanner.cel import EvaluationError, Value
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.resource import Kind, Resource
from scanner.policies.bound_language import Places
from scanner.policies.kyverno.bind import BoundForm
from scanner.policies.kyverno.libraries import Call, Collection, Network, NoClusterData, Unavailable
from scanner.policies.kyverno.libraries.cluster_data import projected
from scanner.policies.kyverno.libraries.needs import ANY, Need, needs
from scanner.policies.kyverno.request import with_doubles

Parse = Callable[[str], Json]
_EVERYWHERE = ""
_FAILED = 400
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/?]+))/(?P<version>[^/?]+)(?:/namespaces/(?P<namespace>[^/?]+)(?=/))?/(?P<plural>[a-z0-9.-]+)"
    r"(?:/(?P<name>[^/?]+))?"
)


class Inventory(NoClusterData):
    """The cluster data of a scan.

    `parse` reads YAML; `entries` are the GlobalContextEntry manifests; `network` makes requests, if the user allows them.
    """

    def __init__(
        self,
        kinds: Iterable[Kind],
        entries: Iterable[JsonObject] = (),
        parse: Parse | None = None,
        network: Network | None = None,
    ) -> None:
        """Begin without listed objects: see `wanted` and `put`."""
        self._network = network
        self._kinds = {Collection(kind.group, kind.version, kind.plural): kind for kind in kinds}
        self._named = {(kind.group, kind.version, kind.kind): place for place, kind in self._kinds.items()}
        self._entries = {as_text(dig(context_entry, "metadata", "name")): context_entry for context_entry in entries}
        self._parse = parse
        self._listed: dict[Kind, set[str]] = {}
        self._objects: dict[Kind, dict[tuple[str, str], JsonObject]] = {}

    @property
    def reaches_out(self) -> bool:
        """See ClusterData."""
        return self._network is not None

    def wanted(self, form: BoundForm) -> Places:
        """The kinds that a policy reads, each with the namespaces to list; the empty string means all namespaces."""
        wanted: dict[Kind, set[str]] = {}
        for need in _needs(form):
            for kind, namespace in self._resolved(need):
                wanted.setdefault(kind, set()).add(namespace if kind.namespaced else _EVERYWHERE)
        return {kind: _places(namespaces) for kind, namespaces in wanted.items()}

    def groups(self, form: BoundForm) -> Iterator[str]:
        """The API groups of the objects that a policy reads, served or not; `*` for those that its expressions do not name."""
        for need in _needs(form):
            if not need.entry:
                yield ANY if ANY in (need.group, need.resource) else need.group
            elif place := _place(self._entries.get(need.entry)):
                yield place.collection.group

    def put(self, kind: Kind, namespace: str, resources: Iterable[Resource]) -> None:
        """Take the objects of a namespace, or of all namespaces."""
        objects = self._objects.setdefault(kind, {})
        objects.update({(resource.namespace, resource.name): resource.body for resource in resources})
        self._listed.setdefault(kind, set()).add(namespace)

    def _resolved(self, need: Need) -> Iterator[tuple[Kind, str]]:
        if need.entry:
            place = _place(self._entries.get(need.entry))
            kind = self._kinds.get(place.collection) if place else None
            namespace: str | None = place.namespace if place else None
        else:
            named = self._named.get((need.group, need.version, need.kind))
            kind = self._kinds.get(named or Collection(need.group, need.version, need.resource))
            namespace = need.namespace
        if kind is not None:
            yield kind, namespace or _EVERYWHERE

    def get(self, collection: Collection, namespace: str, name: str, /) -> Value:
        """See ClusterData. Raises Unavailable for objects that were not listed."""
        kind = self._kinds.get(collection)
        if kind is None:
            return None
        self._require(kind, namespace)
        return self._objects[kind].get((namespace, name))

    def list(self, collection: Collection, namespace: str, labels: Mapping[str, str], /) -> Value:
        """See ClusterData.

        Raises EvaluationError for a kind that is not served, and Unavailable for one that was not listed.
        """
        kind = self._kinds.get(collection)
        if kind is None:
            raise EvaluationError("failed to list resource: the server could not find the requested resource")
        self._require(kind, namespace)
        items = [body for body in self._within(kind, namespace) if _labelled(body, labels)]
        return {"apiVersion": kind.api_version, "kind": f"{kind.kind}List", "metadata": {}, "items": items}

    def collection(self, group: str, version: str, kind: str, /) -> Collection:
        """See ClusterData. Raises EvaluationError for a kind that is not served."""
        place = self._named.get((group, version, kind))
        if place is None:
            name = f"{group}/{version}" if group else version
            raise EvaluationError(f'failed to map kind to resource: no matches for kind "{kind}" in version "{name}"')
        return place

    def entry(self, name: str, projection: str, /) -> Value:
        """See ClusterData.

        Raises EvaluationError for an unknown projection, and Unavailable for data that were not listed.
        """
        context_entry = self._entries.get(name)
        if context_entry is None:
            return None
        paths = {as_text(dig(named, "name")): as_text(dig(named, "jmesPath")) for named in _projections(context_entry)}
        if projection and projection not in paths:
            raise EvaluationError(f'failed to get global reference: projection "{projection}" not found')
        data = self._data(name, context_entry)
        return projected(data, paths[projection]) if projection else data

    def request(self, call: Call, /) -> Value:
        """See ClusterData. Raises Unavailable if requests are not allowed."""
        if self._network is None:
            return super().request(call)
        if any((kind.group, kind.plural) == ("", "secrets") for kind in self._listed):
            raise Unavailable("it makes an HTTP request, and none is made where expressions read Secrets")
        return answer_of(*self._network.request(call))

    def image(self, reference: str, /) -> Value:
        """See ClusterData. Raises Unavailable if registries are not allowed."""
        return super().image(reference) if self._network is None else self._network.image(reference)

    def _data(self, name: str, context_entry: JsonObject) -> Value:
        """The data of an entry: a list of objects, or the response to a call."""
        service = dig(context_entry, "spec", "apiCall", "service")
        if service is not None:
            return self._answered(context_entry, service)
        place = _place(context_entry)
        if place is None:
            path = as_text(dig(context_entry, "spec", "apiCall", "urlPath"))
            raise Unavailable(
                f"it reads the global context entry {name}, which calls {path or 'nothing'}: not a list, not an object"
            )
        kind = self._kinds.get(place.collection)
        if kind is None:
            raise EvaluationError(f"failed to get global reference: {place.collection.plural} are not served")
        self._require(kind, place.namespace)
        if not place.called:
            return self._within(kind, place.namespace)
        return with_doubles(self._called(kind, place))

    def _called(self, kind: Kind, place: _Place) -> Json:
        """The response of the API server to a GET of a list or of an object."""
        if place.name:
            body = self._objects[kind].get((place.namespace, place.name))
            if body is None:
                raise EvaluationError("failed to get global reference: no data available")
            return body
        bodies = [*self._within(kind, place.namespace)]
        items = bodies if "." in kind.group else [_untyped(body) for body in bodies]
        return {"apiVersion": kind.api_version, "kind": f"{kind.kind}List", "metadata": {}, "items": items}

    def _answered(self, context_entry: JsonObject, service: Json) -> Value:
        call = dig(context_entry, "spec", "apiCall")
        body = {as_text(dig(field, "key")): dig(field, "value") for field in as_list(dig(call, "data"))}
        headers = {
            as_text(dig(header, "key")): as_text(dig(header, "value")) for header in as_list(dig(service, "headers"))
        }
        request = Call(
            as_text(dig(call, "method")) or "GET",
            as_text(dig(service, "url")),
            tuple(sorted(headers.items())),
            orjson.dumps(body).decode() if body else "",
            as_text(dig(service, "caBundle")),
        )
        if self._network is None:
            return super().request(request)
        status, text = self._network.request(request)
        if status >= _FAILED:
            raise EvaluationError(f"failed to get global reference: HTTP {status}")
        return _decoded(text)

    def parse_yaml(self, text: str, /) -> Value:
        """See ClusterData. Raises EvaluationError for a text that is not YAML."""
        if self._parse is None:
            return super().parse_yaml(text)
        try:
            return with_doubles(self._parse(text))
        except ValueError as error:
            raise EvaluationError(f"error converting YAML to JSON: yaml: {error}") from None

    def _require(self, kind: Kind, namespace: str) -> None:
        """Raise Unavailable unless the objects of a namespace have been listed."""
        if not self._listed.get(kind, set()) & {namespace, _EVERYWHERE}:
            raise Unavailable(
                f"it reads {kind.resource}, a resource that is known only during evaluation, so its objects were not listed"
            )

    def _within(self, kind: Kind, namespace: str) -> Sequence[JsonObject]:
        objects = self._objects[kind]
        return [objects[key] for key in sorted(objects) if namespace in (_EVERYWHERE, key[0])]


class _Place(NamedTuple):
    """The source of an entry's data: objects of a collection, or the response to a call for them."""

    collection: Collection
    namespace: str
    name: str = ""
    called: bool = False


def _place(context_entry: JsonObject | None) -> _Place | None:
    """The source of an entry's data in the lists; None for another source."""
    spec = dig(context_entry, "spec", "kubernetesResource")
    if spec is not None:
        group, version, plural = (as_text(dig(spec, part)) for part in ("group", "version", "resource"))
        return _Place(Collection(group, version, plural), as_text(dig(spec, "namespace")))
    call = dig(context_entry, "spec", "apiCall")
    match = _PATH.fullmatch(as_text(dig(call, "urlPath")).rstrip("/"))
    if match is None or dig(call, "method") not in (None, "", "GET"):
        return None
    collection = Collection(match["group"] or "", match["version"], match["plural"])
    return _Place(collection, match["namespace"] or "", match["name"] or "", called=True)


def _projections(context_entry: JsonObject) -> Sequence[Json]:
    return as_list(dig(context_entry, "spec", "projections"))


def _untyped(body: JsonObject) -> JsonObject:
    """An object in the form of lists of built-in kinds."""
    return {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}


def answer_of(status: int, body: bytes) -> Value:
    """The response to an HTTP request as a map: a JSON object itself, any other JSON under `body`, both with `statusCode`.

    `status` is the HTTP status. A body that is not JSON is null.
    """
    value = _decoded(body)
    return {**value, "statusCode": status} if isinstance(value, dict) else {"body": value, "statusCode": status}


def _decoded(body: bytes) -> Value:
    """The JSON of a body, or None if it is not JSON."""
    try:
        return with_doubles(orjson.loads(body))
    except ValueError:
        return None


def _needs(form: BoundForm) -> frozenset[Need]:
    texts = [expression.text for _, expression in form.bound.compiled.expressions()]
    texts += [expression.text for exception in form.decision.exceptions for _, expression in exception.conditions]
    return frozenset(need for text in texts for need in needs(text, form.policy.namespace))


def _places(namespaces: set[str]) -> tuple[str, ...]:
    return (_EVERYWHERE,) if _EVERYWHERE in namespaces else tuple(sorted(namespaces))


def _labelled(body: JsonObject, labels: Mapping[str, str]) -> bool:
    own = as_object(dig(body, "metadata", "labels"))
    return all(own.get(key) == value for key, value in labels.items())
