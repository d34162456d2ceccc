"""Numbers of open problems, and such numbers in groups: namespaces, owners or controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class OpenProblems(NamedTuple):
    """Numbers of open problems, as `ProblemTotals` counts them: admission would refuse `refused`, and `new` began with the scan."""

    open: int = 0
    refused: int = 0
    new: int = 0

    def plus(self, other: OpenProblems) -> OpenProblems:
        """The sums."""
        return OpenProblems(self.open + other.open, self.refused + other.refused, self.new + other.new)


NO_PROBLEMS = OpenProblems()


@dataclass(frozen=True, slots=True)
class GroupedProblems:
    """The open problems of each group by its name. The sums of all groups differ from the numbers of a scan for two reasons.

    Problems in several groups count in each: `repeated` has what the sums count too often, `several` these problems, each once.
    `outside` are the problems in no group.
    """

    groups: Mapping[str, OpenProblems] = field(default_factory=dict)
    several: OpenProblems = NO_PROBLEMS
    repeated: OpenProblems = NO_PROBLEMS
    outside: OpenProblems = NO_PROBLEMS

    def of(self, name: str) -> OpenProblems:
        """The problems of a group."""
        return self.groups.get(name, NO_PROBLEMS)
