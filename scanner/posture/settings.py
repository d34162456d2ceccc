"""The settings of posture: the descriptions, owners and files that a user gives. They apply when a report is read."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.posture.owners import DEFAULT_OWNER_KEYS, OwnerKey
from scanner.posture.severity import DescriptionOverride


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a report. The defaults need no file.

    `descriptions` are tried in their order, and the first that applies to a policy counts; so are the `owners` of an object.
    """

    descriptions: tuple[DescriptionOverride, ...] = ()
    owners: tuple[OwnerKey, ...] = DEFAULT_OWNER_KEYS


DEFAULT_SETTINGS = Settings()
