"""The settings of posture: the descriptions, owners and files that a user gives. They apply when a report is read."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.posture.control_checks import Framework
from scanner.posture.owners import DEFAULT_OWNER_KEYS, OwnerKey
from scanner.posture.severity import DescriptionOverride
from scanner.posture.waivers.waivers import EXPIRING_DAYS, WaiverRules, WaiverSet


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a report. The defaults need no file.

    `descriptions` are tried in their order, and the first that applies to a policy counts; so are the `owners` of an object.
    `frameworks` are the mappings of controls to policies.
    Without `waivers`, a report has those that a scan stored. Waivers that apply for more than `longest_waiver_days` waive nothing;
    in the last `expiring_waiver_days` they are expiring. `database_limit` is the size in bytes that the database may reach.
    """

    descriptions: tuple[DescriptionOverride, ...] = ()
    owners: tuple[OwnerKey, ...] = DEFAULT_OWNER_KEYS
    frameworks: tuple[Framework, ...] = ()
    waivers: WaiverSet | None = None
    longest_waiver_days: int | None = None
    expiring_waiver_days: int = EXPIRING_DAYS
    database_limit: int | None = None

    @property
    def waiver_rules(self) -> WaiverRules:
        """The rules for waivers."""
        return WaiverRules(self.longest_waiver_days, self.expiring_waiver_days)


DEFAULT_SETTINGS = Settings()
