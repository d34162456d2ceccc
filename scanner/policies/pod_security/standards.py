"""Which checks a level demands at a policy version, on a server of a release.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38, `policy/registry.go` and `policy/checks.go`.

Rules: `docs/semantics/pod-security.md#levels-and-versions`, `docs/semantics/pod-security.md#versions-of-the-module`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from scanner.model.release import Minor
from scanner.policies.pod_security import baseline, restricted
from scanner.policies.pod_security.baseline import Failure
from scanner.policies.pod_security.pods import Pod
from scanner.policies.pod_security.restricted import PodCheck, unless_user_namespace, unless_windows


class Level(StrEnum):
    """A level, from the one that allows everything to the strictest."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


class Version(NamedTuple):
    """A policy version: the number after `v1.`, or None for `latest`."""

    minor: int | None

    def __str__(self) -> str:
        """The text in answers of the server."""
        return "latest" if self.minor is None else f"v1.{self.minor}"


LATEST: Final = Version(None)

_NEWEST: Final[Mapping[int, int]] = {30: 29, 31: 31, 32: 32, 33: 32, 34: 34, 35: 35, 36: 35, 37: 37}
"""The newest policy version at which a check of a release changed."""
_OWN_GATE_ENDS: Final = 35
"""The first release, and policy version, that relaxes checks for user namespaces without a feature gate."""
_IMAGE_VOLUMES: Final = 33
"""The first release that allows images as volumes, at every policy version."""
_PROC_MOUNT_GATED: Final = 31
"""The first release whose feature gate relaxes `procMount`, too."""


@dataclass(frozen=True, slots=True)
class Server:
    """The API server that judges: its minor release, that which it emulates, and the gate of releases 1.30 to 1.34.

    With `relaxes_user_namespaces` the feature gate `UserNamespacesPodSecurityStandards` is on.
    """

    release: Minor
    emulated: Minor | None = None
    relaxes_user_namespaces: bool = False

    @property
    def newest(self) -> int:
        """The policy version that stands for `latest`, and for versions that the server does not know."""
        newest = _NEWEST[min(max(self.release[1], min(_NEWEST)), max(_NEWEST))]
        return newest if self.emulated is None else min(newest, self.emulated[1])

    def resolve(self, version: Version) -> int:
        """The policy version by which the server judges."""
        return self.newest if version.minor is None else min(version.minor, self.newest)

    def is_relaxed(self, check: str) -> bool:
        """Return whether the feature gate relaxes a check at every policy version."""
        minor = self.release[1]
        if not self.relaxes_user_namespaces or minor >= _OWN_GATE_ENDS:
            return False
        return check in ("runAsNonRoot", "runAsUser") or (check == "procMount" and minor >= _PROC_MOUNT_GATED)


class _Variant(NamedTuple):
    """A form of a check from a policy version on, on servers of a release and later ones."""

    since: int
    judge: PodCheck
    release: int = 0


class Standard(Struct, frozen=True):
    """A check of a level: its id, what it demands, and its forms, the newest last.

    `severity` is one of `posture.severity`: how bad it is if a pod that fails the check runs. `remediation` names the fields to change.
    `overrides` is the id of the check of *baseline* that this check of *restricted* replaces.
    """

    id: str
    level: Level
    title: str
    severity: str
    remediation: str
    variants: tuple[_Variant, ...]
    overrides: str = ""

    def judge_at(self, version: int, server: Server) -> PodCheck | None:
        """The form of a policy version on a server; None if the version does not have this check."""
        forms = (
            each.judge
            for each in reversed(self.variants)
            if each.since <= version and each.release <= server.release[1]
        )
        judge = next(forms, None)
        return (
            unless_user_namespace(judge) if judge and server.is_relaxed(self.id.removesuffix("_restricted")) else judge
        )


def _standard(
    name: str,
    level: Level,
    severity: str,
    title: str,
    remediation: str,
    *variants: tuple[int, PodCheck] | tuple[int, PodCheck, int],
    overrides: str = "",
) -> Standard:
    return Standard(name, level, title, severity, remediation, tuple(_Variant(*each) for each in variants), overrides)


