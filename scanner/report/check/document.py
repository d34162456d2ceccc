"""The answers about manifests as a report: the sentences, and the lines of the fields that decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from scanner.preview.verdict import (
    AGREES,
    API_SERVER,
    DIFFERS,
    NOT_COMPARED,
    CheckedObject,
    CheckResult,
    Decision,
    Effect,
    Verdict,
)
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
_COUNT_TEXTS: Final[Mapping[Verdict, str]] = {**VERDICT_TEXTS, Verdict.PODS_REFUSED: "with refused pods"}
NOT_EVALUATED: Final = (
    "Not evaluated: the API's own validation of fields, and other admission plug-ins such as ResourceQuota. "
    "--ask-server asks the API server as well."
)
_COMPARED_TEXTS: Final[Mapping[str, str]] = {
    AGREES: "as predicted",
    DIFFERS: "decided OTHERWISE",
    NOT_COMPARED: "not comparable",
}


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
        parts = [f"{counts[verdict]:,} {text}" for verdict, text in _COUNT_TEXTS.items() if counts[verdict]]
        unread = f", {plural(len(result.gaps), 'gap')}" if result.gaps else ""
        return f"{plural(len(result.objects), 'object')}: {', '.join(parts) or 'nothing to check'}{unread}."

    @property
    def closing_sentence(self) -> str:
        """The answers of the API server, with numbers, or what is not evaluated if it was not asked."""
        answers = Counter(checked.server.compared for checked in self.result.objects if checked.server)
        if not answers:
            return NOT_EVALUATED
        parts = ", ".join(f"{answers[each]:,} {text}" for each, text in _COMPARED_TEXTS.items() if answers[each])
        return f"The API server was asked about {plural(answers.total(), 'object')}: {parts}."


FIRST_NAMES: Final = 3
"""The objects with the same answer that are named, before the number of the others."""


def group_equal_answers(objects: Iterable[CheckedObject], shown: Collection[Effect]) -> list[list[CheckedObject]]:
    """The objects in their order, more than FIRST_NAMES with the same verdict, operation, rules and messages together.

    An object without a decision that is shown, with changes, or about which the API server decides otherwise, is alone.
    """
    groups: dict[Hashable, list[CheckedObject]] = {}
    for number, checked in enumerate(objects):
        decisions = tuple((each.effect, name_rule(each), each.message) for each in checked.select(*shown))
        is_alone = not decisions or checked.changes or (checked.server and checked.server.compared != AGREES)
        key = number if is_alone else (checked.verdict, checked.operation, decisions)
        groups.setdefault(key, []).append(checked)
    return [
        part
        for group in groups.values()
        for part in ([group] if len(group) > FIRST_NAMES else [[each] for each in group])
    ]


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


def describe_rule(decision: Decision) -> str:
    """`refused by policy replicas`; of the API server only what it decides: what is undecided is so for another reason."""
    if decision.effect is Effect.UNDECIDED and decision.policy == API_SERVER:
        return "undecided"
    return f"{EFFECT_TEXTS[decision.effect]} {name_rule(decision)}"


def name_rule(decision: Decision) -> str:
    """The policy with its param and a binding of another name, or the webhook, or the API server."""
    is_other = decision.binding not in ("", decision.policy)
    binding = f" (binding {decision.binding})" if is_other and decision.language else ""
    param = f" with {decision.param}" if decision.param else ""
    noun = "policy " if decision.language and decision.policy != API_SERVER else ""
    return f"{noun}{decision.policy}{binding}{param}"
