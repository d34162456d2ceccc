"""The auditability of a policy, which follows from the data that its expressions read.

It is decided before the first object is read. A class is a statement about outcomes, so only the expressions that decide
outcomes count: match conditions, validations, audit annotations and the variables that these use. A messageExpression decides
no outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scanner.model.outcome import Check


class Auditability(StrEnum):
    """The extent to which an audit of stored objects can predict admission. A policy that reads stored data alone is `full`."""

    FULL = "fullyAuditable"
    REQUESTER = "dependsOnRequester"
    OLD_OBJECT = "dependsOnOldObject"
    SERVER_SET = "readsServerSetFields"
    AUTHORIZER = "needsAuthorizer"
    OPERATIONS = "notAuditable"


@dataclass(frozen=True, slots=True)
class CheckReading:
    """The classes of one check, with those of the match conditions; none for a check that is `full`."""

    check: Check
    classes: tuple[Auditability, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The classes of a policy, in the order of `Auditability`, and those of each of its checks.

    `reason` is empty, or the reason why the policy cannot be evaluated on stored objects. Without classes, the policy was
    recorded by a version of Assay that had none.
    """

    classes: tuple[Auditability, ...] = ()
    checks: tuple[CheckReading, ...] = ()
    reason: str = ""

    def classes_of(self, check: Check) -> tuple[Auditability, ...]:
        """The classes of a check."""
        return next((reads.classes for reads in self.checks if reads.check == check), ())


UNKNOWN_READING = Reading()
