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


@dataclass(frozen=True, slots=True)
class Standard:
    """A check of a level: its id, what it demands, and its forms, the newest last.

    `overrides` is the id of the check of *baseline* that this check of *restricted* replaces.
    """

    id: str
    level: Level
    title: str
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


def _standard(name: str, level: Level, title: str, *variants: tuple[int, PodCheck], overrides: str = "") -> Standard:
    return Standard(name, level, title, tuple(_Variant(*each) for each in variants), overrides)


_B, _R = Level.BASELINE, Level.RESTRICTED
STANDARDS: Final = (
    _standard(
        "appArmorProfile",
        _B,
        "AppArmor profiles are those of the runtime or of the host",
        (0, baseline.check_app_armor),
    ),
    _standard(
        "capabilities_baseline",
        _B,
        "No capabilities are added beyond the default ones",
        (0, baseline.check_capabilities),
    ),
    _standard("hostNamespaces", _B, "Pods share no namespace with the host", (0, baseline.check_host_namespaces)),
    _standard("hostPathVolumes", _B, "No volume is a path of the host", (0, baseline.check_host_path_volumes)),
    _standard("hostPorts", _B, "Containers use no port of the host", (0, baseline.check_host_ports)),
    _standard(
        "hostProbesAndHostLifecycle", _B, "Probes and lifecycle handlers name no host", (34, baseline.check_probe_hosts)
    ),
    _standard("privileged", _B, "Containers are not privileged", (0, baseline.check_privileged)),
    _standard(
        "procMount",
        _B,
        "/proc has its default masks",
        (0, baseline.check_proc_mount),
        (35, unless_user_namespace(baseline.check_proc_mount)),
    ),
    _standard(
        "seLinuxOptions",
        _B,
        "SELinux options name no user, no role and only types of containers",
        (0, baseline.SeLinuxCheck(baseline.SE_LINUX_1_0)),
        (31, baseline.SeLinuxCheck(baseline.SE_LINUX_1_31)),
    ),
    _standard(
        "seccompProfile_baseline",
        _B,
        "Seccomp profiles are those of the runtime or of the host",
        (0, baseline.check_seccomp_annotations),
        (19, baseline.check_seccomp),
    ),
    _standard(
        "sysctls",
        _B,
        "Only safe kernel parameters are set",
        (0, baseline.SysctlCheck(baseline.SYSCTLS_1_0)),
        (27, baseline.SysctlCheck(baseline.SYSCTLS_1_27)),
        (29, baseline.SysctlCheck(baseline.SYSCTLS_1_29)),
        (32, baseline.SysctlCheck(baseline.SYSCTLS_1_32)),
        (37, baseline.SysctlCheck(baseline.SYSCTLS_1_37)),
    ),
    _standard(
        "windowsHostProcess",
        _B,
        "Containers are no processes of a Windows host",
        (0, baseline.check_windows_host_process),
    ),
    _standard(
        "allowPrivilegeEscalation",
        _R,
        "Containers forbid privilege escalation",
        (8, restricted.check_privilege_escalation),
        (25, unless_windows(restricted.check_privilege_escalation)),
    ),
    _standard(
        "capabilities_restricted",
        _R,
        "Containers drop all capabilities, and add NET_BIND_SERVICE at most",
        (22, restricted.check_capabilities),
        (25, unless_windows(restricted.check_capabilities)),
        overrides="capabilities_baseline",
    ),
    _standard(
        "procMount_restricted",
        _R,
        "/proc has its default masks, also in user namespaces",
        (35, baseline.check_proc_mount),
        overrides="procMount",
    ),
    Standard(
        "restrictedVolumes",
        _R,
        "Volumes have only the allowed types",
        (
            _Variant(0, restricted.VolumeCheck(restricted.VOLUMES_1_30)),
            _Variant(0, restricted.VolumeCheck(restricted.VOLUMES_1_33), _IMAGE_VOLUMES),
        ),
        overrides="hostPathVolumes",
    ),
    _standard(
        "runAsNonRoot",
        _R,
        "Containers must run as a user other than root",
        (0, restricted.check_run_as_non_root),
        (35, unless_user_namespace(restricted.check_run_as_non_root)),
    ),
    _standard(
        "runAsUser",
        _R,
        "Neither the pod nor a container runs as the user 0",
        (23, restricted.check_run_as_user),
        (35, unless_user_namespace(restricted.check_run_as_user)),
    ),
    _standard(
        "seccompProfile_restricted",
        _R,
        "Each container has the seccomp profile of the runtime or of the host",
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
