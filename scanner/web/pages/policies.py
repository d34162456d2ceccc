"""The pages of the policies of all clusters."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from scanner.model.json import JsonObject
from scanner.posture.history.scan_diff import RuleDifference, RuleKind
from scanner.report.diff.words import cut_lines, rule_lines
from scanner.report.document.policy_text import yaml_of
from scanner.report.html.templates import served_findings_link
from scanner.report.text.safe_text import cut
from scanner.store import SqlReader
from scanner.web.pages.answers import page_answer
from scanner.web.pages.fleet import FleetPages, rows_key
from scanner.web.pages.shell import fleet_shell, path_of, query_link, render
from scanner.web.requests.parameters import LONGEST, after_key, query_of, root_of, text_of
from scanner.web.requests.refusals import BadRequest, NotThere
from scanner.web.views.fleet_policies import FleetPolicy, policies_of_fleet, policy_of_fleet, policy_sets, sort_key
from scanner.web.views.fleet_rows import FleetRow

ROWS: Final = 100
"""The policies, or the clusters of a policy, of one page."""
SETS: Final = 50
"""The policy sets that the list of policies shows, and the clusters of each."""


@dataclass(frozen=True)
class PolicyPages:
    """Answers requests for policies across clusters."""

    fleet: FleetPages

    def policies(self, request: Request) -> Response:
        """The list, by name."""
        rows = self.fleet.rows()
        key = "policies", tuple(rows_key(rows)), query_of(request), self._today()
        return page_answer(request, self.fleet.rendered.page(key, lambda: self._list(request, rows)))

    def policy(self, request: Request) -> Response:
        """One policy."""
        language, name = request.path_params["language"], request.path_params["name"]
        rows = self.fleet.rows()
        key = "policy", language, name, tuple(rows_key(rows)), query_of(request), self._today()
        return page_answer(request, self.fleet.rendered.page(key, lambda: self._one(request, language, name, rows)))

    def _list(self, request: Request, rows: Sequence[FleetRow]) -> str:
        text, after = text_of(request, "text"), text_of(request, "after", 4 * LONGEST)
        every = policies_of_fleet(rows)
        chosen = [policy for policy in every if text.casefold() in policy.name.casefold()]
        first = bisect_right(chosen, _after(after), key=lambda policy: sort_key(policy.key)) if after else 0
        shown = chosen[first : first + ROWS]
        following = _place(shown[-1]) if first + ROWS < len(chosen) else ""
        path = f"{root_of(request)}/policies"
        return render(
            "web/policies.html",
            "Policies across clusters",
            fleet_shell(self.fleet.library, request, "policies"),
            policies=shown,
            total=len(chosen),
            first=first,
            more=query_link(path, {"text": text, "after": following}) if following else "",
            text=text,
            policy_link=lambda policy: f"{path}{path_of(policy.language, policy.name)}",
            sets=policy_sets(rows),
            sets_shown=SETS,
            **_count_known(rows),
        )

    def _one(self, request: Request, language: str, name: str, rows: Sequence[FleetRow]) -> str:
        policy = policy_of_fleet((language, name), rows)
        known = _count_known(rows)
        if policy is None and not known["unknown"]:
            raise NotThere(f"No newest scan of a cluster has the {language[:80]} {name[:120]!r}.")
        clusters = policy.clusters if policy else ()
        first = after_key(request, [each.row.key for each in clusters])
        shown = clusters[first : first + ROWS]
        more = shown[-1].row.key if first + ROWS < len(clusters) else ""
        path = f"{root_of(request)}/policies{path_of(language, name)}"
        with self.fleet.library.use_reader() as reader:
            versions = versions_of(reader, policy) if policy else None
            bindings = list_binding_versions(reader, policy) if policy else []
        return render(
            "web/policy.html",
            name,
            fleet_shell(self.fleet.library, request, "policies"),
            name=name,
            language=language,
            policy=policy,
            shown=shown,
            first=first,
            more=query_link(path, {"after": more}) if more else "",
            numbers={digest: number for number, (digest, _) in enumerate(policy.versions if policy else (), start=1)},
            versions=versions,
            binding_versions=bindings,
            findings_of=served_findings_link,
            **known,
        )

    def _today(self) -> str:
        return f"{self.fleet.library.clock():%Y-%m-%d}"


def _count_known(rows: Sequence[FleetRow]) -> dict[str, object]:
    """The clusters without numbers, which a page must name: nothing is known about their policies."""
    return {"counted": sum(row.counts is not None for row in rows), "unknown": [row for row in rows if not row.counts]}


def _place(policy: FleetPolicy) -> str:
    return f"{policy.language}/{policy.name}"


def _after(after: str) -> tuple[str, str]:
    language, slash, name = after.partition("/")
    if not slash:
        raise BadRequest("after: write the language and the name of a policy with a slash between them.")
    return name, language


# The texts of a policy and of its bindings in several clusters, and the differences between them.

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
class TextVersions:
    """The versions of a policy's or a binding's spec, the most frequent first. `text` is the first one as YAML; `others` have differences.

    `unshown` is the number of versions that are not among them.
    """

    what: str
    name: str
    first: TextVersion
    text: str
    others: tuple[TextVersion, ...]
    unshown: int


def versions_of(reader: SqlReader, policy: FleetPolicy) -> TextVersions | None:
    """The versions of the policy's spec; None if no cluster recorded it."""
    if not policy.versions:
        return None
    digests = policy.versions[: VERSIONS + 1]
    specs = reader.policy_specs(policy.key, [digest for digest, _ in digests])
    of_digest = {digest: specs.get(digest) for digest, _ in digests}
    return _versions(RuleKind.POLICY, policy.language, policy.name, policy.versions, of_digest)


def list_binding_versions(reader: SqlReader, policy: FleetPolicy) -> list[TextVersions]:
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
) -> TextVersions:
    (digest, clusters), *others = digests
    first = specs.get(digest)
    return TextVersions(
        kind.value,
        name,
        TextVersion(1, digest, clusters, (), 0),
        cut(yaml_of(first), 40_000) if first else "",
        tuple(_list_others(kind, language, name, first, others[:VERSIONS], specs)),
        max(0, len(others) - VERSIONS),
    )


def _list_others(
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
