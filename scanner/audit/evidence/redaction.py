"""The redaction of evidence: the decision which values it shows and which it withholds.

A message contains only what the author of a policy wrote into it. Evidence shows values that no author selected, so more is
withheld: the data of Secrets, the values of environment variables, values with names like a password, and the copy
of an object that kubectl keeps in an annotation, whether as they are or as inputs of a computation. The existence and the
number of such values may be shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from scanner import cel
from scanner.admission.compiled import CompiledPolicy
from scanner.admission.dispatch import InvocationResult
from scanner.audit.evidence.text import cut, error_text, value_text
from scanner.audit.redact import WITHHELD_ANY, is_plain_error
from scanner.audit.secret_values import HIDDEN, is_secret, without
from scanner.audit.sensitive_fields import Trail, anything_sensitive, is_sensitive, names_secret
from scanner.cel.explanation.reasons import path_of
from scanner.model.evidence import Reason
from scanner.model.json import Json

WITHHELD: Final = WITHHELD_ANY
_LONGEST_EXPRESSION = 200
_LONGEST_PATH = 300
_LONGEST_NAME = 100
_AUTHORIZER = ("authorizer", "authorizer.requestResource")
_OPEN = frozenset({"object", "oldObject", "params", "namespaceObject", "request", "resource", "exceptions"})
"""The documents whose values may be shown; others, such as a server's answer or a cache, may contain any secret."""
_COMPUTED = "variables"
_WORD = re.compile(r"[^\s'\"()\[\]{},]+")
_IDENTITY = (("request", "userInfo", "extra"), ("request", "userInfo", "uid"))


class EvidenceRedaction:
    """The rules for showing values of one object and param under one policy."""

    def __init__(self, invocation_result: InvocationResult, compiled: CompiledPolicy) -> None:
        """Take the object, the param and the namespace of an invocation, whose secrets are hidden."""
        resource, param = invocation_result.resource, invocation_result.invocation.param
        self._documents: dict[str, tuple[Json, bool]] = {
            "object": (resource.body, is_secret(resource)),
            "oldObject": (resource.body, is_secret(resource)),
            "params": (None if param is None else param.body, is_secret(param)),
            "namespaceObject": (
                None if invocation_result.request is None else invocation_result.request.namespace_object,
                False,
            ),
        }
        self._of = resource, param
        self._hidden_values: frozenset[str] | None = None
        self._compiled = compiled
        self._words: frozenset[str] | None = None

    @property
    def _hidden(self) -> frozenset[str]:
        if self._hidden_values is None:
            self._hidden_values = HIDDEN.of(*self._of)
        return self._hidden_values

    @property
    def _texts(self) -> tuple[str, ...]:
        return tuple(expression.text for _, expression in self._compiled.expressions())

    def reason(self, reason: cel.Reason) -> Reason:
        """A reason in the form that may be stored and shown; its value is `WITHHELD` if it may contain a secret."""
        erred = isinstance(reason.outcome, cel.EvaluationError)
        withheld = self._is_withheld(reason)
        return Reason(
            expression=cut(reason.text, _LONGEST_EXPRESSION),
            value=WITHHELD if withheld else self._value(reason),
            path=self._path(reason.place, own_words=withheld or self._is_of_secret(reason.place)),
            variable=cut(reason.variable, _LONGEST_NAME),
            erred=erred,
        )

    def _value(self, reason: cel.Reason) -> str:
        if isinstance(reason.outcome, cel.EvaluationError):
            return error_text(str(reason.outcome), self._hidden)
        if isinstance(reason.outcome, bool):
            return "true" if reason.outcome else "false"
        root, trail = self._trail(reason.place)
        return value_text(reason.outcome, self._hidden, trail if root in self._documents else None)

    def _path(self, place: cel.Place, *, own_words: bool) -> str:
        """The path of a value. A key computed from a secret is a secret: then only words of the policy's text are shown."""
        if own_words and place[:1] == (_COMPUTED,):
            place = place[:2]
        if own_words:
            place = (*place[:1], *_leading_words(place[1:], self._policy_words()))
        return cut(without(path_of(place), self._hidden), _LONGEST_PATH)

    def _policy_words(self) -> frozenset[str]:
        if self._words is None:
            dotted = {word for text in self._texts for word in _WORD.findall(text)}
            self._words = frozenset(dotted | {part for word in dotted for part in re.split(r"\W+", word)})
        return self._words

    def _is_of_secret(self, place: cel.Place) -> bool:
        root, _ = self._trail(place)
        return self._documents.get(root, (None, False))[1]

    # --- withheld values

    def _is_withheld(self, reason: cel.Reason) -> bool:
        if isinstance(reason.outcome, cel.EvaluationError):
            withheld = any(self._may_contain_secret(place, as_it_stands=False) for place in reason.reads)
            return withheld and not is_plain_error(str(reason.outcome), self._policy_words())
        if isinstance(reason.outcome, str) and names_secret(reason.text.rstrip("'\")]")):
            return True
        stands = bool(reason.place) and reason.reads == {reason.place}
        return any(
            self._may_contain_secret(place, as_it_stands=stands, outcome=reason.outcome) for place in reason.reads
        )

    def _may_contain_secret(self, place: cel.Place, *, as_it_stands: bool, outcome: object = None) -> bool:
        """Return whether the value at a place may contain a secret; of a value shown as it is, secret parts can be left out."""
        root, steps = self._trail(place)
        if root in _AUTHORIZER:
            return not isinstance(outcome, bool)
        if root not in _OPEN or root in self._compiled.secret_roots:
            return True
        if any(_overlaps(place, area) for area in _IDENTITY):
            return True
        document, secret = self._documents.get(root, (None, False))
        if secret and _overlaps(steps, ("data",)) | _overlaps(steps, ("stringData",)):
            return True
        inside, value = _sensitive_or_value(document, steps)
        return inside or (not as_it_stands and anything_sensitive(value, steps))

    def _trail(self, place: cel.Place) -> tuple[str, Trail]:
        """The document that contains a place, and the path in it. Kyverno's request contains the object."""
        if place[:1] == ("request",) and place[1:2] in (("object",), ("oldObject",)):
            return "object", place[2:]
        return (str(place[0]), place[1:]) if place else ("", ())


def _leading_words(steps: Trail, words: frozenset[str]) -> Iterator[str | int]:
    for step in steps:
        if isinstance(step, str) and step not in words:
            return
        yield step


def _overlaps(place: Sequence[str | int], area: tuple[str, ...]) -> bool:
    """Return whether a place is an area, a parent of an area, or inside an area."""
    return all(step == area_step for step, area_step in zip(place, area, strict=False))


def _sensitive_or_value(document: Json, steps: Trail) -> tuple[bool, Json]:
    """Return whether the path leads into a sensitive field, and the value at its end."""
    value = document
    for at, step in enumerate(steps):
        if is_sensitive(value, step, steps[:at]):
            return True, None
        value = _child(value, step)
    return False, value


def _child(value: Json, step: str | int) -> Json:
    if isinstance(value, Mapping):
        return value.get(step) if isinstance(step, str) else None
    if isinstance(value, Sequence) and not isinstance(value, str) and isinstance(step, int):
        return value[step] if 0 <= step < len(value) else None
    return None
