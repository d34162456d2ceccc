"""Rules about values that exclude or need each other, for values of all sources, and the table of these rules for flags.

A value never conflicts with one of a higher source: the lower value is left out, as if its key or variable were absent. Values of
one source that conflict are an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from scanner.errors import UsageError


class ValueSource(IntEnum):
    """The sources of a value; a higher one comes first."""

    DEFAULT = 0
    FILE = 1
    ENVIRONMENT = 2
    FLAG = 3


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """A value that a source gives, with its name in messages: `-n`, `ASSAY_CONTEXT`, `context in assay.yaml, line 3, column 10`.

    A value that `is_default`, such as `ASSAY_QUIET=false`, excludes and needs nothing, but stands before those of lower sources.
    """

    value: object
    source: ValueSource
    name: str
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class Excludes:
    """A flag that cannot be combined with the others; `why` is the reason in the message."""

    flag: str
    others: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Requires:
    """A flag that another flag must accompany, with one of its `values` if there are any.

    A flag that `belongs` to the other is about its value, so it does not stay when a higher source gives another value.
    """

    flag: str
    needed: str
    why: str = ""
    values: tuple[str, ...] = ()
    belongs: bool = False


Rule: TypeAlias = Excludes | Requires


def find_left_out(given: Mapping[str, SourcedValue], rules: Iterable[Rule]) -> frozenset[str]:
    """The flags whose values a higher source excludes. Raises UsageError for values of one source that conflict.

    `given` has the values other than defaults, by flag.
    """
    rules = tuple(rules)
    removed: dict[str, ValueSource] = {}
    for rule in rules:
        if isinstance(rule, Excludes):
            _exclude(rule, given, removed)
    for rule in rules:
        if isinstance(rule, Requires):
            _need(rule, given, removed)
    return frozenset(removed)


def _exclude(rule: Excludes, given: Mapping[str, SourcedValue], removed: dict[str, ValueSource]) -> None:
    """Note which of the values is removed, and by which source."""
    value = _find_effective(rule.flag, given, removed)
    others = {flag: other for flag in rule.others if (other := _find_effective(flag, given, removed))}
    if value is None or not others:
        return
    highest = max(other.source for other in others.values())
    if highest > value.source:
        removed[rule.flag] = highest
        return
    if equal := [other.name for other in others.values() if other.source == value.source]:
        raise UsageError(f"{value.name} cannot be combined with {', '.join(equal)}: {rule.why}")
    removed.update(dict.fromkeys(others, value.source))


def _need(rule: Requires, given: Mapping[str, SourcedValue], removed: dict[str, ValueSource]) -> None:
    own_value = _find_effective(rule.flag, given, removed)
    if own_value is None:
        return
    needed = _find_effective(rule.needed, given, removed)
    if needed is not None and _satisfies(needed.value, rule.values):
        if rule.belongs and needed.source > own_value.source:
            removed[rule.flag] = needed.source
        return
    by = removed.get(rule.needed, given[rule.needed].source if rule.needed in given else ValueSource.DEFAULT)
    if by > own_value.source:
        removed[rule.flag] = by
        return
    value = f" {' or '.join(rule.values)}" if rule.values else ""
    raise UsageError(f"{own_value.name} needs {rule.needed}{value}{f': {rule.why}' if rule.why else ''}")


def _find_effective(
    flag: str, given: Mapping[str, SourcedValue], removed: Mapping[str, ValueSource]
) -> SourcedValue | None:
    value = given.get(flag)
    return None if value is None or value.is_default or flag in removed else value


def _satisfies(value: object, wanted: tuple[str, ...]) -> bool:
    if not wanted:
        return True
    return any(
        each in wanted for each in (value if isinstance(value, Iterable) and not isinstance(value, str) else [value])
    )


# Flags that exclude or need each other, in every command that has both. Arguments have the names in the help: RUN,
# SCAN.

FLAG_RULES: Final[tuple[Rule, ...]] = (
    Excludes(
        "--from",
        ("--kubeconfig", "--context", "--as", "--as-group"),
        "--from scans files instead of a cluster",
    ),
    Excludes(
        "--fleet",
        ("--from", "--kubeconfig", "--context", "--cluster-name", "--restored-cluster"),
        "the file names the clusters",
    ),
    Excludes("--index", ("--parallel",), "--index scans one cluster, --parallel all of them"),
    Excludes("--all-namespaces", ("--namespace",), "leave one of them out"),
    Excludes("--kyverno-compat", ("--kyverno-resource-filters",), "only Kyverno's webhook applies resource filters"),
    Excludes("--no-pod-security", ("--pod-security-config",), "leave one of them out"),
    Excludes("--waivers", ("--waivers-namespace",), "leave one of them out"),
    Excludes("--at", ("SCAN", "--scan"), "leave one of them out"),
    Excludes(
        "RUN",
        ("--expect", "--time-zone", "--tolerance", "--since", "--cluster-name", "--limit"),
        "a number names one run",
    ),
    Requires("--index", "--fleet", belongs=True),
    Requires("--parallel", "--fleet", belongs=True),
    Requires("--kubernetes-version", "--from", "a live cluster reports its own version"),
    Requires("--namespace-label", "--from", "a live cluster has the labels of its namespaces"),
    Requires("--no-cluster-policies", "--policies", "without policy files there is no policy to evaluate"),
    Requires("--allow-network-to", "--allow-network"),
    Requires("--as-group", "--as", belongs=True),
    *(Requires(flag, "--as-user", belongs=True) for flag in ("--as-user-group", "--as-user-uid", "--as-user-extra")),
    Requires("--push-metrics-token-file", "--push-metrics"),
    Requires("--second-opinion-sample", "--second-opinion"),
    Requires("--time-zone", "--expect", "without a schedule no run is expected", belongs=True),
    Requires("--tolerance", "--expect", "without a schedule no run is expected"),
    *(
        Requires(flag, "--oidc-issuer", belongs=True)
        for flag in (
            "--oidc-client-id",
            "--oidc-client-secret-file",
            "--oidc-group",
            "--oidc-groups-claim",
            "--oidc-scope",
        )
    ),
    *(
        Requires(flag, "--assertion-header", belongs=True)
        for flag in ("--assertion-issuer", "--assertion-audience", "--assertion-keys")
    ),
    Requires("--tls-key", "--tls-cert", belongs=True),
)
