"""Asking both about every case, and the counts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from random import Random
from typing import TypeVar

from scanner.api import UserInfo
from scanner.model.json import JsonObject, as_text
from scanner.model.policy import Operation
from scanner.model.resource import Kind
from scanner.policies.plan import find_equivalents
from tests.integration.fuzz import configurations, explained, patches, sets, versions
from tests.integration.fuzz.case import Case, Made, Outcome, name_of, tidied
from tests.integration.fuzz.compare import Compared, compared, difference, is_changed, outcome_of
from tests.integration.fuzz.fields import absent_fields
from tests.integration.fuzz.manifests import binding_named
from tests.integration.fuzz.ours import possible, predicted
from tests.integration.fuzz.stage import DEFINITION, GROUPS, Stage, Stored, where_of

_Item = TypeVar("_Item")
_MOST_POLICIES = 300
ACTIVATIONS = 3
NOBODY = UserInfo("nobody", groups=GROUPS)
# The server itself writes it into what is sent to create an object, before any policy sees it.
_NOTED = "/metadata/managedFields"


@dataclass(slots=True)
class Tally:
    """What a run has seen; of each class of differences the simplest example."""

    comparisons: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    alike: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Compared] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """Whether every outcome is as predicted or explained, and the words of nearly every refusal."""
        return not self.wrong and self.texts.total() * 100 <= self.comparisons.total()

    def count(self, kind: str, possible: Sequence[Compared], before: JsonObject) -> None:
        """Count one comparison, with the nearest of the predictions that are possible."""
        self.comparisons[kind] += 1
        nearest = max(possible, key=lambda comparison: (comparison.same_class, comparison.same_text))
        if nearest.same_class and nearest.same_text:
            return
        reasons = (explained.reason(comparison, changed=is_changed(comparison.ours, before)) for comparison in possible)
        if why := next(filter(None, reasons), None):
            self.explained[why] += 1
            return
        (self.texts if nearest.same_class else self.wrong)[kind] += 1
        self.alike[nearest.signature] += 1
        example = self.examples.get(nearest.signature)
        if example is None or nearest.weight < example.weight:
            self.examples[nearest.signature] = nearest


@dataclass(slots=True)
class Fuzz:
    """One run on one server."""

    stage: Stage
    chance: Random
    ends: float
    tally: Tally = field(default_factory=Tally)

    def patched(self, objects: Iterable[Stored], share: float) -> None:
        """Every JSON patch of every path of these objects, or a share of them."""
        self.stage.activate(patches.manifests())
        for stored in objects:
            absent = absent_fields(self.stage.schemas, self._kind(stored), stored.document)
            cases = [case for case in patches.cases(stored, absent, self.chance) if self.chance.random() < share]
            self.written("patch", stored, cases)
            if time.monotonic() > self.ends:
                break
        self.stage.deactivate()

    def configured(self, objects: Sequence[Stored], each: int) -> None:
        """So many generated apply configurations of each of these objects."""
        names = (f"configuration-{number}" for number in count())
        for some in _batches(objects, max(1, _MOST_POLICIES // each)):
            chosen = [(stored, [*islice(self._configurations(stored, names), each)]) for stored in some]
            policies = [policy for _, cases in chosen for case in cases for policy in case.policies]
            self.stage.activate([*policies, *(binding_named(name_of(policy)) for policy in policies)])
            for stored, cases in chosen:
                self.written("configuration", stored, cases)
            self.stage.deactivate()
            if time.monotonic() > self.ends:
                break

    def together(self, objects: Sequence[Stored], each: int) -> None:
        """So many sets of policies for each of these objects, activated again and again, since their order may change."""
        names = (f"set-{number}" for number in count())
        for some in _batches(objects, max(1, _MOST_POLICIES // (3 * each))):
            chosen = [(stored, [*islice(self._sets(stored, names), each)]) for stored in some]
            policies = [policy for _, cases in chosen for case in cases for policy in case.policies]
            self.stage.activate([*policies, *(binding_named(name_of(policy)) for policy in policies)])
            for activation in range(ACTIVATIONS):
                if activation:
                    self.stage.reorder()
                for stored, cases in chosen:
                    self.written("set", stored, cases)
            self.stage.deactivate()
            if time.monotonic() > self.ends:
                break

    def versioned(self, objects: Iterable[Stored], each: int) -> None:
        """So many policies about each of these objects in each other version that the server serves of its kind."""
        names = (f"version-{number}" for number in count())
        several = [(stored, other) for stored in objects for other in self._others(stored)]
        for some in _batches(several, max(1, _MOST_POLICIES // each)):
            chosen = [(stored, [*islice(self._versions(stored, other, names), each)]) for stored, other in some]
            policies = [policy for _, cases in chosen for case in cases for policy in case.policies]
            self.stage.activate([*policies, *(binding_named(name_of(policy)) for policy in policies)])
            for stored, cases in chosen:
                self.written("version", stored, cases)
            self.stage.deactivate()
            if time.monotonic() > self.ends:
                break

    def _others(self, stored: Stored) -> tuple[Kind, ...]:
        return find_equivalents(self.stage.kinds)[self._kind(stored)]

    def _versions(self, stored: Stored, other: Kind, names: Iterator[str]) -> Iterator[Case]:
        schema, document = self.stage.schemas.schema(other), self.stage.converted(stored, other)
        return versions.cases(schema, other, document, self.chance, names) if schema else iter(())

    def _sets(self, stored: Stored, names: Iterator[str]) -> Iterator[Case]:
        kind = self._kind(stored)
        schema = self.stage.schemas.schema(kind)
        return sets.cases(schema, kind, stored.document, self.chance, names) if schema else iter(())

    def _configurations(self, stored: Stored, names: Iterator[str]) -> Iterator[Case]:
        kind = self._kind(stored)
        schema = self.stage.schemas.schema(kind)
        return configurations.cases(schema, kind, stored.document, self.chance, names) if schema else iter(())

    def written(self, kind: str, stored: Stored, cases: Iterable[Case]) -> None:
        """Compare cases on an object in updates, and then in creates of it."""
        stored, chosen = self.stage.current(stored), list(cases)
        self._compared(kind, stored, "UPDATE", chosen, frozenset())
        if stored.document["kind"] == DEFINITION:
            return
        self.stage.remove(stored)
        sendable = [case for case in chosen if not case.path.startswith(_NOTED)]
        self._compared(kind, stored, "CREATE", sendable, self._made_anew(stored))
        self.stage.restore(stored)

    def _compared(
        self, kind: str, stored: Stored, operation: Operation, cases: Iterable[Case], made_anew: frozenset[str]
    ) -> None:
        sent = stored.sent(operation)
        for case in cases:
            theirs = outcome_of(self.stage.write(stored, operation, case.user))
            where, possible = where_of(stored.document), self._ours(stored, case, sent, operation)
            comparisons = [compared(case, where, operation, theirs, ours, made_anew) for ours in possible]
            self.tally.count(kind, comparisons, sent)

    def _ours(self, stored: Stored, case: Case, sent: JsonObject, operation: Operation) -> list[Outcome]:
        if len(case.policies) == 1:
            return [predicted(self.stage, case, sent, operation)]
        return possible(self.stage, self._kind(stored), case, sent, operation)

    def _made_anew(self, stored: Stored) -> frozenset[str]:
        """The paths at which the server makes something of a created object without any policy."""
        answer = outcome_of(self.stage.write(stored, "CREATE", NOBODY))
        assert isinstance(answer, Made), f"{where_of(stored.document)}: {answer}"
        made, sent = (tidied(document, created=True) for document in (answer.document, stored.copy))
        return frozenset(path for _, path, *_ in difference(made, sent))

    def _kind(self, stored: Stored) -> Kind:
        name = (as_text(stored.document["apiVersion"]), as_text(stored.document["kind"]))
        return next(kind for kind in self.stage.kinds if (kind.api_version, kind.kind) == name)


def _batches(objects: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(objects), size):
        yield objects[start : start + size]


def unaccepted(stage: Stage) -> Iterator[str]:
    """The objects that the server does not take back as they are."""
    for stored in stage.objects:
        answer = outcome_of(stage.write(stored, "UPDATE", NOBODY))
        if not isinstance(answer, Made):
            yield f"{where_of(stored.document)}: {answer}"
        elif is_changed(answer, stored.document):
            yield f"{where_of(stored.document)}: {list(difference(tidied(answer.document, created=False), tidied(stored.document, created=False)))}"