_B, _R = Level.BASELINE, Level.RESTRICTED
_CRITICAL, _HIGH, _MEDIUM = "critical", "high", "medium"
# Critical: the container controls the host. High: it reaches the host, or has what an attack on the host needs. Medium: a protection is
# missing. A check that overrides another also finds what the other finds, so it is as severe.
STANDARDS: Final = (
    _standard(
        "appArmorProfile",
        _B,
        _MEDIUM,
        "AppArmor profiles are those of the runtime or of the host",
        "Remove the AppArmor profile that the message names, or set appArmorProfile.type to RuntimeDefault or Localhost.",
        (0, baseline.check_app_armor),
    ),
    _standard(
        "capabilities_baseline",
        _B,
        _HIGH,
        "No capabilities are added beyond the default ones",
        "Remove the capabilities that the message names from capabilities.add in the securityContext of the container.",
        (0, baseline.check_capabilities),
    ),
    _standard(
        "hostNamespaces",
        _B,
        _HIGH,
        "Pods share no namespace with the host",
        "Remove hostNetwork, hostPID and hostIPC from the spec of the pod, or set them to false.",
        (0, baseline.check_host_namespaces),
    ),
    _standard(
        "hostPathVolumes",
        _B,
        _HIGH,
        "No volume is a path of the host",
        "Replace the hostPath volumes, for example by emptyDir, configMap or persistentVolumeClaim volumes.",
        (0, baseline.check_host_path_volumes),
    ),
    _standard(
        "hostPorts",
        _B,
        _MEDIUM,
        "Containers use no port of the host",
        "Remove hostPort from the ports of the container, and publish the port by a Service. "
        "With hostNetwork, every port of a container is a port of the host.",
        (0, baseline.check_host_ports),
    ),
    _standard(
        "hostProbesAndHostLifecycle",
        _B,
        _MEDIUM,
        "Probes and lifecycle handlers name no host",
        "Remove host from the probes and lifecycle handlers of the container: the kubelet then connects to the pod itself.",
        (34, baseline.check_probe_hosts),
    ),
    _standard(
        "privileged",
        _B,
        _CRITICAL,
        "Containers are not privileged",
        "Remove privileged from the securityContext of the container, or set it to false. "
        "Add only the capabilities that the program needs.",
        (0, baseline.check_privileged),
    ),
    _standard(
        "procMount",
        _B,
        _HIGH,
        "/proc has its default masks",
        "Remove procMount from the securityContext of the container, or set it to Default.",
        (0, baseline.check_proc_mount),
        (35, unless_user_namespace(baseline.check_proc_mount)),
    ),
    _standard(
        "seLinuxOptions",
        _B,
        _MEDIUM,
        "SELinux options name no user, no role and only types of containers",
        "Remove user and role from seLinuxOptions, and remove type or set it to a type for containers, such as container_t.",
        (0, baseline.SeLinuxCheck(baseline.SE_LINUX_1_0)),
        (31, baseline.SeLinuxCheck(baseline.SE_LINUX_1_31)),
    ),
    _standard(
        "seccompProfile_baseline",
        _B,
        _MEDIUM,
        "Seccomp profiles are those of the runtime or of the host",
        "Set seccompProfile.type to RuntimeDefault or Localhost, or remove the profile that the message names.",
        (0, baseline.check_seccomp_annotations),
        (19, baseline.check_seccomp),
    ),
    _standard(
        "sysctls",
        _B,
        _MEDIUM,
        "Only safe kernel parameters are set",
        "Remove the sysctls that the message names from the securityContext of the pod.",
        (0, baseline.SysctlCheck(baseline.SYSCTLS_1_0)),
        (27, baseline.SysctlCheck(baseline.SYSCTLS_1_27)),
        (29, baseline.SysctlCheck(baseline.SYSCTLS_1_29)),
        (32, baseline.SysctlCheck(baseline.SYSCTLS_1_32)),
        (37, baseline.SysctlCheck(baseline.SYSCTLS_1_37)),
    ),
    _standard(
        "windowsHostProcess",
        _B,
        _CRITICAL,
        "Containers are no processes of a Windows host",
        "Remove hostProcess from the windowsOptions of the pod and of its containers, or set it to false.",
        (0, baseline.check_windows_host_process),
    ),
    _standard(
        "allowPrivilegeEscalation",
        _R,
        _MEDIUM,
        "Containers forbid privilege escalation",
        "Set allowPrivilegeEscalation to false in the securityContext of every container.",
        (8, restricted.check_privilege_escalation),
        (25, unless_windows(restricted.check_privilege_escalation)),
    ),
    _standard(
        "capabilities_restricted",
        _R,
        _HIGH,
        "Containers drop all capabilities, and add NET_BIND_SERVICE at most",
        'Set capabilities.drop to ["ALL"] in the securityContext of every container, and add no capability but NET_BIND_SERVICE.',
        (22, restricted.check_capabilities),
        (25, unless_windows(restricted.check_capabilities)),
        overrides="capabilities_baseline",
    ),
    _standard(
        "procMount_restricted",
        _R,
        _HIGH,
        "/proc has its default masks, also in user namespaces",
        "Remove procMount from the securityContext of the container, or set it to Default.",
        (35, baseline.check_proc_mount),
        overrides="procMount",
    ),
    _standard(
        "restrictedVolumes",
        _R,
        _HIGH,
        "Volumes have only the allowed types",
        "Replace the volumes that the message names by configMap, csi, downwardAPI, emptyDir, ephemeral, persistentVolumeClaim, "
        "projected or secret volumes.",
        (0, restricted.VolumeCheck(restricted.VOLUMES_1_30)),
        (0, restricted.VolumeCheck(restricted.VOLUMES_1_33), _IMAGE_VOLUMES),
        overrides="hostPathVolumes",
    ),
    _standard(
        "runAsNonRoot",
        _R,
        _MEDIUM,
        "Containers must run as a user other than root",
        "Set runAsNonRoot to true in the securityContext of the pod or of every container. "
        "The image must then name a user other than root, or runAsUser must.",
        (0, restricted.check_run_as_non_root),
        (35, unless_user_namespace(restricted.check_run_as_non_root)),
    ),
    _standard(
        "runAsUser",
        _R,
        _MEDIUM,
        "Neither the pod nor a container runs as the user 0",
        "Set runAsUser to the number of a user other than 0, or remove it and let the image name the user.",
        (23, restricted.check_run_as_user),
        (35, unless_user_namespace(restricted.check_run_as_user)),
    ),
    _standard(
        "seccompProfile_restricted",
        _R,
        _MEDIUM,
        "Each container has the seccomp profile of the runtime or of the host",
        "Set seccompProfile.type to RuntimeDefault or Localhost in the securityContext of the pod or of every container.",
        (19, restricted.check_seccomp_is_set),
        (25, unless_windows(restricted.check_seccomp_is_set)),
        overrides="seccompProfile_baseline",
    ),
)
"""Every check in the order of the server: those of *baseline* by their ids in bytes, then those of *restricted*."""


@lru_cache(maxsize=256)
def list_judges(level: Level, version: Version, server: Server) -> Mapping[str, PodCheck]:
    """The checks that a level demands at a policy version, by their ids, in the order of the server."""
    return dict(_list_judges(level, server.resolve(version), server))


def _list_judges(level: Level, version: int, server: Server) -> Iterator[tuple[str, PodCheck]]:
    if level is Level.PRIVILEGED:
        return
    present = [(each, judge) for each in STANDARDS if (judge := each.judge_at(version, server))]
    overridden = {each.overrides for each, _ in present} if level is Level.RESTRICTED else ()
    for each, judge in present:
        if each.level is Level.BASELINE or level is Level.RESTRICTED:
            yield from () if each.id in overridden else ((each.id, judge),)


def apply_checks(checks: Mapping[str, PodCheck], pod: Pod) -> dict[str, Failure]:
    """The failures of a pod by the ids of some checks, in their order."""
    return {name: failure for name, check in checks.items() if (failure := check(pod)) is not None}
