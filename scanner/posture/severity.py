"""The severity of a policy and of its checks, and the texts that describe them to people.

Upstream: the annotations `policies.kyverno.io/severity|title|category|description` of Kyverno's policy library; the severities are
those of policy reports (`wgpolicyk8s.io/v1alpha2`). A description decides nothing: it is read when a report is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal

from scanner.model.json import dig, text_map

if TYPE_CHECKING:
    from scanner.model.policy import Policy, PolicyKey

OWN: Final = "assay.dev/"
"""The prefix of our own annotations, which come before those of Kyverno."""
_PREFIXES: Final = (OWN, "policies.kyverno.io/")
_OWN_ONLY: Final = frozenset({"remediation", "docs"})


class Severity(StrEnum):
    """The severity of a policy or of a check, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """The position, 0 for the worst: the key of a sort."""
        return _RANKS[self]

    @staticmethod
    def of_rank(rank: int) -> Severity:
        """The severity at a position."""
        return _WORST_FIRST[rank]

    def at_least(self, minimum: Severity) -> bool:
        """Return whether the severity is as bad as another, or worse."""
        return self.rank <= minimum.rank


_WORST_FIRST: Final = tuple(Severity)
_RANKS: Final = {severity: place for place, severity in enumerate(Severity)}
DEFAULT_SEVERITY: Final = Severity.MEDIUM
"""The severity of a policy that names none."""


@dataclass(frozen=True, slots=True)
class CheckDescription:
    """What a policy states of one of its checks; None and an empty text where the statement about the policy is also about the check."""

    severity: Severity | None = None
    remediation: str = ""


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a policy. A policy without a title has its name as `title`; the other texts are empty if the policy has none.

    `docs` is an address, or any other text that the author wrote: nothing opens it. `unknown_severity` is the text of an
    annotation that names no severity: such a policy counts as medium. `checks` are the checks that have a description of their own,
    by their expression.
    """

    title: str
    severity: Severity = DEFAULT_SEVERITY
    category: str = ""
    description: str = ""
    remediation: str = ""
    docs: str = ""
    unknown_severity: str = ""
    checks: Mapping[str, CheckDescription] = field(default_factory=dict)

    def severity_of(self, expression: str) -> Severity:
        """The severity of a check: its own, else that of the policy."""
        check = self.checks.get(expression)
        return check.severity if check and check.severity else self.severity

    def remediation_of(self, expression: str) -> str:
        """The remediation of a check: its own, else that of the policy."""
        check = self.checks.get(expression)
        return check.remediation if check and check.remediation else self.remediation

    @property
    def severities(self) -> frozenset[Severity]:
        """The severities of the policy and of its checks."""
        return frozenset((self.severity, *(each.severity for each in self.checks.values() if each.severity)))


@dataclass(frozen=True, slots=True)
class DescriptionOverride:
    """The description that a configuration gives to policies and all their checks. `policy` is a glob of names; None leaves a part as it is.

    An empty `language` stands for every language.
    """

    policy: str
    language: str = ""
    severity: Severity | None = None
    title: str | None = None
    category: str | None = None
    description: str | None = None
    remediation: str | None = None
    docs: str | None = None

    def applies(self, policy: PolicyKey) -> bool:
        """Return whether the override is about a policy."""
        language, name = policy
        return self.language in ("", language) and fnmatchcase(name, self.policy)


def describe(policy: Policy, overrides: Iterable[DescriptionOverride] = ()) -> Description:
    """The description of a policy: the first override that applies, then `assay.dev/*`, then `policies.kyverno.io/*`."""
    return describe_by_annotations(policy.key, text_map(dig(policy.manifest, "metadata", "annotations")), overrides)


def describe_by_annotations(
    policy: PolicyKey, annotations: Mapping[str, str], overrides: Iterable[DescriptionOverride] = ()
) -> Description:
    """The description of a policy, given its annotations."""
    override = next((each for each in overrides if each.applies(policy)), DescriptionOverride(policy[1]))
    written = _annotation(annotations, "severity").lower()
    known = written in _RANKS
    annotated = Severity(written) if known else DEFAULT_SEVERITY
    return Description(
        title=_choose_text(override.title, _annotation(annotations, "title")) or policy[1],
        severity=override.severity or annotated,
        category=_choose_text(override.category, _annotation(annotations, "category")),
        description=_choose_text(override.description, _annotation(annotations, "description")),
        remediation=_choose_text(override.remediation, _annotation(annotations, "remediation")),
        docs=_choose_text(override.docs, _annotation(annotations, "docs")),
        unknown_severity="" if known or override.severity else written,
        checks=dict(_describe_checks(annotations, override)),
    )


def name_annotation(name: Literal["severity", "remediation"], expression: str) -> str:
    """The annotation of a policy that describes one of its checks."""
    return f"{OWN}{name}.{expression}"


def _describe_checks(
    annotations: Mapping[str, str], override: DescriptionOverride
) -> Iterator[tuple[str, CheckDescription]]:
    """The checks with annotations of their own, by expression. An override is about all checks, so it comes before them."""
    severities = _texts_of_checks(annotations, "severity") if override.severity is None else {}
    remediations = _texts_of_checks(annotations, "remediation") if override.remediation is None else {}
    for expression in sorted(severities.keys() | remediations.keys()):
        written = severities.get(expression, "").lower()
        severity = Severity(written) if written in _RANKS else None
        yield expression, CheckDescription(severity, remediations.get(expression, ""))


def _texts_of_checks(annotations: Mapping[str, str], name: Literal["severity", "remediation"]) -> dict[str, str]:
    prefix = name_annotation(name, "")
    return {key.removeprefix(prefix): text.strip() for key, text in annotations.items() if key.startswith(prefix)}


def _choose_text(override: str | None, annotation: str) -> str:
    return annotation if override is None else override


def _annotation(annotations: Mapping[str, str], name: str) -> str:
    return next(_texts(annotations, name), "")


def _texts(annotations: Mapping[str, str], name: str) -> Iterator[str]:
    for prefix in _PREFIXES[:1] if name in _OWN_ONLY else _PREFIXES:
        if text := annotations.get(f"{prefix}{name}", "").strip():
            yield text
