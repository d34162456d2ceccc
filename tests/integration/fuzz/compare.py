"""The answer of the server against the prediction: the class of the outcome, and its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.policy import Operation
from scanner.mutate.operations import is_same_json
from tests.integration.client import Answer
from tests.integration.fuzz.case import Case, Made, Outcome, Refused, tidied

_ADMITTED = (200, 201)
ENDED = 0
"""The status of a write that ended the connection."""
_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9.]+\b|(?<=: )\.[^: ]+(?=: )")
_UNDECLARED = re.compile(r"(?<= object to typed object: ).*: field not declared in schema$", re.DOTALL)
_UNMARSHALLED = re.compile(r".*json: cannot unmarshal \w+ into Go (?:struct field (\S+)|value) of type (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Compared:
    """Both outcomes of a case; `paths` is where two objects differ. `signature` is the same for differences of the same kind."""

    case: Case
    where: str
    operation: Operation
    theirs: Outcome
    ours: Outcome
    same_class: bool
    same_text: bool
    signature: str = ""
    paths: tuple[str, ...] = ()

    @property
    def weight(self) -> tuple[int, str]:
        """What makes one example simpler than another."""
        return len(self.case.path) + len(self.case.shown), self.where


def outcome_of(answer: Answer) -> Outcome:
    """The outcome of a write, from its answer."""
    if answer.status in _ADMITTED:
        return Made(as_object(answer.body))
    return Refused(answer.status, as_text(dig(answer.body, "message")))


def compared(
    case: Case,
    where: str,
    operation: Operation,
    theirs: Outcome,
    ours: Outcome,
    made_anew: frozenset[str] = frozenset(),
) -> Compared:
    """Compare two outcomes; at the paths `made_anew` each object that is created has values of its own."""
    created = operation == "CREATE"
    if isinstance(theirs, Refused) or isinstance(ours, Refused):
        right = isinstance(theirs, Refused) and isinstance(ours, Refused) and theirs.code == ours.code
        same_text = theirs == ours or (right and _are_alike(theirs, ours))
        signature = "" if same_text else _refusals(theirs, ours)
        return Compared(case, where, operation, theirs, ours, right, same_text, signature)
    differing = [
        kind_of_difference
        for kind_of_difference in difference(
            tidied(theirs.document, created=created), tidied(ours.document, created=created)
        )
        if kind_of_difference[1] not in made_anew
    ]
    signature = "; ".join(sorted({f"{how} {_general(path)}" for how, path, *_ in differing})[:3])
    paths = tuple(path for _, path, *_ in differing)
    return Compared(case, where, operation, theirs, ours, not differing, not differing, signature, paths)


def difference(theirs: Json, ours: Json, path: str = "") -> Iterator[tuple[str, str, Json, Json]]:
    """Where two documents differ: how, the path, and both values."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for name in {**theirs, **ours}:
            below = f"{path}/{name}"
            if name not in ours:
                yield "lacks", below, theirs[name], None
            elif name not in theirs:
                yield "has", below, None, ours[name]
            else:
                yield from difference(theirs[name], ours[name], below)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for at, (their, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from difference(their, other, f"{path}/{at}")
    elif not is_same_json(theirs, ours):
        yield "differs", path, theirs, ours


def is_changed(outcome: Outcome, before: JsonObject) -> bool:
    """Whether a write leaves something else than what was sent."""
    return isinstance(outcome, Made) and not is_same_json(
        tidied(outcome.document, created=False), tidied(before, created=False)
    )


def _are_alike(theirs: Outcome, ours: Outcome) -> bool:
    """Whether two refusals say the same: a server that ends the connection says nothing, and it walks maps in any order."""
    if not isinstance(theirs, Refused) or not isinstance(ours, Refused):
        return False
    return theirs.code == ENDED or _unordered(theirs.message) == _unordered(ours.message)


def _unordered(message: str) -> list[str]:
    """The lines of a message without their order; of the fields that a schema does not declare it names any one."""
    return sorted(_UNDECLARED.sub("", message).splitlines())


def _refusals(theirs: Outcome, ours: Outcome) -> str:
    """In what two outcomes differ, of which one at least is a refusal."""
    pair = [isinstance(outcome, Refused) and _UNMARSHALLED.fullmatch(outcome.message) for outcome in (theirs, ours)]
    match pair:
        case [re.Match() as their, re.Match() as other]:
            kinds = f"{their[2]} <> {other[2]}" if their[2] != other[2] else ""
            return f"unmarshal {kinds}{'' if their[1] == other[1] else ' path'}"
        case _:
            return f"{_shape(theirs)} <> {_shape(ours)}"


def _shape(outcome: Outcome) -> str:
    if isinstance(outcome, Made):
        return "made"
    if unmarshalled := _UNMARSHALLED.fullmatch(outcome.message):
        return f"{outcome.code} unmarshal into {unmarshalled[2]}"
    return f"{outcome.code} {_NAMES.sub('_', outcome.message.rpartition(' denied request: ')[2])}"


def _general(path: str) -> str:
    return "/".join(re.sub(r"/\d+(?=/|$)", "/*", path).split("/")[-2:])
