"""The texts of a policy and of its bindings in several clusters, and the differences between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from scanner.model.json import JsonObject
from scanner.posture.scan_diff import RuleDifference, RuleKind
from scanner.report.diff.words import cut_lines, rule_lines
from scanner.report.document.policy_text import yaml_of
from scanner.report.text.safe_text import cut
from scanner.store import SqlReader
from scanner.web.fleet_policies import FleetPolicy

VERSIONS: Final = 10
"""The versions of a text whose differences a page shows."""
LINES: Final = 400
_BINDINGS: Final = 20


@dataclass(frozen=True, slots=True)
class TextVersion:
    """A version of a text: `clusters` have it. `lines` are its differences from the first version, and `more` is the number not shown."""

    number: int
    digest: str
    clusters: int
    lines: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of a policy's or a binding's spec, the most frequent first. `text` is the first one as YAML; `others` have differences.

    `unshown` is the number of versions that are not among them.
    """

    what: str
    name: str
    first: TextVersion
    text: str
    others: tuple[TextVersion, ...]
    unshown: int


def versions_of(reader: SqlReader, policy: FleetPolicy) -> Versions | None:
    """The versions of the policy's spec; None if no cluster recorded it."""
    if not policy.versions:
        return None
    digests = policy.versions[: VERSIONS + 1]
    specs = reader.policy_specs(policy.key, [digest for digest, _ in digests])
    of_digest = {digest: specs.get(digest) for digest, _ in digests}
    return _versions(RuleKind.POLICY, policy.language, policy.name, policy.versions, of_digest)


def binding_versions(reader: SqlReader, policy: FleetPolicy) -> list[Versions]:
    """The versions of those bindings that differ between clusters, by name, at most `_BINDINGS`."""
    numbers: dict[str, Counter[str]] = {}
    for each in policy.clusters:
        for binding in each.bindings:
            if binding.digest and not binding.note:
                numbers.setdefault(binding.name, Counter())[binding.digest] += 1
    differing = [(name, count) for name, count in sorted(numbers.items()) if len(count) > 1][:_BINDINGS]
    specs = reader.binding_specs(policy.key, sorted({digest for _, count in differing for digest in count}))
    return [
        _versions(
            RuleKind.BINDING,
            policy.language,
            name,
            tuple(sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))),
            {digest: specs.get((name, digest)) for digest in count},
        )
        for name, count in differing
    ]


def _versions(
    kind: RuleKind,
    language: str,
    name: str,
    digests: tuple[tuple[str, int], ...],
    specs: dict[str, JsonObject | None],
) -> Versions:
    (digest, clusters), *others = digests
    first = specs.get(digest)
    return Versions(
        kind.value,
        name,
        TextVersion(1, digest, clusters, (), 0),
        cut(yaml_of(first), 40_000) if first else "",
        tuple(_others(kind, language, name, first, others[:VERSIONS], specs)),
        max(0, len(others) - VERSIONS),
    )


def _others(
    kind: RuleKind,
    language: str,
    name: str,
    first: JsonObject | None,
    others: list[tuple[str, int]],
    specs: dict[str, JsonObject | None],
) -> Iterator[TextVersion]:
    for number, (digest, clusters) in enumerate(others, start=2):
        difference = RuleDifference(kind, language, name, first, specs.get(digest))
        lines, more = cut_lines(rule_lines(difference), LINES)
        yield TextVersion(number, digest, clusters, tuple(lines), more)
