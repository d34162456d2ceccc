"""The triage of one report: how bad a finding is, and whose. It never changes an outcome, a tally or a finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from scanner.model.policy import PolicyKey
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.problem_numbers import SeverityRanks
from scanner.model.scans.scan import ScanRecord
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.control_checks import ControlsOfChecks
from scanner.posture.owners import Owners
from scanner.posture.problem_rows import Problem
from scanner.posture.settings import Settings
from scanner.posture.severity import DEFAULT_SEVERITY, Description, Severity, describe, describe_by_annotations
from scanner.posture.waivers.waivers import AppliedWaiver
from scanner.posture.waivers.waiving import Waived, Waiving


@dataclass(frozen=True, slots=True)
class BelowSeverity:
    """The policies and checks of a scan below a severity. A policy that the scan did not record is not below it."""

    descriptions: Mapping[PolicyKey, Description]
    minimum: Severity | None

    def __call__(self, policy: PolicyKey, expression: str) -> bool:
        """Return whether a check of a policy is below the severity."""
        description = self.descriptions.get(policy)
        if self.minimum is None or description is None:
            return False
        return not description.severity_of(expression).at_least(self.minimum)

    def has_policy(self, policy: PolicyKey) -> bool:
        """Return whether a policy is below the severity with all its checks."""
        description = self.descriptions.get(policy)
        minimum = self.minimum
        if minimum is None or description is None:
            return False
        return not any(severity.at_least(minimum) for severity in description.severities)


class Triage:
    """The answers of the settings for the findings of one scan, as of a day in UTC."""

    def __init__(self, settings: Settings, record: StoredScan, day: date | None = None) -> None:
        """Describe the policies of a scan. Without a day, the report is of the day on which the scan ended."""
        self.settings = settings
        self.day = day or day_of(record)
        policies = [used.policy for used in record.policies]
        self._controls = ControlsOfChecks(settings.frameworks, policies, record.check_ids)
        self.waiving = Waiving(settings.waivers, record, self.day, settings.waiver_rules)
        self._severities: dict[tuple[PolicyKey, str], Severity] = {}
        self._recorded = {used.policy.key: describe(used.policy, settings.descriptions) for used in record.policies}
        self._descriptions = dict(self._recorded)

    def description(self, policy: PolicyKey) -> Description:
        """The description of a policy, also of a policy that the scan did not record."""
        if (known := self._descriptions.get(policy)) is not None:
            return known
        self._descriptions[policy] = describe_by_annotations(policy, {}, self.settings.descriptions)
        return self._descriptions[policy]

    def notes(self) -> Iterator[Health]:
        """A note for each policy with an annotation that names no severity: it counts as medium, and not in silence."""
        for (language, name), description in sorted(self._descriptions.items()):
            if description.unknown_severity:
                detail = (
                    f"The annotation of its severity is {description.unknown_severity!r}, which is no severity: the policy "
                    f"counts as {DEFAULT_SEVERITY}. Severities are {', '.join(Severity)}"
                )
                yield Health(HealthKind.NOTE, name, "", detail, language)

    def severity(self, policy: PolicyKey, expression: str) -> Severity:
        """The severity of a check of a policy, given its expression."""
        known = self._severities.get((policy, expression))
        if known is None:
            known = self._severities[policy, expression] = self.description(policy).severity_of(expression)
        return known

    def remediation(self, policy: PolicyKey, expression: str) -> str:
        """How to remedy a finding of a check, given its expression; empty if the policy does not state it."""
        return self.description(policy).remediation_of(expression)

    @property
    def ranks(self) -> SeverityRanks:
        """The ranks of the policies of the scan, and of those of their checks that have a severity of their own."""
        described = self._recorded.items()
        return SeverityRanks(
            {policy: description.severity.rank for policy, description in described},
            {
                (policy, expression): description.severity_of(expression).rank
                for policy, description in described
                for expression in description.checks
            },
            DEFAULT_SEVERITY.rank,
        )

    def find_below(self, minimum: Severity | None) -> BelowSeverity:
        """What is below a severity; nothing without one."""
        return BelowSeverity(self._recorded, minimum)

    def controls(self, policy: PolicyKey, expression: str) -> tuple[str, ...]:
        """The controls to which a check belongs, as `framework/id`; none for a policy that the scan did not record."""
        return self._controls.of_check(policy, expression)

    def controls_of_policy(self, policy: PolicyKey) -> tuple[str, ...]:
        """The controls that a check of a policy serves, as `framework/id`."""
        return self._controls.of_policy(policy)

    def owner(self, stored: StoredFinding | Problem) -> str:
        """The owner of the object of a finding or of a problem's first finding, or `owners.UNOWNED`."""
        return self.owner_of(stored.kept)

    @property
    def owner_of(self) -> Owners:
        """Names the owner of an object, given its kept labels, or `owners.UNOWNED`."""
        return Owners(self.settings.owners)

    def waiver(self, stored: StoredFinding) -> AppliedWaiver | None:
        """The waiver that applies to a finding, or None."""
        return self.waiving.find_waiver(stored)

    def waives(self, stored: StoredFinding) -> bool:
        """Return whether a waiver applies to a finding."""
        return self.waiver(stored) is not None

    @property
    def waived(self) -> Waived:
        """The counts of the waived findings."""
        return self.waiving.waived


def day_of(record: ScanRecord) -> date:
    """The day of the end of a scan, in UTC: the date of its report, so that the same scan gives the same report."""
    moment: datetime = record.scan.finished_at or record.scan.started_at
    return moment.astimezone(UTC).date()
