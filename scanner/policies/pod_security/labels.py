"""What the labels of a namespace demand: a level and a policy version for each of the three modes.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38, `api/helpers.go`.

Rules: `docs/semantics/pod-security.md#labels`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct, field

from scanner.cel.values.text import quote
from scanner.policies.pod_security.standards import LATEST, Level, Version

PREFIX: Final = "pod-security.kubernetes.io/"
"""The beginning of the keys of the labels."""
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)", re.ASCII)
_LARGEST: Final = 2**63 - 1
_LEVEL_FAULT: Final = "must be one of privileged, baseline, restricted"
_VERSION_FAULT: Final = 'must be "latest" or "v1.x"'


class Mode(StrEnum):
    """What the server does about a pod that fails, in the order of its own lists."""

    ENFORCE = "enforce"
    AUDIT = "audit"
    WARN = "warn"

    @property
    def level_key(self) -> str:
        """The key of the label with the level."""
        return f"{PREFIX}{self}"

    @property
    def version_key(self) -> str:
        """The key of the label with the policy version."""
        return f"{PREFIX}{self}-version"


KEYS: Final = tuple(key for mode in Mode for key in (mode.level_key, mode.version_key))
"""The keys of the six labels, in the order in which the server names their faults."""


class Demand(NamedTuple):
    """A level at a policy version."""

    level: Level = Level.PRIVILEGED
    version: Version = LATEST

    def __str__(self) -> str:
        """The text in answers of the server: `restricted:latest`."""
        return f"{self.level}:{self.version}"


Demands = Mapping[Mode, Demand]
NO_DEMANDS: Final[Demands] = dict.fromkeys(Mode, Demand())
"""The defaults of a server without a configuration."""


class LabelFault(NamedTuple):
    """A label whose value is invalid."""

    key: str
    value: str
    text: str

    def __str__(self) -> str:
        """The error of the server."""
        return f"metadata.labels[{self.key}]: Invalid value: {quote(self.value)}: {self.text}"


class NamespacePolicy(Struct, frozen=True):
    """What a namespace demands in each mode, and its invalid labels."""

    demands: Demands
    faults: tuple[LabelFault, ...] = field(default=())

    def is_off_in(self, *modes: Mode) -> bool:
        """Return whether some modes allow everything."""
        return all(self.demands[mode].level is Level.PRIVILEGED for mode in modes)


def read_level(text: str) -> Level | None:
    """The level of this name; None for another text."""
    return Level(text) if text in set(Level) else None


def read_version(text: str) -> Version | None:
    """The policy version of a text; None if it is invalid."""
    match = _VERSION.fullmatch(text)
    if match and len(match[1]) <= len(str(_LARGEST)) and int(match[1]) <= _LARGEST:
        return Version(int(match[1]))
    return LATEST if text == "latest" else None


def read_labels(labels: Mapping[str, str], defaults: Demands = NO_DEMANDS) -> NamespacePolicy:
    """What the labels of a namespace demand, where they are silent the defaults of the server.

    An invalid level of `enforce` is *restricted*, of the other modes *privileged*; an invalid version is the latest.
    Without a label `warn`, a stricter valid `enforce` warns, too.
    """
    if labels.keys().isdisjoint(KEYS):
        return NamespacePolicy(defaults)
    demands = {mode: _read_mode(labels, mode, defaults[mode]) for mode in Mode}
    enforced = read_level(labels.get(Mode.ENFORCE.level_key, ""))
    warned = defaults[Mode.WARN]
    if enforced and Mode.WARN.level_key not in labels and is_stricter(enforced, warned.level):
        own = Mode.WARN.version_key in labels
        version = demands[Mode.WARN].version if own else demands[Mode.ENFORCE].version
        demands[Mode.WARN] = Demand(enforced, version)
    return NamespacePolicy(demands, tuple(_find_faults(labels)))


def _read_mode(labels: Mapping[str, str], mode: Mode, default: Demand) -> Demand:
    level, version = default
    if mode.level_key in labels:
        otherwise = Level.RESTRICTED if mode is Mode.ENFORCE else Level.PRIVILEGED
        level = read_level(labels[mode.level_key]) or otherwise
    if mode.version_key in labels:
        version = read_version(labels[mode.version_key]) or LATEST
    return Demand(level, version)


def is_stricter(level: Level, other: Level) -> bool:
    """Return whether a level is stricter than another."""
    order = list(Level)
    return order.index(level) > order.index(other)


def _find_faults(labels: Mapping[str, str]) -> Iterator[LabelFault]:
    for mode in Mode:
        level, version = labels.get(mode.level_key), labels.get(mode.version_key)
        if level is not None and read_level(level) is None:
            yield LabelFault(mode.level_key, level, _LEVEL_FAULT)
        if version is not None and read_version(version) is None:
            yield LabelFault(mode.version_key, version, _VERSION_FAULT)
