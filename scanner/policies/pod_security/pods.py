"""A pod, or the template of one in a workload, as the checks of Pod Security read it; and the texts that name its containers.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38, packages `policy` and `admission`.

Rules: `docs/semantics/pod-security.md#texts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object, as_text, dig, text_map
from scanner.model.outcome import FieldPlace
from scanner.model.resource import Kind

LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
"""The lists of containers in the order in which checks read them."""
_TEMPLATE: Final = ("spec", "template")
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
TEMPLATES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): _TEMPLATE,
    ("apps", "replicasets"): _TEMPLATE,
    ("apps", "deployments"): _TEMPLATE,
    ("apps", "statefulsets"): _TEMPLATE,
    ("apps", "daemonsets"): _TEMPLATE,
    ("batch", "jobs"): _TEMPLATE,
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
"""The path of the template in the objects of each resource that has one, by group and plural."""

_READ_OF_SPEC: Final = (
    *(("hostNetwork",), ("hostPID",), ("hostIPC",), ("hostUsers",), ("os",), ("runtimeClassName",), ("securityContext",)),
    *(("volumes", "*", "name"), ("volumes", "*", "#")),
)  # fmt: skip
_READ_OF_CONTAINERS: Final = (
    ("name",),
    ("ports",),
    ("securityContext",),
    *(
        (*handler, action, "host")
        for handler in (("livenessProbe",), ("readinessProbe",), ("startupProbe",), ("lifecycle", "postStart"), ("lifecycle", "preStop"))
        for action in ("httpGet", "tcpSocket")
    ),
)  # fmt: skip


def list_read_fields(*prefixes: str) -> Iterator[tuple[str, ...]]:
    """The access paths of all that checks read of a pod or a template in any place; of annotations, those with these prefixes."""
    for place in dict.fromkeys(((), *TEMPLATES.values())):
        of_annotations = ("object", *place, "metadata", "annotations")
        yield from ((*of_annotations, f"{prefix}/*") for prefix in prefixes)
        spec = ("object", *place, "spec")
        yield from ((*spec, *path) for path in _READ_OF_SPEC)
        yield from ((*spec, each, "*", *path) for each in LISTS for path in _READ_OF_CONTAINERS)


class Container(NamedTuple):
    """A container of a pod, its place in the object, and its securityContext."""

    name: str
    place: FieldPlace
    body: JsonObject
    security: JsonObject


class Pod(NamedTuple):
    """The annotations and the spec of a pod or of a template.

    `place` is that of its metadata and spec in the object. `secured` are the fields that any securityContext has: most pods have few.
    """

    place: FieldPlace
    annotations: Mapping[str, str]
    spec: JsonObject
    security: JsonObject
    containers: tuple[Container, ...]
    secured: frozenset[str]

    @property
    def is_windows(self) -> bool:
        """Return whether the pod states that it runs on Windows; node selectors do not count."""
        return dig(self.spec, "os", "name") == "windows"

    @property
    def has_user_namespace(self) -> bool:
        """Return whether the pod has a user namespace of its own."""
        return self.spec.get("hostUsers") is False

    def at(self, *path: str | int) -> FieldPlace:
        """The place of a field below the spec."""
        return (*self.place, "spec", *path)

    def annotation(self, key: str) -> FieldPlace:
        """The place of an annotation."""
        return (*self.place, "metadata", "annotations", key)

    def volumes(self) -> Iterator[tuple[FieldPlace, JsonObject]]:
        """The volumes, each with its place."""
        for index, volume in enumerate(as_list(self.spec.get("volumes"))):
            yield self.at("volumes", index), as_object(volume)


def find_template(kind: Kind, body: JsonObject) -> tuple[FieldPlace, JsonObject] | None:
    """The place and the document that has the metadata and the spec of a pod: of a pod itself, or of the template of a workload.

    None for objects without a spec of a pod.
    """
    path = () if (kind.group, kind.plural) == ("", "pods") else TEMPLATES.get((kind.group, kind.plural))
    document = None if path is None else dig(body, *path)
    if path is None or not isinstance(dig(document, "spec"), Mapping):
        return None
    return ("object", *path), as_object(document)


def read_pod(place: FieldPlace, document: JsonObject) -> Pod:
    """Read a pod or a template at a place of the object."""
    spec = as_object(document.get("spec"))
    security = as_object(spec.get("securityContext"))
    containers = tuple(_list_containers(place, spec))
    return Pod(
        place=place,
        annotations=text_map(dig(document, "metadata", "annotations")),
        spec=spec,
        security=security,
        containers=containers,
        secured=frozenset(security).union(*(container.security for container in containers)),
    )


def is_significant(new: JsonObject, old: JsonObject) -> bool:
    """Return whether an update of a pod is judged: `isSignificantPodUpdate`."""
    if dig(new, "metadata", "deletionTimestamp") is not None:
        return False
    after, before = ([as_list(dig(pod, "spec", name)) for name in LISTS] for pod in (new, old))
    if [len(containers) for containers in after[:-1]] != [len(containers) for containers in before[:-1]]:
        return True
    annotations = [text_map(dig(pod, "metadata", "annotations")) for pod in (new, old)]
    ephemeral = {as_text(dig(container, "name")): container for container in before[-1]}
    pairs = [pair for lists in zip(after[:-1], before[:-1], strict=True) for pair in zip(*lists, strict=True)]
    pairs += [(container, ephemeral.get(as_text(dig(container, "name")))) for container in after[-1]]
    return any(old is None or _differ(new, old, annotations) for new, old in pairs)


def _differ(new: Json, old: Json, annotations: list[dict[str, str]]) -> bool:
    """Return whether two forms of a container have another image, or another annotation with the seccomp profile."""
    profiles = [of_pod.get(f"{_SECCOMP}{as_text(dig(new, 'name'))}") for of_pod in annotations]
    return dig(new, "image") != dig(old, "image") or profiles[0] != profiles[1]


def _list_containers(place: FieldPlace, spec: JsonObject) -> Iterator[Container]:
    for name in LISTS:
        for index, item in enumerate(as_list(spec.get(name))):
            body = as_object(item)
            security = as_object(body.get("securityContext"))
            yield Container(as_text(body.get("name")), (*place, "spec", name, index), body, security)


def quote_each(texts: Iterable[str]) -> str:
    """Texts in quotes, joined by commas; nothing in them is escaped."""
    return ", ".join(f'"{text}"' for text in texts)


def choose(number: int, singular: str, plural: str) -> str:
    """The singular for exactly one, else the plural."""
    return singular if number == 1 else plural


def name_containers(containers: Iterable[Container]) -> str:
    """The names of containers, each as often and in the order in which it occurs: `containers "a", "b"`."""
    names = [container.name for container in containers]
    return f"{choose(len(names), 'container', 'containers')} {quote_each(names)}"


def name_setters(*, pod: bool, containers: Iterable[Container]) -> str:
    """The setters of a field: `pod`, `container "a"`, or `pod and container "a"`."""
    setters = list(containers)
    return " and ".join([*(["pod"] if pod else ()), *([name_containers(setters)] if setters else ())])


def sort_distinct(texts: Iterable[str]) -> list[str]:
    """Distinct texts in the order of their bytes."""
    return sorted(set(texts), key=str.encode)


def select_securing(
    pod: Pod, field: str, is_bad: Callable[[JsonObject], bool]
) -> tuple[JsonObject | None, list[tuple[Container, JsonObject]]]:
    """The value of a field of the securityContexts where it is bad: of the pod, or None, and of each such container."""
    if field not in pod.secured:
        return None, []
    of_pod = pod.security.get(field)
    bad = of_pod if isinstance(of_pod, Mapping) and is_bad(of_pod) else None
    values = ((container, container.security.get(field)) for container in pod.containers)
    return bad, [(each, value) for each, value in values if isinstance(value, Mapping) and is_bad(value)]


def get_text(value: JsonObject | None, key: str) -> str:
    """A string of an object; empty if it is missing."""
    return as_text((value or EMPTY).get(key))


def is_present(value: Json) -> bool:
    """Return whether a field has a value."""
    return value is not None
