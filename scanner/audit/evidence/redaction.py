"""The redaction of evidence: the decision which values it shows and which it withholds.

A message contains only what the author of a policy wrote into it. Evidence shows values that no author selected, so more is
withheld: the data of Secrets, the values of environment variables, values with names like a password, copies
of objects that tools keep in annotations, and what was read from elsewhere, whether as they are or as inputs of a computation. The existence and the
number of such values may be shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from scanner import cel
from scanner.admission.compiled import CompiledPolicy
from scanner.admission.dispatch import InvocationResult
from scanner.audit.evidence.text import cut, write_error, write_value
from scanner.audit.redact import WITHHELD_ANY, is_plain_error
from scanner.audit.secret_values import HIDDEN, is_secret, mask_values
from scanner.audit.sensitive_fields import (
    MAPPINGS,
    SensitiveFields,
    Trail,
    is_secret_named,
)
from scanner.audit.taint import TaintDocuments, get_documents, is_secret_elsewhere
from scanner.cel.explanation.explained import write_path
from scanner.model.json import Json
from scanner.model.outcome import Evidence, FieldPlace, Reason

WITHHELD: Final = WITHHELD_ANY
_LONGEST_EXPRESSION = 200
_LONGEST_PATH = 300
_LONGEST_NAME = 100
_AUTHORIZER = ("authorizer", "authorizer.requestResource")
_COMPUTED = "variables"
_NOT_SET: Final = "not set"
_WORD = re.compile(r"[^\s'\"()\[\]{},]+")
_NAME = re.compile(r"[^\w-]+")
_OBJECT = frozenset({"object"})


_Key: TypeAlias = "tuple[str, cel.Place, str, frozenset[str]]"
_Reasons: TypeAlias = "dict[_Key, tuple[object, Reason | None]]"
_NO_REASON: Final = (None, None)


class _SearchedDocuments:
    """The documents of an object, its param and its namespace, and what is known about them."""

    def __init__(self, documents: TaintDocuments) -> None:
        self.documents = documents
        self.resource, self.param, self.old = documents.resource, documents.param, documents.old
        self.by_name: Mapping[str, Json] = documents.by_name
        self.fields: Mapping[str, SensitiveFields] = documents.fields
        self.secrets = documents.secrets
        """The names of the documents that are Secrets."""
        self.reasons: _Reasons = {}
        """The reasons with the values that they show: policies often fail for the same value."""
        self.evidence_of_parts: dict[tuple[int, frozenset[str], frozenset[str]], tuple[cel.DirectParts, Evidence]] = {}
        self._sensitive: dict[cel.Place, bool] = {}

    def has_sensitive(self, root: str, steps: Trail, value: Json) -> bool:
        """Return whether the value at a place of a document contains a sensitive field."""
        fields = self.fields[root]
        if not isinstance(value, dict | list):
            return fields.has_any(value, steps)
        place = (root, *steps)
        is_sensitive = self._sensitive.get(place)
        if is_sensitive is None:
            is_sensitive = self._sensitive[place] = fields.has_any(value, steps)
        return is_sensitive


class _LatestSearchedDocuments:
    """The documents of the latest object."""

    def __init__(self) -> None:
        self._documents: _SearchedDocuments | None = None

    def get(self, invocation_result: InvocationResult) -> _SearchedDocuments:
        """The documents of an evaluation; the same instance until one of them is another."""
        documents, latest = get_documents(invocation_result), self._documents
        if latest is None or latest.documents is not documents:
            latest = self._documents = _SearchedDocuments(documents)
        return latest


_LATEST = _LatestSearchedDocuments()


class EvidenceRedaction:
    """The rules for showing values of one object and param under one policy."""

    def __init__(self, invocation_result: InvocationResult, compiled: CompiledPolicy) -> None:
        """Take the object, the param and the namespace of an invocation, whose secrets are hidden."""
        self._documents = _LATEST.get(invocation_result)
        self._compiled = compiled
        self._words: frozenset[str] | None = None

    @property
    def _hidden_values(self) -> frozenset[str]:
        return HIDDEN.get(self._documents.resource, self._documents.param, self._documents.old)

    @property
    def _texts(self) -> tuple[str, ...]:
        return tuple(expression.text for _, expression in self._compiled.expressions())

    def find_evidence(self, direct: cel.DirectParts, inputs: Mapping[str, object]) -> Evidence | None:
        """The evidence of the same parts of the same object, from another check; None if it is not known."""
        if direct.roots != _OBJECT or inputs.get("object") is not self._documents.resource.body:
            return None
        pair = self._documents.evidence_of_parts.get(self._make_key(direct))
        return None if pair is None else pair[1]

    def keep_evidence(self, direct: cel.DirectParts, inputs: Mapping[str, object], evidence: Evidence) -> None:
        """Keep evidence for other checks, unless it depends on the words of the policy: see `redact_reason`."""
        if direct.roots != _OBJECT or inputs.get("object") is not self._documents.resource.body:
            return
        if not is_secret(self._documents.resource) and all(reason.value != WITHHELD for reason in evidence.reasons):
            self._documents.evidence_of_parts[self._make_key(direct)] = direct, evidence

    def _make_key(self, direct: cel.DirectParts) -> tuple[int, frozenset[str], frozenset[str]]:
        """The key of the evidence of the parts of an object. An entry keeps the parts alive, so that no others get their id."""
        return id(direct), self._compiled.open_roots, self._compiled.object_roots

    def redact_reason(self, reason: cel.DecidingPart) -> Reason:
        """A reason in the form that may be stored and shown; its value is `WITHHELD` if it may contain a secret."""
        key = reason.text, reason.place, reason.variable, self._compiled.open_roots
        outcome, earlier = self._documents.reasons.get(key, _NO_REASON)
        is_unchanged = _is_unchanged_part(reason)
        if earlier is not None and is_unchanged and outcome is reason.outcome:
            return earlier
        redacted = self._make_reason(reason)
        # A withheld value, a part of a Secret and an error depend on the words of the policy, too.
        if is_unchanged and redacted.value != WITHHELD and not redacted.erred and not self._is_of_secret(reason.place):
            self._documents.reasons[key] = reason.outcome, redacted
        return redacted

    def redact_field(self, place: FieldPlace) -> Reason:
        """The field at a place of a document as a reason, in the form that may be stored and shown.

        Its value is `WITHHELD` if the field may contain a secret. Raises KeyError for another document than those of the request.
        """
        root, *steps = place
        document = self._documents.by_name[str(root)]
        withheld = self._may_contain_secret(place, as_it_stands=True)
        path = self._write_path(place, own_words=withheld or self._is_of_secret(place))
        return Reason(
            expression=f"object.{path}" if root == "object" != path else path,
            value=WITHHELD if withheld else self._write_field(document, place, steps),
            path=path,
        )

    def _write_field(self, document: Json, place: FieldPlace, steps: Sequence[str | int]) -> str:
        value = document
        for step in steps:
            if not _has_step(value, step):
                return _NOT_SET
            value = _get_child(value, step)
        return self._write_outcome(cel.DecidingPart("", value, place))

    def _make_reason(self, reason: cel.DecidingPart) -> Reason:
        erred = isinstance(reason.outcome, cel.EvaluationError)
        withheld = self._is_withheld(reason)
        return Reason(
            expression=cut(reason.text, _LONGEST_EXPRESSION),
            value=WITHHELD if withheld else self._write_outcome(reason),
            path=self._write_path(reason.place, own_words=withheld or self._is_of_secret(reason.place)),
            variable=cut(reason.variable, _LONGEST_NAME),
            erred=erred,
        )

    def _write_outcome(self, reason: cel.DecidingPart) -> str:
        if isinstance(reason.outcome, cel.EvaluationError):
            return write_error(str(reason.outcome), self._hidden_values)
        if isinstance(reason.outcome, bool):
            return "true" if reason.outcome else "false"
        root, trail = self._split_place(reason.place)
        return write_value(reason.outcome, self._hidden_values, trail if root in self._documents.by_name else None)

    def _write_path(self, place: cel.Place, *, own_words: bool) -> str:
        """The path of a value. A key computed from a secret is a secret: then only words of the policy's text are shown."""
        if own_words and place[:1] == (_COMPUTED,):
            place = place[:2]
        if own_words:
            place = (*place[:1], *_take_leading_words(place[1:], self._list_policy_words()))
        return cut(mask_values(write_path(place), self._hidden_values), _LONGEST_PATH)

    def _list_policy_words(self) -> frozenset[str]:
        if self._words is None:
            dotted = {word for text in self._texts for word in _WORD.findall(text)}
            self._words = frozenset(dotted | {part for word in dotted for part in re.split(r"\W+", word)})
        return self._words

    def _is_of_secret(self, place: cel.Place) -> bool:
        root, _ = self._split_place(place)
        return root in self._documents.secrets

    # --- withheld values

    def _is_withheld(self, reason: cel.DecidingPart) -> bool:
        if isinstance(reason.outcome, cel.EvaluationError):
            withheld = any(self._may_contain_secret(place, as_it_stands=False) for place in reason.reads)
            return withheld and not is_plain_error(str(reason.outcome), self._list_policy_words())
        if is_secret_named(_NAME.split(reason.text.rstrip("'\")]"))[-1], reason.outcome):
            return True
        is_unchanged = _is_unchanged_part(reason)
        return any(
            self._may_contain_secret(place, as_it_stands=is_unchanged, outcome=reason.outcome) for place in reason.reads
        )

    def _may_contain_secret(self, place: cel.Place, *, as_it_stands: bool, outcome: object = None) -> bool:
        """Return whether the value at a place may contain a secret; of a value shown as it is, secret parts can be left out."""
        root, steps = self._split_place(place)
        if root in _AUTHORIZER:
            return not isinstance(outcome, bool)
        if root not in self._documents.by_name:
            return is_secret_elsewhere(root, steps, self._compiled)
        inside, value = _follow(self._documents.by_name[root], steps, self._documents.fields[root])
        # Of a value that is shown as it is, the sensitive parts are left out; a Secret has other parts than those.
        shows_parts = as_it_stands and root not in self._documents.secrets
        return inside or (not shows_parts and self._documents.has_sensitive(root, steps, value))

    def _split_place(self, place: cel.Place) -> tuple[str, Trail]:
        """The document that contains a place, and the path in it. Kyverno's request contains the object."""
        if place[:1] == ("request",) and place[1:2] in (("object",), ("oldObject",)):
            return "object", place[2:]
        return (str(place[0]), place[1:]) if place else ("", ())


