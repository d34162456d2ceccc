"""What Assay expects of a write beside what the server said to it.

A server names the policy and the binding of a failure, not the check or the param: failures are compared as the set of
texts of each policy and binding. Warnings come with refusals too; a refusal names one reason of possibly many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from scanner.parity.answers import CUT, MOST, Refusal, Said, refusal_of, speaker_of, unsendable, warning_of
from scanner.parity.verdicts import Verdict

OTHER_REFUSAL: Final = "another verdict refused the request, and a refusal names one reason"
DROPPED: Final = "the warnings of the request pass 4,096 characters: the server cuts them and drops some"
UNSENDABLE: Final = "the message holds a control character, and no header can hold that"
SILENCE: Final = "(nothing)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that only one of the two says. Neither text holds a secret."""

    policy: str
    binding: str
    assay: str
    server: str


@dataclass(slots=True)
class Comparison:
    """How the verdicts on one write compare; `unseen` counts, by reason, those that no client can notice."""

    agreed: int = 0
    differences: list[Difference] = field(default_factory=list)
    unseen: Counter[str] = field(default_factory=Counter)

    def add(self, other: Comparison) -> None:
        """Count another write's verdicts too."""
        self.agreed += other.agreed
        self.differences.extend(other.differences)
        self.unseen.update(other.unseen)


def compared(verdicts: Sequence[Verdict], said: Said) -> Comparison:
    """Compare every verdict on a write with the answer to it, which is about policies (see `aside_of`)."""
    comparison = Comparison()
    heard = _Heard(verdicts, said)
    noticed: list[Verdict] = []
    for verdict in verdicts:
        if verdict.unseen:
            comparison.unseen[verdict.unseen] += 1
        elif verdict.text:
            _failure(verdict, heard, comparison)
        else:
            noticed.append(verdict)
    _silence(noticed, heard, comparison)
    _surplus(verdicts, heard, comparison)
    return comparison


class _Heard:
    """The answer to one write, taken apart."""

    def __init__(self, verdicts: Iterable[Verdict], said: Said) -> None:
        self.refusal: Refusal | None = refusal_of(said)
        self.warnings = set(said.warnings)
        wanted = {_warning(verdict) for verdict in verdicts if verdict.warns and verdict.text}
        self.cut = sum(map(len, wanted | self._others(wanted))) > MOST
        self.explained = {form for warning in wanted for form in self._forms(warning)}

    def _others(self, wanted: set[str]) -> set[str]:
        short = {warning[:CUT] for warning in wanted}
        return {warning for warning in self.warnings if warning not in wanted | short}

    def _forms(self, warning: str) -> set[str]:
        return {warning, warning[:CUT]} if self.cut else {warning}

    def warned(self, verdict: Verdict) -> bool:
        """Whether the failure is among the warnings, whole or cut."""
        return bool(self._forms(_warning(verdict)) & self.warnings)


def _warning(verdict: Verdict) -> str:
    return warning_of(*verdict.speaker, verdict.text)


def _failure(verdict: Verdict, heard: _Heard, comparison: Comparison) -> None:
    refusal = heard.refusal
    if verdict.warns and heard.warned(verdict):
        comparison.agreed += 1
    elif verdict.warns and unsendable(_warning(verdict)):
        comparison.unseen[UNSENDABLE] += 1
    elif verdict.warns and heard.cut:
        comparison.unseen[DROPPED] += 1
    elif verdict.denies and refusal and (refusal.policy, refusal.binding) == verdict.speaker:
        _refused(verdict, refusal, comparison)
    elif verdict.denies and refusal:
        comparison.unseen[OTHER_REFUSAL] += 1
    else:
        comparison.differences.append(Difference(*verdict.speaker, verdict.shown, SILENCE))


def _refused(verdict: Verdict, refusal: Refusal, comparison: Comparison) -> None:
    """One of several failures of a policy and binding may be the one that the refusal names."""
    if refusal.text == verdict.text:
        comparison.agreed += 1
    else:
        comparison.unseen[OTHER_REFUSAL] += 1


def _silence(verdicts: Iterable[Verdict], heard: _Heard, comparison: Comparison) -> None:
    """A pass is seen where the failure would have been: among the warnings, or as a refusal that did not come."""
    for verdict in verdicts:
        if verdict.denies and not verdict.warns and heard.refusal:
            comparison.unseen[OTHER_REFUSAL] += 1
        else:
            comparison.agreed += 1


def _surplus(verdicts: Sequence[Verdict], heard: _Heard, comparison: Comparison) -> None:
    """What the server says and Assay does not; each such failure takes the place of a verdict that passed."""
    for speaker, text in _unexplained(verdicts, heard):
        if any(verdict.unseen and verdict.speaker == speaker for verdict in verdicts):
            continue
        comparison.differences.append(Difference(*speaker, SILENCE, text))
        passed = any(not verdict.text and not verdict.unseen and verdict.speaker == speaker for verdict in verdicts)
        comparison.agreed -= passed and comparison.agreed > 0


def _unexplained(verdicts: Sequence[Verdict], heard: _Heard) -> Iterator[tuple[tuple[str, str], str]]:
    for warning in sorted(heard.warnings - heard.explained):
        speaker = speaker_of(warning)
        if speaker:
            yield speaker, warning
    refusal = heard.refusal
    if refusal and not any(verdict.denies and verdict.text == refusal.text for verdict in verdicts):
        yield (refusal.policy, refusal.binding), refusal.text
