"""Compares the expected response to a write with the server's response.

A server names the policy and the binding of a failure, not the check or the param: failures are compared as the set of
messages of each policy and binding. A denial can have warnings too; it names one of possibly many reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from scanner.parity.answers import CUT, MOST, Denial, Response, is_unsendable, parse_warning, read_denial, write_warning
from scanner.parity.verdicts import Verdict

OTHER_DENIAL: Final = "another verdict denied the request, and a denial names one reason"
DROPPED: Final = "the warnings of the request exceed 4,096 characters, so the server cuts and drops some"
UNSENDABLE: Final = "the message has a control character, which no header can carry"
SILENCE: Final = "(nothing)"


@dataclass(frozen=True, slots=True)
class VerdictDifference:
    """A result that only Assay or only the server has. Both texts are redacted."""

    policy: str
    binding: str
    assay: str
    server: str


@dataclass(slots=True)
class VerdictComparison:
    """The comparison of the verdicts on one write; `unseen` counts, by reason, those that no client can observe."""

    agreed: int = 0
    differences: list[VerdictDifference] = field(default_factory=list)
    unseen: Counter[str] = field(default_factory=Counter)

    def add(self, other: VerdictComparison) -> None:
        """Add the counts and differences of another comparison."""
        self.agreed += other.agreed
        self.differences.extend(other.differences)
        self.unseen.update(other.unseen)


def compare_verdicts(verdicts: Sequence[Verdict], response: Response) -> VerdictComparison:
    """Compare every verdict on a write with the response, which must concern policies (see `read_unrelated`)."""
    comparison = VerdictComparison()
    observed = _ObservedResponse(verdicts, response)
    noticed: list[Verdict] = []
    for verdict in verdicts:
        if verdict.unseen:
            comparison.unseen[verdict.unseen] += 1
        elif verdict.text:
            _compare_failure(verdict, observed, comparison)
        else:
            noticed.append(verdict)
    _compare_pass(noticed, observed, comparison)
    _compare_surplus(verdicts, observed, comparison)
    return comparison


class _ObservedResponse:
    """The warnings and the denial in a response."""

    def __init__(self, verdicts: Iterable[Verdict], response: Response) -> None:
        self.denial: Denial | None = read_denial(response)
        self.warnings = set(response.warnings)
        expected = {_write_warning(verdict) for verdict in verdicts if verdict.warns and verdict.text}
        self.cut = sum(map(len, expected | self._list_others(expected))) > MOST
        self.explained = {form for warning in expected for form in self._list_forms(warning)}

    def _list_others(self, expected: set[str]) -> set[str]:
        short = {warning[:CUT] for warning in expected}
        return {warning for warning in self.warnings if warning not in expected | short}

    def _list_forms(self, warning: str) -> set[str]:
        return {warning, warning[:CUT]} if self.cut else {warning}

    def has_warning(self, verdict: Verdict) -> bool:
        """Return whether the failure is among the warnings, complete or cut."""
        return bool(self._list_forms(_write_warning(verdict)) & self.warnings)


def _write_warning(verdict: Verdict) -> str:
    return write_warning(*verdict.speaker, verdict.text)


def _compare_failure(verdict: Verdict, observed: _ObservedResponse, comparison: VerdictComparison) -> None:
    denial = observed.denial
    if verdict.warns and observed.has_warning(verdict):
        comparison.agreed += 1
    elif verdict.warns and is_unsendable(_write_warning(verdict)):
        comparison.unseen[UNSENDABLE] += 1
    elif verdict.warns and observed.cut:
        comparison.unseen[DROPPED] += 1
    elif verdict.denies and denial and (denial.policy, denial.binding) == verdict.speaker:
        _compare_denial(verdict, denial, comparison)
    elif verdict.denies and denial:
        comparison.unseen[OTHER_DENIAL] += 1
    else:
        comparison.differences.append(VerdictDifference(*verdict.speaker, verdict.shown, SILENCE))


def _compare_denial(verdict: Verdict, denial: Denial, comparison: VerdictComparison) -> None:
    """Compare a denial, which names one of several failures of a policy and binding."""
    if denial.text == verdict.text:
        comparison.agreed += 1
    else:
        comparison.unseen[OTHER_DENIAL] += 1


def _compare_pass(verdicts: Iterable[Verdict], observed: _ObservedResponse, comparison: VerdictComparison) -> None:
    """A pass is observed as a missing warning, or as a missing denial."""
    for verdict in verdicts:
        if verdict.denies and not verdict.warns and observed.denial:
            comparison.unseen[OTHER_DENIAL] += 1
        else:
            comparison.agreed += 1


def _compare_surplus(verdicts: Sequence[Verdict], observed: _ObservedResponse, comparison: VerdictComparison) -> None:
    """Failures of the server that Assay does not expect; each replaces a verdict that passed."""
    for speaker, text in _list_unexplained(verdicts, observed):
        if any(verdict.unseen and verdict.speaker == speaker for verdict in verdicts):
            continue
        comparison.differences.append(VerdictDifference(*speaker, SILENCE, text))
        passed = any(not verdict.text and not verdict.unseen and verdict.speaker == speaker for verdict in verdicts)
        comparison.agreed -= passed and comparison.agreed > 0


def _list_unexplained(
    verdicts: Sequence[Verdict], observed: _ObservedResponse
) -> Iterator[tuple[tuple[str, str], str]]:
    for warning in sorted(observed.warnings - observed.explained):
        speaker = parse_warning(warning)
        if speaker:
            yield speaker, warning
    denial = observed.denial
    if denial and not any(verdict.denies and verdict.text == denial.text for verdict in verdicts):
        yield (denial.policy, denial.binding), denial.text
