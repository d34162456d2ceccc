"""The numbers of a scan's problems in the first lines of a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProblemTotals:
    """Numbers of problems. Previewed, excepted and waived findings, and those that the scan did not check, belong to none.

    `open` problems have a finding, and `refused` of them one whose object admission would refuse. `new` of them began with this
    scan, `reopened` began again. `resolved` problems have no finding any more, and `fixed` of them were fixed in every object.
    """

    open: int = 0
    refused: int = 0
    new: int = 0
    reopened: int = 0
    resolved: int = 0
    fixed: int = 0