def _is_unchanged_part(reason: cel.DecidingPart) -> bool:
    """Return whether a value is an unchanged part of a document."""
    return len(reason.reads) == 1 and reason.place in reason.reads and bool(reason.place)


def _take_leading_words(steps: Trail, words: frozenset[str]) -> Iterator[str | int]:
    for step in steps:
        if isinstance(step, str) and step not in words:
            return
        yield step


def _follow(document: Json, steps: Trail, fields: SensitiveFields) -> tuple[bool, Json]:
    """Return whether the path leads into a sensitive field, and the value at its end."""
    value = document
    for at, step in enumerate(steps):
        if fields.hides(value, step, steps[:at]):
            return True, None
        value = _get_child(value, step)
    return False, value


def _has_step(value: Json, step: str | int) -> bool:
    """Return whether a map has a key, or a list an index."""
    if isinstance(value, MAPPINGS):
        return step in value
    return isinstance(value, Sequence) and not isinstance(value, str) and isinstance(step, int) and step < len(value)


def _get_child(value: Json, step: str | int) -> Json:
    if isinstance(value, MAPPINGS):
        return value.get(step) if isinstance(step, str) else None
    if isinstance(value, Sequence) and not isinstance(value, str) and isinstance(step, int):
        return value[step] if 0 <= step < len(value) else None
    return None
