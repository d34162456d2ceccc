"""The checks of level *baseline*.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38, package `policy`.

Rules: `docs/semantics/pod-security.md#checks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from scanner.cel.values.text import quote
from scanner.model.json import JsonObject, as_list, as_object, as_text, dig, texts
from scanner.model.outcome import FieldPlace
from scanner.policies.pod_security.pods import (
    Container,
    Pod,
    choose,
    get_text,
    is_present,
    name_containers,
    name_setters,
    quote_each,
    select_securing,
    sort_distinct,
)


class Failure(Struct, frozen=True):
    """Why a pod fails a check: the reason and the detail of the API server, and the places of the fields that decide."""

    reason: str
    detail: str
    fields: tuple[FieldPlace, ...]

    @property
    def text(self) -> str:
        """The text in the answer of the API server."""
        return f"{self.reason} ({self.detail})"


_CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
"""The beginning of the keys of the annotations with the profiles of containers."""
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_PROFILES: Final = ("RuntimeDefault", "Localhost")
ANNOTATIONS: Final = (APP_ARMOR, _SECCOMP_POD, _SECCOMP_CONTAINER)
"""The beginnings of the keys of all annotations that checks read."""
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS: Final = ("postStart", "preStop")
_ACTIONS: Final = ("httpGet", "tcpSocket")


def check_app_armor(pod: Pod) -> Failure | None:
    """Fields and annotations name no other profiles than those of the runtime and of the host."""
    of_pod, of_containers = select_securing(pod, "appArmorProfile", _is_bad_profile)
    annotations = {
        key: value
        for key, value in pod.annotations.items()
        if key.startswith(APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    }
    if not (of_pod is not None or of_containers or annotations):
        return None
    who = name_setters(pod=of_pod is not None, containers=[container for container, _ in of_containers])
    setters = [who] if who else []
    if annotations:
        setters.append(choose(len(annotations), "annotation", "annotations"))
    profiles = [*([of_pod] if of_pod is not None else ()), *(profile for _, profile in of_containers)]
    values = sort_distinct(get_text(profile, "type") for profile in profiles)
    values += sort_distinct(f"{key}={quote(value)}" for key, value in annotations.items())
    return Failure(
        f"forbidden AppArmor {choose(len(values), 'profile', 'profiles')}",
        f"{' and '.join(setters)} must not set AppArmor profile type to {quote_each(values)}",
        (
            *_place_of_pod(pod, "appArmorProfile", "type", present=of_pod is not None),
            *((*container.place, "securityContext", "appArmorProfile", "type") for container, _ in of_containers),
            *map(pod.annotation, sort_distinct(annotations)),
        ),
    )


def _place_of_pod(pod: Pod, *path: str, present: bool) -> Iterator[FieldPlace]:
    """The place of a field of the securityContext of a pod, if it is one of those that decide."""
    if present:
        yield pod.at("securityContext", *path)


def _is_bad_profile(profile: JsonObject) -> bool:
    return get_text(profile, "type") not in _PROFILES


def check_capabilities(pod: Pod) -> Failure | None:
    """Containers add no capabilities but those that a runtime grants by default."""
    bad = [(container, _list_added(container) - _CAPABILITIES) for container in pod.containers]
    bad = [(container, added) for container, added in bad if added]
    if not bad:
        return None
    values = sort_distinct(name for _, added in bad for name in added)
    return Failure(
        "non-default capabilities",
        f"{name_containers(container for container, _ in bad)} must not include {quote_each(values)}"
        " in securityContext.capabilities.add",
        tuple((*container.place, "securityContext", "capabilities", "add") for container, _ in bad),
    )


def _list_added(container: Container) -> frozenset[str]:
    return frozenset(texts(dig(container.security, "capabilities", "add")))


def check_host_namespaces(pod: Pod) -> Failure | None:
    """The pod shares no namespace with its host."""
    names = [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name) is True]
    if not names:
        return None
    detail = ", ".join(f"{name}=true" for name in names)
    return Failure("host namespaces", detail, tuple(pod.at(name) for name in names))


def check_host_path_volumes(pod: Pod) -> Failure | None:
    """No volume is a path of the host."""
    bad = [(place, volume) for place, volume in pod.volumes() if is_present(volume.get("hostPath"))]
    if not bad:
        return None
    names = quote_each(get_text(volume, "name") for _, volume in bad)
    return Failure(
        "hostPath volumes",
        f"{choose(len(bad), 'volume', 'volumes')} {names}",
        tuple((*place, "hostPath") for place, _ in bad),
    )


def check_host_ports(pod: Pod) -> Failure | None:
    """No container has a port of its host."""
    bad: list[Container] = []
    ports: list[str] = []
    fields: list[FieldPlace] = []
    for container in pod.containers:
        used = [
            (index, port)
            for index, item in enumerate(as_list(container.body.get("ports")))
            if isinstance(port := dig(item, "hostPort"), int) and port
        ]
        if used:
            bad.append(container)
            ports += [str(port) for _, port in used]
            fields += [(*container.place, "ports", index, "hostPort") for index, _ in used]
    if not bad:
        return None
    distinct = sort_distinct(ports)
    return Failure(
        "hostPort",
        f"{name_containers(bad)} {choose(len(bad), 'uses', 'use')} {choose(len(distinct), 'hostPort', 'hostPorts')}"
        f" {', '.join(distinct)}",
        tuple(fields),
    )


def check_probe_hosts(pod: Pod) -> Failure | None:
    """Probes and lifecycle handlers name no host, not even the loopback address."""
    names: list[str] = []
    hosts: list[str] = []
    fields: list[FieldPlace] = []
    for container in pod.containers:
        for path, handler in _list_handlers(container.body):
            for action in _ACTIONS:
                if action in handler and (host := as_text(dig(handler, action, "host"))):
                    names.append(container.name)
                    hosts.append(host)
                    fields.append((*container.place, *path, action, "host"))
    if not names:
        return None
    distinct, bad = sort_distinct(hosts), sort_distinct(names)
    what = choose(len(distinct), "probe or lifecycle host", "probe or lifecycle hosts")
    return Failure(
        "probe or lifecycle host",
        f"{choose(len(bad), 'container', 'containers')} {quote_each(bad)} {choose(len(bad), 'uses', 'use')} {what}"
        f" {quote_each(distinct)}",
        tuple(fields),
    )


def _list_handlers(container: JsonObject) -> Iterator[tuple[tuple[str, ...], JsonObject]]:
    for name in _PROBES:
        if name in container:
            yield (name,), as_object(container[name])
    if "lifecycle" in container:
        for name in _HANDLERS:
            yield ("lifecycle", name), as_object(dig(container, "lifecycle", name))


def check_privileged(pod: Pod) -> Failure | None:
    """No container is privileged."""
    if "privileged" not in pod.secured:
        return None
    bad = [container for container in pod.containers if container.security.get("privileged") is True]
    if not bad:
        return None
    return Failure(
        "privileged",
        f"{name_containers(bad)} must not set securityContext.privileged=true",
        tuple((*container.place, "securityContext", "privileged") for container in bad),
    )


def check_proc_mount(pod: Pod) -> Failure | None:
    """Containers have the default masks of /proc."""
    if "procMount" not in pod.secured:
        return None
    bad = [(container, container.security.get("procMount")) for container in pod.containers]
    bad = [(container, value) for container, value in bad if is_present(value) and value != "Default"]
    if not bad:
        return None
    values = quote_each(sort_distinct(as_text(value) for _, value in bad))
    return Failure(
        "procMount",
        f"{name_containers(container for container, _ in bad)} must not set securityContext.procMount to {values}",
        tuple((*container.place, "securityContext", "procMount") for container, _ in bad),
    )


SE_LINUX_1_0: Final = frozenset(["", "container_t", "container_init_t", "container_kvm_t"])
SE_LINUX_1_31: Final = SE_LINUX_1_0 | {"container_engine_t"}


class SeLinuxCheck(Struct, frozen=True):
    """SELinux options name no user and no role, and only types of containers."""

    types: frozenset[str]

    def __call__(self, pod: Pod) -> Failure | None:
        """Check a pod."""
        of_pod, of_containers = select_securing(pod, "seLinuxOptions", self._is_bad)
        options = [*([of_pod] if of_pod is not None else ()), *(value for _, value in of_containers)]
        if not options:
            return None
        types = sort_distinct(get_text(each, "type") for each in options if get_text(each, "type") not in self.types)
        parts = [f"{choose(len(types), 'type', 'types')} {quote_each(types)}"] if types else []
        parts += [
            f"{name} may not be set" for name in ("user", "role") if any(get_text(each, name) for each in options)
        ]
        who = name_setters(pod=of_pod is not None, containers=[container for container, _ in of_containers])
        return Failure(
            "seLinuxOptions",
            f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(parts)}",
            (
                *_place_of_pod(pod, "seLinuxOptions", present=of_pod is not None),
                *((*container.place, "securityContext", "seLinuxOptions") for container, _ in of_containers),
            ),
        )

    def _is_bad(self, options: JsonObject) -> bool:
        is_other = get_text(options, "type") not in self.types
        return is_other or bool(get_text(options, "user") or get_text(options, "role"))


def check_seccomp_annotations(pod: Pod) -> Failure | None:
    """Annotations name no other profiles than those of the runtime and of the host; before 1.19, without fields."""
    keys = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{container.name}" for container in pod.containers)]
    bad = sort_distinct(key for key in keys if key in pod.annotations and _is_bad_annotation(pod.annotations[key]))
    if not bad:
        return None
    values = ", ".join(sort_distinct(f"{key}={quote(pod.annotations[key])}" for key in bad))
    detail = f"forbidden {choose(len(bad), 'annotation', 'annotations')} {values}"
    return Failure("seccompProfile", detail, tuple(map(pod.annotation, bad)))


def _is_bad_annotation(value: str) -> bool:
    return value not in ("runtime/default", "docker/default") and not value.startswith("localhost/")


def check_seccomp(pod: Pod) -> Failure | None:
    """Fields name no other profiles than those of the runtime and of the host."""
    of_pod, of_containers = select_securing(pod, "seccompProfile", _is_bad_profile)
    profiles = [*([of_pod] if of_pod is not None else ()), *(profile for _, profile in of_containers)]
    if not profiles:
        return None
    who = name_setters(pod=of_pod is not None, containers=[container for container, _ in of_containers])
    values = quote_each(sort_distinct(get_text(profile, "type") for profile in profiles))
    return Failure(
        "seccompProfile",
        f"{who} must not set securityContext.seccompProfile.type to {values}",
        (
            *_place_of_pod(pod, "seccompProfile", "type", present=of_pod is not None),
            *((*container.place, "securityContext", "seccompProfile", "type") for container, _ in of_containers),
        ),
    )


SYSCTLS_1_0: Final = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ]
)
SYSCTLS_1_27: Final = SYSCTLS_1_0 | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_1_29: Final = SYSCTLS_1_27 | {
    f"net.ipv4.tcp_{name}" for name in ("keepalive_time", "fin_timeout", "keepalive_intvl", "keepalive_probes")
}
SYSCTLS_1_32: Final = SYSCTLS_1_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
SYSCTLS_1_37: Final = SYSCTLS_1_32 | {"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"}


class SysctlCheck(Struct, frozen=True):
    """The pod sets only kernel parameters of its own namespaces."""

    allowed: frozenset[str]

    def __call__(self, pod: Pod) -> Failure | None:
        """Check a pod."""
        if "sysctls" not in pod.security:
            return None
        names = enumerate(get_text(as_object(item), "name") for item in as_list(pod.security.get("sysctls")))
        bad = [(index, name) for index, name in names if name not in self.allowed]
        if not bad:
            return None
        detail = ", ".join(name for _, name in bad)
        fields = tuple(pod.at("securityContext", "sysctls", index, "name") for index, _ in bad)
        return Failure("forbidden sysctls", detail, fields)


def check_windows_host_process(pod: Pod) -> Failure | None:
    """No container is a process of a Windows host."""
    of_pod, of_containers = select_securing(pod, "windowsOptions", lambda options: options.get("hostProcess") is True)
    if of_pod is None and not of_containers:
        return None
    who = name_setters(pod=of_pod is not None, containers=[container for container, _ in of_containers])
    return Failure(
        "hostProcess",
        f"{who} must not set securityContext.windowsOptions.hostProcess=true",
        (
            *_place_of_pod(pod, "windowsOptions", "hostProcess", present=of_pod is not None),
            *((*container.place, "securityContext", "windowsOptions", "hostProcess") for container, _ in of_containers),
        ),
    )
