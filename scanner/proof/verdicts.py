"""The verdicts about an item: one for each check that matched its object, as a scan recorded them and as a replay makes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from scanner.audit import object_sets, population
from scanner.errors import ListFailed
from scanner.model.json import Json, as_text, dig
from scanner.model.outcome import Check, CheckKind, Errored, Finding, Gap, GapKind, Violated, WouldChange
from scanner.model.policy import PolicyKey, policy_label
from scanner.model.population import MatchedCheck
from scanner.model.resource import Kind
from scanner.model.scans.scan import PageResult
from scanner.model.texts import clean
from scanner.scan.prepare import PreparedScan

_OBJECT = "object"
_WITHHOLDS = "the snapshot withholds"
"""The words by which gaps of a replay tell that the redaction is their cause."""


class ObjectName(NamedTuple):
    """The name of an examined object, by the version in which it was listed. `uid` may be empty for an object from a file."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class CheckName(NamedTuple):
    """A check of an invocation: `kind`, `number` (from 0) and `expression` are those of the check."""

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    kind: str
    number: int
    expression: str

    @property
    def policy_key(self) -> PolicyKey:
        """Language and name of the policy."""
        return self.language, self.policy

    def __str__(self) -> str:
        """The check in words."""
        param = "/".join(filter(None, (self.param_namespace, self.param_name)))
        with_param = f" with param {param}" if param else ""
        return f"{self.policy} {self.kind} {self.number} of binding {self.binding}{with_param}"


class Verdict(NamedTuple):
    """The outcome of a check: its name, and what decides that two outcomes are equal.

    `outcome` is passed, violated, errored, wouldChange or skipped; `detail` is the message, or the reason of a skipped check.
    `denies` tells that admission would deny the object; `excepted_by` names what exempts it.
    """

    check: CheckName
    outcome: str
    detail: str = ""
    denies: bool = False
    excepted_by: str = ""

    def to_json(self) -> dict[str, Json]:
        """The verdict as a JSON object."""
        return {
            **self.check._asdict(),
            "outcome": self.outcome,
            "detail": self.detail,
            "denies": self.denies,
            "excepted_by": self.excepted_by,
        }

    def __str__(self) -> str:
        """The outcome in words."""
        parts = (
            self.outcome,
            self.detail.splitlines()[0] if self.detail else "",
            self.excepted_by and f"excepted by {self.excepted_by}",
        )
        return ", ".join(filter(None, parts))


def read_verdict(value: Json) -> Verdict:
    """The verdict that `to_json` wrote. Raises ValueError for another document."""
    number = dig(value, "number")
    if not isinstance(number, int) or as_text(dig(value, "kind")) not in {*CheckKind}:
        raise ValueError("a verdict names no check")

    def text(field: str) -> str:
        return as_text(dig(value, field))

    param = text("param_namespace"), text("param_name")
    check = CheckName(
        text("language"), text("policy"), text("binding"), *param, text("kind"), number, text("expression")
    )
    return Verdict(check, text("outcome"), text("detail"), dig(value, "denies") is True, text("excepted_by"))


def list_verdicts(checks: Iterable[MatchedCheck], findings: Iterable[Finding]) -> tuple[Verdict, ...]:
    """The verdicts about one object: those of its findings, and of the other checks that matched it, passed or skipped."""
    failed = [_verdict_of(finding) for finding in findings]
    with_finding = {verdict.check for verdict in failed}
    others = (
        Verdict(name, "skipped" if check.reason else "passed", check.reason)
        for check in checks
        if (name := _name_check(*check[:5], check.check)) not in with_finding
    )
    return tuple(sorted((*failed, *others)))


def _verdict_of(finding: Finding) -> Verdict:
    names = finding.language, finding.policy, finding.binding, finding.param_namespace, finding.param_name
    outcome = finding.outcome
    word = {Violated: "violated", Errored: "errored", WouldChange: "wouldChange"}[type(outcome)]
    return Verdict(
        _name_check(*names, finding.check), word, clean(outcome.message), finding.denies, clean(finding.excepted_by)
    )


def _name_check(language: str, policy: str, binding: str, namespace: str, name: str, check: Check) -> CheckName:
    param = clean(namespace), clean(name)
    names = clean(language), clean(policy), clean(binding)
    return CheckName(*names, *param, check.kind.value, check.index, clean(check.expression))


# A replay of some objects.


class EvaluatedItem(NamedTuple):
    """An object of a replay: its verdicts, its findings with their evidence, and the gaps that name it."""

    name: ObjectName
    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]


class Replay(NamedTuple):
    """The objects that a replay evaluated, its gaps, and the paths of objects that the expressions of each policy read."""

    items: dict[ObjectName, EvaluatedItem]
    gaps: tuple[Gap, ...]
    reads: dict[PolicyKey, frozenset[tuple[str, ...]]]

    def is_hidden(self, check: CheckName) -> bool:
        """Return whether the redaction prevents that a policy, or its match, is evaluated."""
        label = policy_label(check.policy_key)
        return any(
            _WITHHOLDS in gap.why and (label == gap.where or f"policy {check.policy}:" in gap.why) for gap in self.gaps
        ) or any(
            _WITHHOLDS in gap.why and gap.where.endswith(f" {name}")
            for gap in self.gaps
            for name in (check.policy, check.binding)
        )


def evaluate_objects(prepared: PreparedScan, wanted: Collection[ObjectName]) -> Replay:
    """Evaluate the wanted objects of a prepared scan, in this process. Only the kinds of these objects are listed."""
    items: dict[ObjectName, EvaluatedItem] = {}
    gaps = list(prepared.gaps)
    names, kinds = frozenset(wanted), {name[:2] for name in wanted}
    for plan in prepared.plans:
        if (plan.kind.api_version, plan.kind.kind) not in kinds:
            continue
        for pages in prepared.listing.list_pages(plan.kind):
            try:
                for page in pages:
                    result = prepared.evaluation.page_evaluator.evaluate(page, plan)
                    gaps += result.gaps
                    items.update((item.name, item) for item in _read_result(result, plan.kind) if item.name in names)
            except ListFailed as error:
                gaps.append(Gap(GapKind.LIST, f"{plan.kind.api_version}/{plan.kind.kind}", error.why))
    return Replay(items, tuple(dict.fromkeys(gaps)), dict(_find_reads(prepared)))


def _find_reads(prepared: PreparedScan) -> Iterator[tuple[PolicyKey, frozenset[tuple[str, ...]]]]:
    for bound in prepared.evaluation.bound:
        paths = (path for _, expression in bound.compiled.expressions() for path in expression.paths)
        yield bound.policy.key, frozenset(path[1:] for path in paths if path[:1] == (_OBJECT,) and len(path) > 1)


def _read_result(result: PageResult, kind: Kind) -> Iterator[EvaluatedItem]:
    """The objects of a page with their verdicts."""
    sets = object_sets.unpack(result.sets).sets.items()
    for place, member in enumerate(population.unpack(kind, result.examined)):
        bit = 1 << place
        checks = (
            MatchedCheck(*key.invocation, check, reason)
            for key, bits in sets
            if bits & bit
            for check, reason in key.checks
        )
        findings = tuple(finding for finding, of in zip(result.findings, result.places, strict=True) if of == place)
        name = ObjectName(kind.api_version, kind.kind, *map(clean, (member.namespace, member.name, member.uid)))
        yield EvaluatedItem(name, list_verdicts(checks, findings), findings)
