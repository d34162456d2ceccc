"""What admission would decide about the objects of manifests, as data: a verdict for each object, with its reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from msgspec import Struct

from scanner.model.outcome import NO_EVIDENCE, Change, Evidence, Gap
from scanner.model.policy import Operation
from scanner.model.scans.scan import ClusterIdentity

API_SERVER: Final = "the API server"
"""The name of what decides if no policy does."""


class Effect(StrEnum):
    """The effect of a decision on the request, the strictest first.

    `undecided` is a part of admission that Assay cannot evaluate, and that could refuse or change the object.
    """

    REFUSES = "refuses"
    UNDECIDED = "undecided"
    REFUSES_PODS = "refusesPods"
    WARNS = "warns"
    AUDITS = "audits"


class Verdict(StrEnum):
    """The answer about one object, the worst first. A refused object is refused also if another answer is undecided."""

    REFUSED = "refused"
    UNDECIDED = "undecided"
    PODS_REFUSED = "podsRefused"
    WARNED = "admittedWithWarnings"
    ADMITTED = "admitted"


_VERDICTS: Final = {
    Effect.REFUSES: Verdict.REFUSED,
    Effect.UNDECIDED: Verdict.UNDECIDED,
    Effect.REFUSES_PODS: Verdict.PODS_REFUSED,
    Effect.WARNS: Verdict.WARNED,
    Effect.AUDITS: Verdict.ADMITTED,
}


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of a policy, of a webhook or of the API server about an object; texts are redacted.

    `policy` is the policy or the webhook, `language` the language of the policy, and `param` its param as namespace/name. `fields` are
    the paths of the deciding fields of the object, the most telling first.
    """

    effect: Effect
    message: str
    policy: str = API_SERVER
    binding: str = ""
    language: str = ""
    param: str = ""
    fields: tuple[str, ...] = ()
    evidence: Evidence = NO_EVIDENCE


class Place(Struct, frozen=True):
    """The document of an object: `source` names it, `file` is its path or `-`, `line` and `items` as in the files of a cluster."""

    source: str
    file: str = ""
    line: int = 1
    items: tuple[int, ...] = ()


class ServerAnswer(Struct, frozen=True):
    """The answer of the API server to a dry run of the same request. `compared` says how it relates to the verdict.

    `verdict` is None where the answer does not concern policies; `why` has the reason then, and the message otherwise.
    """

    verdict: Verdict | None
    compared: str
    why: str = ""

    @property
    def differs(self) -> bool:
        """Return whether the server decides otherwise."""
        return self.compared == DIFFERS


AGREES: Final = "agrees"
DIFFERS: Final = "differs"
NOT_COMPARED: Final = "notCompared"
NOT_ASKED: Final = "notAsked"
"""There is no answer: a permission is missing, for example."""


@dataclass(frozen=True, slots=True)
class CheckedObject:
    """The answer about one object. Without an `operation` there is no request: the cluster does not serve the kind, for example.

    `changes` are what mutating policies would change in the object, and `changed_by` the names of these policies.
    """

    place: Place
    api_version: str
    kind: str
    namespace: str
    name: str
    operation: Operation | None = None
    decisions: tuple[Decision, ...] = ()
    changes: tuple[Change, ...] = ()
    changed_by: tuple[str, ...] = ()
    server: ServerAnswer | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of the decisions."""
        return find_verdict(self.decisions)

    @property
    def has_undecided(self) -> bool:
        """Return whether a part of admission could not be evaluated."""
        return any(decision.effect is Effect.UNDECIDED for decision in self.decisions)

    def select(self, *effects: Effect) -> tuple[Decision, ...]:
        """The decisions with some effects, in their order."""
        return tuple(decision for decision in self.decisions if decision.effect in effects)


def find_verdict(decisions: Iterable[Decision]) -> Verdict:
    """The worst verdict of some decisions; an object without any is admitted."""
    found = {_VERDICTS[decision.effect] for decision in decisions}
    return next((verdict for verdict in Verdict if verdict in found), Verdict.ADMITTED)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answers about all objects, in the order of the manifests.

    `gaps` are documents that cannot be read, and rules that could not be listed and may concern any object. `notes` are sentences.
    """

    cluster: ClusterIdentity
    user: str
    objects: tuple[CheckedObject, ...]
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Return whether an object, or the pods of one, would be refused."""
        return any(checked.verdict in (Verdict.REFUSED, Verdict.PODS_REFUSED) for checked in self.objects)

    @property
    def is_complete(self) -> bool:
        """Return whether everything could be decided, and the server was asked about everything if it was to be."""
        return not self.gaps and not any(checked.has_undecided for checked in self.objects)

    @property
    def differs(self) -> bool:
        """Return whether the API server decided otherwise about some object."""
        return any(checked.server is not None and checked.server.differs for checked in self.objects)
