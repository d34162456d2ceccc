"""The checks that level *restricted* adds to those of *baseline*, or has in place of them.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38, package `policy`.

Rules: `docs/semantics/pod-security.md#checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from scanner.model.json import Json, JsonObject, as_list, as_object, texts
from scanner.model.outcome import FieldPlace
from scanner.policies.pod_security.baseline import Failure, check_seccomp
from scanner.policies.pod_security.pods import (
    Container,
    Pod,
    choose,
    get_text,
    is_present,
    name_containers,
    name_setters,
    quote_each,
    sort_distinct,
)

PodCheck: TypeAlias = Callable[[Pod], Failure | None]

_ALLOWED_VOLUMES: Final = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
VOLUMES_1_30: Final = frozenset(_ALLOWED_VOLUMES)
VOLUMES_1_33: Final = VOLUMES_1_30 | {"image"}
_OTHER_VOLUMES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def unless_windows(check: PodCheck) -> PodCheck:
    """The check, which every pod for Windows passes."""
    return lambda pod: None if pod.is_windows else check(pod)


def unless_user_namespace(check: PodCheck) -> PodCheck:
    """The check, which every pod with a user namespace of its own passes."""
    return lambda pod: None if pod.has_user_namespace else check(pod)


def check_privilege_escalation(pod: Pod) -> Failure | None:
    """Every container forbids that its processes gain privileges."""
    bad = [container for container in pod.containers if container.security.get("allowPrivilegeEscalation") is not False]
    if not bad:
        return None
    return Failure(
        "allowPrivilegeEscalation != false",
        f"{name_containers(bad)} must set securityContext.allowPrivilegeEscalation=false",
        _place_each(bad, "allowPrivilegeEscalation"),
    )


def _place_each(containers: list[Container], *path: str) -> tuple[FieldPlace, ...]:
    return tuple((*container.place, "securityContext", *path) for container in containers)


def check_capabilities(pod: Pod) -> Failure | None:
    """Every container drops ALL capabilities, and adds none but NET_BIND_SERVICE."""
    keeping = [each for each in pod.containers if "ALL" not in _list_capabilities(each, "drop")]
    adding = [each for each in pod.containers if _list_added(each)]
    parts: list[str] = []
    if keeping:
        parts.append(f'{name_containers(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        values = quote_each(sort_distinct(name for each in adding for name in _list_added(each)))
        parts.append(f"{name_containers(adding)} must not include {values} in securityContext.capabilities.add")
    if not parts:
        return None
    fields = (*_place_each(keeping, "capabilities", "drop"), *_place_each(adding, "capabilities", "add"))
    return Failure("unrestricted capabilities", "; ".join(parts), fields)


def _list_added(container: Container) -> list[str]:
    names = _list_capabilities(container, "add")
    return [name for name in texts(names) if name != "NET_BIND_SERVICE"] if names else []


def _list_capabilities(container: Container, name: str) -> Sequence[Json]:
    return as_list(as_object(container.security.get("capabilities")).get(name))


class VolumeCheck(Struct, frozen=True):
    """Every volume has a source of a pod, and none of the host or of the network."""

    allowed: frozenset[str]

    def __call__(self, pod: Pod) -> Failure | None:
        """Check a pod."""
        if all(map(self._has_allowed, as_list(pod.spec.get("volumes")))):
            return None
        bad = [(place, volume) for place, volume in pod.volumes() if not self._has_allowed(volume)]
        types = [(place, get_text(volume, "name"), _find_type(volume)) for place, volume in bad]
        distinct = sort_distinct(kind for _, _, kind in types)
        what = choose(len(distinct), "restricted volume type", "restricted volume types")
        return Failure(
            "restricted volume types",
            f"{choose(len(types), 'volume', 'volumes')} {quote_each(name for _, name, _ in types)}"
            f" {choose(len(types), 'uses', 'use')} {what} {quote_each(distinct)}",
            tuple(place if kind == _UNKNOWN else (*place, kind) for place, _, kind in types),
        )

    def _has_allowed(self, volume: Json) -> bool:
        fields = as_object(volume)
        return any(map(is_present, map(fields.get, self.allowed.intersection(fields))))


_UNKNOWN: Final = "unknown"


def _find_type(volume: JsonObject) -> str:
    return next((name for name in _OTHER_VOLUMES if is_present(volume.get(name))), _UNKNOWN)


def check_run_as_non_root(pod: Pod) -> Failure | None:
    """Every container must not run as root: it states so itself, or the pod does."""
    of_pod = pod.security.get("runAsNonRoot")
    values = [(container, container.security.get("runAsNonRoot")) for container in pod.containers]
    forbidden = [container for container, value in values if value is False]
    if of_pod is False or forbidden:
        who = name_setters(pod=of_pod is False, containers=forbidden)
        own = (pod.at("securityContext", "runAsNonRoot"),) if of_pod is False else ()
        return Failure(
            "runAsNonRoot != true",
            f"{who} must not set securityContext.runAsNonRoot=false",
            (*own, *_place_each(forbidden, "runAsNonRoot")),
        )
    silent = [container for container, value in values if not is_present(value)]
    if of_pod is True or not silent:
        return None
    return Failure(
        "runAsNonRoot != true",
        f"pod or {name_containers(silent)} must set securityContext.runAsNonRoot=true",
        (pod.at("securityContext", "runAsNonRoot"), *_place_each(silent, "runAsNonRoot")),
    )


def check_run_as_user(pod: Pod) -> Failure | None:
    """Neither the pod nor a container names the user 0."""
    if "runAsUser" not in pod.secured:
        return None
    of_pod = _is_root(pod.security)
    bad = [container for container in pod.containers if _is_root(container.security)]
    if not (of_pod or bad):
        return None
    own = (pod.at("securityContext", "runAsUser"),) if of_pod else ()
    return Failure(
        "runAsUser=0",
        f"{name_setters(pod=of_pod, containers=bad)} must not set runAsUser=0",
        (*own, *_place_each(bad, "runAsUser")),
    )


def _is_root(security: JsonObject) -> bool:
    user = security.get("runAsUser")
    return isinstance(user, int) and not isinstance(user, bool) and user == 0


def check_seccomp_is_set(pod: Pod) -> Failure | None:
    """Every container has the profile of the runtime or of the host: its own, or that of the pod."""
    explicit = check_seccomp(pod)
    if explicit is not None:
        return explicit
    if is_present(pod.security.get("seccompProfile")):
        return None
    silent = [container for container in pod.containers if not is_present(container.security.get("seccompProfile"))]
    if not silent:
        return None
    return Failure(
        "seccompProfile",
        f"pod or {name_containers(silent)} must set securityContext.seccompProfile.type"
        ' to "RuntimeDefault" or "Localhost"',
        (pod.at("securityContext", "seccompProfile"), *_place_each(silent, "seccompProfile")),
    )
