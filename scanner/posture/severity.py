"""The severity of a policy, and the texts that describe a policy to people.

Upstream: the annotations `policies.kyverno.io/severity|title|category|description` of Kyverno's policy library; the severities are
those of policy reports (`wgpolicyk8s.io/v1alpha2`). A description decides nothing: it is read when a report is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from scanner.model.json import dig, text_map

if TYPE_CHECKING:
    from scanner.model.policy import Policy, PolicyKey

OWN: Final = "assay.dev/"
"""The prefix of our own annotations, which come before those of Kyverno."""
_PREFIXES: Final = (OWN, "policies.kyverno.io/")
_OWN_ONLY: Final = frozenset({"remediation", "docs"})


class Severity(StrEnum):
    """The severity of a policy, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """The position, 0 for the worst: the key of a sort."""
        return _RANKS[self]

    def at_least(self, minimum: Severity) -> bool:
        """Return whether the severity is as bad as another, or worse."""
        return self.rank <= minimum.rank


_RANKS: Final = {severity: place for place, severity in enumerate(Severity)}
DEFAULT_SEVERITY: Final = Severity.MEDIUM
"""The severity of a policy that names none."""


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a policy. A policy without a title has its name as `title`; the other texts are empty if the policy has none.

    `docs` is an address, or any other text that the author wrote: nothing opens it. `unknown_severity` is the text of an
    annotation that names no severity: such a policy counts as medium.
    """

    title: str
    severity: Severity = DEFAULT_SEVERITY
    category: str = ""
    description: str = ""
    remediation: str = ""
    docs: str = ""
    unknown_severity: str = ""


@dataclass(frozen=True, slots=True)
class DescriptionOverride:
    """The description that a configuration gives to policies. `policy` is a glob of names; None leaves a part as it is.

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
    )


def _choose_text(override: str | None, annotation: str) -> str:
    return annotation if override is None else override


def _annotation(annotations: Mapping[str, str], name: str) -> str:
    return next(_texts(annotations, name), "")


def _texts(annotations: Mapping[str, str], name: str) -> Iterator[str]:
    for prefix in _PREFIXES[:1] if name in _OWN_ONLY else _PREFIXES:
        if text := annotations.get(f"{prefix}{name}", "").strip():
            yield text
