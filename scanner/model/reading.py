"""What a policy's expressions read, as far as it decides what an audit of stored objects can say.

Known before any object is seen. A class is a promise about outcomes, so only expressions that decide outcomes count:
match conditions, validations, audit annotations and the variables these use. A messageExpression decides words alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scanner.model.outcome import Check


class Auditability(StrEnum):
    """How far an audit of stored objects can stand for admission. A policy that needs nothing special is `full`."""

    FULL = "fullyAuditable"
    REQUESTER = "dependsOnRequester"
    OLD_OBJECT = "dependsOnOldObject"
    SERVER_SET = "readsServerSetFields"
    AUTHORIZER = "needsAuthorizer"
    OPERATIONS = "notAuditable"


@dataclass(frozen=True, slots=True)
class CheckReading:
    """The classes of one check, those of the match conditions that come before it included; none when it is `full`."""

    check: Check
    classes: tuple[Auditability, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The classes of a policy, in the order of `Auditability`, and those of each of its checks.

    `reason` says why no stored object can be judged by it, and is empty unless it is classed so. Without classes, the
    policy was recorded by a version that did not class policies.
    """

    classes: tuple[Auditability, ...] = ()
    checks: tuple[CheckReading, ...] = ()
    reason: str = ""

    def of(self, check: Check) -> tuple[Auditability, ...]:
        """The classes of one of its checks."""
        return next((entry.classes for entry in self.checks if entry.check == check), ())


UNKNOWN = Reading()
