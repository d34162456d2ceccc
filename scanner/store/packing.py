"""One page of a running scan as one value: staging a page is one row, however much was found on it.

Within the page every check, verdict and kind is written once, as it will be in the tables. Texts are made fit for any
database on the way in: NUL and lone surrogates, which PostgreSQL refuses, become U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

import orjson

from scanner.model.outcome import Errored, Finding, Gap, GapKind, Violated, WouldChange
from scanner.model.policy import BindingKey
from scanner.model.scan import PageResult, TallyKey
from scanner.store.drift import drift_text
from scanner.store.evidence import evidence_text

_UNFIT = re.compile("[\x00\ud800-\udfff]")

Key: TypeAlias = tuple[str | int | bool, ...]


Sighting: TypeAlias = tuple[str, int, int, int, str, str, str, str, int]
"""Fingerprint, check, verdict, kind, namespace, name, uid, resource version, evidence; numbers are places in the page's lists."""

Tallied: TypeAlias = tuple[int, int, str, str, int, bool]
"""Check, kind, namespace, outcome, count, requester; the first two are places in the page's lists."""


@dataclass(frozen=True, slots=True)
class StagedPage:
    """A page as it was staged. Keys are the columns of the tables `checks`, `verdicts`, `kinds` and `evidence`, in order."""

    checks: tuple[Key, ...]
    verdicts: tuple[Key, ...]
    kinds: tuple[Key, ...]
    evidence: tuple[Key, ...]
    sightings: Sequence[Sighting]
    tallies: Iterable[Tallied]
    matched: dict[BindingKey, int]
    gaps: tuple[Gap, ...]


class _Places:
    """Gives each distinct key its place in a list."""

    def __init__(self) -> None:
        self.keys: dict[tuple[str | int, ...], int] = {}

    def __call__(self, *key: str | int) -> int:
        return self.keys.setdefault(key, len(self.keys))


def clean(text: str) -> str:
    """The text without what a database refuses."""
    return text if text.isascii() and "\0" not in text else _UNFIT.sub("\ufffd", text)


def pack(result: PageResult) -> bytes:
    """The bytes that stage a page."""
    checks, verdicts, kinds, evidence = _Places(), _Places(), _Places(), _Places()
    evidence("")
    findings = [_sighting(item, checks, verdicts, kinds, evidence) for item in result.findings]
    tallies = _tallies(result.tallies, checks, kinds)
    matched = [(*key, count) for key, count in result.matched.items()]
    gaps = [(gap.kind, gap.where, gap.why) for gap in result.gaps]
    places = (checks, verdicts, kinds, evidence)
    return _dumped([*(list(each.keys) for each in places), findings, tallies, matched, gaps])


def unpack(data: bytes) -> StagedPage:
    """The page that `pack` staged."""
    checks, verdicts, kinds, evidence, findings, tallies, matched, gaps = orjson.loads(data)
    return StagedPage(
        checks=_keys(checks),
        verdicts=_keys(verdicts),
        kinds=_keys(kinds),
        evidence=_keys(evidence),
        sightings=findings,
        tallies=_tallied(*tallies),
        matched={(language, policy, binding): count for language, policy, binding, count in matched},
        gaps=tuple(Gap(GapKind(kind), where, why) for kind, where, why in gaps),
    )


def _keys(rows: Iterable[Iterable[str | int]]) -> tuple[Key, ...]:
    return tuple(tuple(row) for row in rows)


def _check(checks: _Places, what: Finding | TallyKey) -> int:
    check = what.check
    invocation = what.policy, what.binding, what.param_namespace, what.param_name
    return checks(*invocation, check.kind, check.index, check.expression, what.language)


def _sighting(
    finding: Finding, checks: _Places, verdicts: _Places, kinds: _Places, evidence: _Places
) -> tuple[str | int, ...]:
    return (
        finding.fingerprint,
        _check(checks, finding),
        verdicts(*_outcome(finding.outcome), *_circumstances(finding)),
        kinds(finding.api_version, finding.kind),
        finding.namespace,
        finding.name,
        finding.uid,
        finding.resource_version,
        evidence(_evidence(finding)) if finding.evidence else 0,
    )


def _evidence(finding: Finding) -> str:
    """Its text is made fit here: nested in another text, what is not fit would no longer be seen."""
    reasons = finding.evidence.reasons
    fit = tuple(
        replace(it, expression=clean(it.expression), value=clean(it.value), path=clean(it.path)) for it in reasons
    )
    return evidence_text(replace(finding.evidence, reasons=fit))


def _circumstances(finding: Finding) -> tuple[str, str, bool, str]:
    return finding.operation, ",".join(finding.actions), finding.denies, finding.excepted_by


def _tallies(tallies: Mapping[TallyKey, int], checks: _Places, kinds: _Places) -> list[object]:
    """Tallies column by column, because they are many: numbers read several times faster than rows."""
    namespaces, outcomes = _Places(), _Places()
    places = (
        [_check(checks, key) for key in tallies],
        [kinds(key.api_version, key.kind) for key in tallies],
        [namespaces(key.namespace) for key in tallies],
        [outcomes(key.outcome) for key in tallies],
    )
    counts, requester = list(tallies.values()), [int(key.requester) for key in tallies]
    return [*places, counts, requester, *([name for (name,) in each.keys] for each in (namespaces, outcomes))]


def _tallied(
    checks: list[int],
    kinds: list[int],
    namespaces: list[int],
    outcomes: list[int],
    counts: list[int],
    requester: list[int],
    *names: list[str],
) -> Iterable[Tallied]:
    namespace, outcome = (each.__getitem__ for each in names)
    asked = map(bool, requester)
    return zip(checks, kinds, map(namespace, namespaces), map(outcome, outcomes), counts, asked, strict=True)


def _outcome(outcome: Violated | WouldChange | Errored) -> tuple[str, str, str, int, bool, bool]:
    match outcome:
        case Violated():
            return "violated", outcome.message, outcome.reason, outcome.code, False, False
        case WouldChange():
            return "wouldChange", drift_text(outcome), "", 0, False, False
        case Errored():
            return "errored", outcome.message, outcome.reason, outcome.code, outcome.would_deny, outcome.always
        case _:
            assert_never(outcome)


def _dumped(value: list[object]) -> bytes:
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return orjson.dumps(_cleaned(value))
    return orjson.dumps(_cleaned(value)) if b"\\u0000" in data else data


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, (list, tuple)):
        return [_cleaned(item) for item in value]
    return value
