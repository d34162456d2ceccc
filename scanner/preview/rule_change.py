"""A change of rules, as a user describes it, applied to the rules of a cluster; each part of it is the cause of differences.

Policies, bindings and params replace those of the same name; everything else stays as it is in the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final

import orjson

from scanner.errors import ListFailed, UsageError
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, text_map, texts
from scanner.model.outcome import Gap
from scanner.model.policy import ADMISSION_API, Action
from scanner.model.resource import NAMESPACES
from scanner.policies.language import Language
from scanner.policies.manifest import GROUP
from scanner.policies.pod_security.labels import read_labels
from scanner.scan.documents import FilePlace, Manifest, is_policy
from scanner.scan.prepare import GatheredRules, ListedNamespaces

_BINDING: Final = "Binding"
ABSENT: Final = "absent"
_HIDDEN: Final = "not shown"
_MOST_FIELDS: Final = 20
_LONGEST: Final = 120
_DEFAULTS: Final[tuple[Json, ...]] = ("Equivalent", "Fail", "Never", "*", {}, [], ["*"])
"""Values that the API sets where a manifest has none: a file without them changes nothing."""
_NO_CONTENT: Final = ("apiVersion", "kind", "metadata", "status")
_NAMESPACE: Final = (NAMESPACES.api_version, NAMESPACES.kind)


@dataclass(frozen=True, slots=True)
class RuleChange:
    """The change. `manifests` replace documents, `actions` are those of bindings, `bound` those of policies to put into force.

    `without` are names, or KIND/NAME, of policies and bindings to remove. `params` are the sources of the manifests that must be
    params. `namespace_labels` are added to the labels of namespaces; an empty `version` is that of the cluster.
    """

    manifests: tuple[Manifest, ...] = ()
    params: frozenset[str] = frozenset()
    bound: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    actions: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    namespace_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    version: str = ""

    def __bool__(self) -> bool:
        """Return whether anything is to be changed."""
        parts = (self.manifests, self.bound, self.actions, self.without, self.namespace_labels, self.version)
        return any(map(bool, parts))


@dataclass(frozen=True, slots=True)
class ChangedField:
    """A field that the change sets, as texts; `before` or `after` is `absent` where there is none. `line` is 0 if it is not known."""

    path: str
    before: str
    after: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Cause:
    """One part of the change. `source` is the file and the document, or the flag.

    It concerns the policies of `languages` (empty: of all) with one of `names` (empty: with any), or with params of `param_kind`, a
    group and a kind; with a `namespace`, only about objects of that namespace. A part in a file has a `place`.
    """

    source: str
    what: str
    fields: tuple[ChangedField, ...] = ()
    languages: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    param_kind: tuple[str, str] = ("", "")
    namespace: str = ""
    place: FilePlace | None = None


def apply_change(
    change: RuleChange, gathered: GatheredRules, languages: Sequence[Language]
) -> tuple[GatheredRules, tuple[Cause, ...]]:
    """The rules after the change, and its parts. Raises UsageError for a part that changes something that does not exist."""
    documents = _Documents(gathered, languages)
    causes: list[Cause] = []
    labels = {name: dict(of_namespace) for name, of_namespace in change.namespace_labels.items()}
    sources: dict[str, tuple[str, FilePlace | None]] = dict.fromkeys(labels, ("--namespace-label", None))
    for manifest in change.manifests:
        if _kind_of(manifest.body) == _NAMESPACE:
            name = as_text(dig(manifest.body, "metadata", "name"))
            labels.setdefault(name, {}).update(_read_labels(manifest.body))
            sources.setdefault(name, (manifest.source, manifest.place))
        else:
            causes += documents.replace(manifest, must_be_param=manifest.source in change.params)
    for pattern in change.without:
        causes += documents.remove(pattern)
    for name, actions in change.actions.items():
        causes += documents.set_actions(name, actions)
    for name, actions in change.bound.items():
        causes += documents.bind(name, actions)
    namespaces = gathered.namespaces
    for name, of_namespace in labels.items():
        source, place = sources[name]
        namespaces, of_labels = _label(namespaces, name, of_namespace, source)
        causes += [replace(cause, place=place) for cause in of_labels]
    identity = gathered.identity
    if (
        change.version
        and identity.release.rules != (after := replace(identity, server_version=change.version)).release.rules
    ):
        causes.append(_describe_version(identity.server_version, after.server_version))
        identity = after
    return replace(gathered, documents=documents.all, namespaces=namespaces, identity=identity), tuple(causes)


def _describe_version(before: str, after: str) -> Cause:
    return Cause(
        "--kubernetes-version", "the Kubernetes release", (ChangedField("version", before or "unknown", after),)
    )


def _read_labels(namespace: JsonObject) -> dict[str, str]:
    return {key: as_text(value) for key, value in as_object(dig(namespace, "metadata", "labels")).items()}


def _label(
    namespaces: ListedNamespaces, name: str, labels: Mapping[str, str], source: str
) -> tuple[ListedNamespaces, list[Cause]]:
    """The namespaces with labels added to one of them. Raises UsageError for a namespace that does not exist, and for new invalid labels."""
    body = namespaces.by_name.get(name)
    if body is None:
        raise UsageError(f"{source}: namespace {name} is not in the cluster: see `kubectl get namespaces`")
    metadata = as_object(body.get("metadata"))
    before = as_object(metadata.get("labels"))
    after = {**before, **labels}
    faults = read_labels(text_map(after)).faults
    if faults and not read_labels(text_map(before)).faults:  # as `ValidateNamespace` refuses the update
        raise UsageError(f"{source}: Namespace {name}: {', '.join(map(str, faults))}")
    fields = tuple(_list_fields(before, after, "metadata.labels"))
    changed = {**body, "metadata": {**metadata, "labels": after}}
    cause = [Cause(source, f"Namespace {name}", fields, namespace=name)] if fields else []
    return replace(namespaces, by_name={**namespaces.by_name, name: changed}), cause


class _Documents:
    """The documents of the rules, which the parts of the change replace, remove and add. Each method returns the causes."""

    def __init__(self, gathered: GatheredRules, languages: Sequence[Language]) -> None:
        self.all = gathered.documents
        self._gathered = gathered
        self._languages = tuple(languages)

    def replace(self, manifest: Manifest, *, must_be_param: bool) -> list[Cause]:
        """Put a manifest in the place of the document with its kind and name. A document of another version is the same one."""
        body, key = manifest.body, _key_of(manifest.body)
        rule = is_policy(body, self._languages)
        if must_be_param and rule:
            raise UsageError(f"--param {manifest.source} is a {body.get('kind')} and no param: name its file with -f")
        others = [each for each in self.all if isinstance(each, Gap) or _key_of(each.body) != key]
        replaced = [each for each in self.all if isinstance(each, Manifest) and _key_of(each.body) == key]
        self.all = (manifest, *others)
        before = replaced[0].body if replaced else None if rule else self._find_param(body)
        fields = tuple(_list_fields(_content(before), _content(body), ""))
        if before is not None and not fields:
            return []
        if body.get("kind") == "Secret":
            fields = (ChangedField("data", _HIDDEN, _HIDDEN),)
        cause = self._make_cause(manifest.source, [each for each in (before, body) if each], fields)
        return [replace(cause, place=manifest.place)]

    def _find_param(self, body: JsonObject) -> JsonObject | None:
        """The object that the cluster has under the name of a param, None without one or if it cannot be read."""
        kinds = {(kind.api_version, kind.kind): kind for kind in self._gathered.discovery.kinds}
        kind, namespace = kinds.get(_kind_of(body)), as_text(dig(body, "metadata", "namespace"))
        try:
            listed = self._gathered.listing.list_all(kind, (namespace,)) if kind else ()
            return next((each.body for each in listed if each.name == _name_of(body)), None)
        except (ListFailed, ValueError):
            return None

    def remove(self, pattern: str) -> list[Cause]:
        """Remove the policies and bindings of a name, or the one of a kind and a name."""
        kind, _, name = pattern.rpartition("/")
        removed = [
            each
            for each in self._list_rules()
            if _name_of(each.body) == name and kind.lower() in ("", as_text(each.body.get("kind")).lower())
        ]
        if not removed:
            raise UsageError(f"--without {pattern}: there is no policy and no binding of that name{self._list_names()}")
        self.all = tuple(each for each in self.all if each not in removed)
        gone = (ChangedField(_title(each.body), "present", ABSENT) for each in removed)
        return [
            self._make_cause(f"--without {pattern}", [each.body], (field,))
            for each, field in zip(removed, gone, strict=True)
        ]

    def set_actions(self, name: str, actions: tuple[Action, ...], flag: str = "--action") -> list[Cause]:
        """Set the actions of a binding, or those of a policy that needs none."""
        found = [each for each in self._list_rules() if _name_of(each.body) == name and _has_actions(each.body)]
        if not found:
            raise UsageError(f"{flag} {name}: no binding with actions has that name{self._list_names()}")
        causes: list[Cause] = []
        for each in found:
            spec = {**as_object(each.body.get("spec")), "validationActions": list(actions)}
            changed = replace(each, body={**each.body, "spec": spec})
            self.all = tuple(changed if document is each else document for document in self.all)
            fields = tuple(_list_fields(_content(each.body), _content(changed.body), ""))
            source = f"{flag} {name}={','.join(actions)}"
            causes += [self._make_cause(source, [each.body], fields)] if fields else []
        return causes

    def bind(self, name: str, actions: tuple[Action, ...]) -> list[Cause]:
        """Put a policy into force: its bindings get the actions, and a policy without a binding gets one."""
        policies = [
            each
            for each in self._list_rules()
            if as_text(each.body.get("kind")) in ADMISSION_API and _name_of(each.body) == name
        ]
        if not policies:
            raise UsageError(f"--bind {name}: there is no such policy that needs a binding{self._list_names()}")
        bindings = [
            each
            for each in self._list_rules()
            if _is_binding(each.body)
            and as_text(dig(each.body, "spec", "policyName")) == name
            and _has_actions(each.body)
        ]
        if bindings:
            return [cause for each in bindings for cause in self.set_actions(_name_of(each.body), actions, "--bind")]
        causes = []
        for each in policies:
            binding = _make_binding(each.body, actions)
            self.all = (Manifest(f"--bind {name}", binding), *self.all)
            added = ChangedField(_title(binding), ABSENT, "present")
            causes.append(self._make_cause(f"--bind {name}={','.join(actions)}", [binding], (added,)))
        return causes

    def _list_rules(self) -> Iterator[Manifest]:
        return (each for each in self.all if isinstance(each, Manifest) and is_policy(each.body, self._languages))

    def _list_names(self) -> str:
        names = sorted({_name_of(each.body) for each in self._list_rules()})
        return f". There are: {', '.join(names[:_MOST_FIELDS])}" if names else ""

    def _make_cause(self, source: str, bodies: Sequence[JsonObject], fields: tuple[ChangedField, ...]) -> Cause:
        """The cause of a document that changes, given its forms before and after."""
        body = bodies[-1]
        kind, name = as_text(body.get("kind")), _name_of(body)
        language = next((each for each in self._languages if each.reads(body)), None)
        what = f"{kind} {name}"
        if _is_binding(body):
            names = dict.fromkeys(as_text(dig(each, "spec", "policyName")) for each in bodies)
            return Cause(source, what, fields, (kind.removesuffix(_BINDING),), tuple(names))
        if language is None:
            group = as_text(body.get("apiVersion")).rpartition("/")[0]
            return Cause(source, what, fields, ("",), param_kind=(group, kind))
        if kind not in language.names:
            # An exception or another object that policies of a family rely on may concern each of them.
            readers = tuple(each for one in self._languages if one.reads(body) for each in one.names)
            return Cause(source, what, fields, readers)
        namespace = as_text(dig(body, "metadata", "namespace"))
        return Cause(source, what, fields, (kind,), (name, f"{namespace}/{name}"))


def locate_fields(
    causes: Iterable[Cause], find: Callable[[FilePlace, Sequence[str]], Mapping[str, int]]
) -> tuple[Cause, ...]:
    """The parts of a change with the lines of their fields; `find` gives the lines of some paths of a document."""
    return tuple(_locate(cause, cause.place, find) if cause.place else cause for cause in causes)


def _locate(cause: Cause, place: FilePlace, find: Callable[[FilePlace, Sequence[str]], Mapping[str, int]]) -> Cause:
    lines = find(place, [each.path for each in cause.fields])
    return replace(cause, fields=tuple(replace(each, line=lines.get(each.path, 0)) for each in cause.fields))


def _key_of(body: JsonObject) -> tuple[str, ...]:
    group = as_text(body.get("apiVersion")).rpartition("/")[0]
    return group, as_text(body.get("kind")), as_text(dig(body, "metadata", "namespace")), _name_of(body)


def _kind_of(body: JsonObject) -> tuple[str, str]:
    return as_text(body.get("apiVersion")), as_text(body.get("kind"))


def _name_of(body: JsonObject) -> str:
    return as_text(dig(body, "metadata", "name"))


def _title(body: JsonObject) -> str:
    return f"{as_text(body.get('kind'))} {_name_of(body)}"


def _is_binding(body: JsonObject) -> bool:
    kind = as_text(body.get("kind"))
    return kind.endswith(_BINDING) and kind.removesuffix(_BINDING) in ADMISSION_API


def _has_actions(body: JsonObject) -> bool:
    return bool(texts(dig(body, "spec", "validationActions")))


def _make_binding(policy: JsonObject, actions: tuple[Action, ...]) -> JsonObject:
    kind, name = as_text(policy.get("kind")), _name_of(policy)
    of_actions: JsonObject = {"validationActions": list(actions)} if kind == ADMISSION_API[0] else {}
    return {
        "apiVersion": policy.get("apiVersion") or f"{GROUP}/v1",
        "kind": f"{kind}{_BINDING}",
        "metadata": {"name": name},
        "spec": {"policyName": name, **of_actions},
    }


# The fields that differ between two forms of a document.


def _content(body: JsonObject | None) -> JsonObject:
    """The part of a document that decides: without metadata and status."""
    return {key: value for key, value in (body or {}).items() if key not in _NO_CONTENT}


def _list_fields(before: Json, after: Json, path: str) -> Iterator[ChangedField]:
    """The fields that differ, by path; at most twenty."""
    found: list[ChangedField] = []
    _add_fields(before, after, path, found)
    yield from found[:_MOST_FIELDS]


def _add_fields(before: Json, after: Json, path: str, found: list[ChangedField]) -> None:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            _add_fields(before.get(key), after.get(key), _join(path, key), found)
    elif isinstance(before, list) and isinstance(after, list) and _holds_objects(*before, *after):
        for index, (one, other) in enumerate(zip_longest(before, after)):
            _add_fields(one, other, f"{path}[{index}]", found)
    elif not (after is None and before in _DEFAULTS):
        found.append(ChangedField(path, _write(before), _write(after)))


def _join(path: str, key: str) -> str:
    name = key if key.replace("_", "").replace("-", "").isalnum() else f"['{key}']"
    separator = "." if path and not name.startswith("[") else ""
    return f"{path}{separator}{name}"


def _holds_objects(*items: Json) -> bool:
    return all(isinstance(item, dict) for item in items)


def _write(value: Json) -> str:
    if value is None:
        return ABSENT
    text = ", ".join(map(_write_item, as_list(value))) if isinstance(value, list) else _write_item(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _write_item(value: Json) -> str:
    """Text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
