"""The answers about manifests as a report: the sentences, and the lines of the fields that decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from scanner.preview.verdict import API_SERVER, CheckedObject, CheckResult, Decision, Effect, Verdict
from scanner.report.text.numbers import plural

VERDICT_TEXTS: Final[Mapping[Verdict, str]] = {
    Verdict.REFUSED: "refused",
    Verdict.UNDECIDED: "undecided",
    Verdict.PODS_REFUSED: "its pods refused",
    Verdict.WARNED: "admitted with warnings",
    Verdict.ADMITTED: "admitted",
}
EFFECT_TEXTS: Final[Mapping[Effect, str]] = {
    Effect.REFUSES: "refused by",
    Effect.UNDECIDED: "undecided:",
    Effect.REFUSES_PODS: "its pods refused by",
    Effect.WARNS: "warning of",
    Effect.AUDITS: "recorded in the audit log by",
}
NOT_EVALUATED: Final = (
    "Not evaluated: the API's own validation of fields, and other admission plug-ins such as ResourceQuota. "
    "--ask-server asks the API server as well."
)


class FieldPlace(NamedTuple):
    """A field of the object of a document: the file, the line of the document, the numbers of its items, and the path."""

    file: str
    line: int
    items: tuple[int, ...]
    path: str


@dataclass(frozen=True, slots=True)
class CheckDocument:
    """A result, and the lines of the fields that decided, as far as they are known."""

    result: CheckResult
    lines: Mapping[FieldPlace, int] = field(default_factory=dict)

    def find_line(self, checked: CheckedObject, decision: Decision) -> int:
        """The line of the first deciding field that stands in the file, or of the document; 0 for standard input."""
        place = checked.place
        if place.file in ("", "-"):
            return 0
        places = (FieldPlace(place.file, place.line, place.items, path) for path in decision.fields)
        return next((self.lines[each] for each in places if each in self.lines), place.line)

    @property
    def counts(self) -> Counter[Verdict]:
        """The number of objects with each verdict."""
        return Counter(checked.verdict for checked in self.result.objects)

    @property
    def verdict_sentence(self) -> str:
        """The verdict about all manifests."""
        counts, result = self.counts, self.result
        parts = [f"{counts[verdict]:,} {text}" for verdict, text in VERDICT_TEXTS.items() if counts[verdict]]
        unread = f", {plural(len(result.gaps), 'gap')}" if result.gaps else ""
        return f"{plural(len(result.objects), 'object')}: {', '.join(parts) or 'nothing to check'}{unread}."


FIRST_NAMES: Final = 3
"""The objects with the same answer that are named, before the number of the others."""


def group_equal_answers(objects: Iterable[CheckedObject], shown: Collection[Effect]) -> list[list[CheckedObject]]:
    """The objects in their order, those with the same verdict, operation, rules and messages together.

    An object without a decision that is shown, and one with changes or with an answer of the API server, is alone.
    """
    groups: dict[Hashable, list[CheckedObject]] = {}
    for number, checked in enumerate(objects):
        decisions = tuple((each.effect, name_rule(each), each.message) for each in checked.select(*shown))
        is_alone = not decisions or checked.changes or checked.server
        key = number if is_alone else (checked.verdict, checked.operation, decisions)
        groups.setdefault(key, []).append(checked)
    return list(groups.values())


def list_wanted_fields(result: CheckResult) -> list[FieldPlace]:
    """The deciding fields whose lines a report shows."""
    return [
        FieldPlace(checked.place.file, checked.place.line, checked.place.items, path)
        for checked in result.objects
        for decision in checked.decisions
        if checked.place.file not in ("", "-")
        for path in decision.fields
    ]


def name_object(checked: CheckedObject) -> str:
    """`Deployment payments/web`."""
    name = f"{checked.namespace}/{checked.name}" if checked.namespace else checked.name
    return f"{checked.kind} {name}"


def name_rule(decision: Decision) -> str:
    """The policy with its binding and its param, or the webhook, or the API server."""
    binding = f" (binding {decision.binding})" if decision.binding and decision.language else ""
    param = f" with {decision.param}" if decision.param else ""
    noun = "policy " if decision.language and decision.policy != API_SERVER else ""
    return f"{noun}{decision.policy}{binding}{param}"
