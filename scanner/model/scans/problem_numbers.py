"""Numbers of open problems, and such numbers in groups: namespaces, owners or controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from scanner.model.policy import PolicyKey
from scanner.model.scans.scan import Scan


class OpenProblems(NamedTuple):
    """Numbers of open problems, as `ProblemTotals` counts them.

    Admission would refuse `refused` of them and the pods of `pods_refused` more, and `new` began with the scan.
    """

    open: int = 0
    refused: int = 0
    new: int = 0
    pods_refused: int = 0

    def add(self, other: OpenProblems) -> OpenProblems:
        """The sums."""
        return OpenProblems(*(own + more for own, more in zip(self, other, strict=True)))


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

    def numbers_of(self, name: str) -> OpenProblems:
        """The problems of a group."""
        return self.groups.get(name, NO_PROBLEMS)


@dataclass(frozen=True, slots=True)
class ProblemTotals:
    """Numbers of problems. Previewed, excepted and waived findings, and those that the scan did not check, belong to none.

    `open` problems have a finding, and `refused` of them one whose object admission would refuse; of `pods_refused` more it would admit the
    objects, and refuse pods of them. `new` of them began with this
    scan, `reopened` began again. `resolved` problems have no finding any more, and `fixed` of them were fixed in every object.
    """

    open: int = 0
    refused: int = 0
    new: int = 0
    reopened: int = 0
    resolved: int = 0
    fixed: int = 0
    pods_refused: int = 0


IsBelow: TypeAlias = Callable[[PolicyKey, str], bool]
"""Whether a check of a policy, given its expression, is below a severity."""


@dataclass(frozen=True, slots=True)
class SeverityRanks:
    """The ranks of severities, 0 for the worst: of policies, of checks with a severity of their own, by expression, and the `usual` one."""

    policies: Mapping[PolicyKey, int]
    checks: Mapping[tuple[PolicyKey, str], int]
    usual: int

    def of(self, policy: PolicyKey, expression: str) -> int:
        """The rank of a check."""
        rank = self.checks.get((policy, expression))
        return self.policies.get(policy, self.usual) if rank is None else rank

    @property
    def are_usual(self) -> bool:
        """Return whether every policy and check has the usual rank."""
        return {*self.policies.values(), *self.checks.values()} <= {self.usual}


ProblemsByCheck: TypeAlias = Mapping[tuple[PolicyKey, str], OpenProblems]
"""Open problems by policy and expression of their check."""


class ProblemGroup(NamedTuple):
    """`rank` is that of the severity of the checks, 0 for the worst. `action` is the strictest one, or empty; `outcome` is violated, errored or wouldChange: the first that a finding has.

    `number` counts open problems; of them, admission would refuse `refused`, and `new` began with the scan.
    """

    language: str
    policy: str
    rank: int
    action: str
    outcome: str
    number: int
    refused: int
    new: int

    @property
    def pods_refused(self) -> int:
        """The number of problems whose objects admission would admit, and refuse pods of them."""
        return self.number - self.refused if self.action == "RefusePods" else 0


@dataclass(frozen=True, slots=True)
class ProblemCounts:
    """The numbers of problems with an open finding that a scan saw. Previews and excepted findings belong to none.

    `denied` problems have a finding whose object, or whose pods, admission would refuse, errors under `failurePolicy: Fail` included;
    of `pods_refused` of them it would admit the objects. `violated`, `errored` and `drifting` are the outcomes of findings. `new` problems had no open finding in the `baseline`; all
    are new if that is None.
    """

    total: int = 0
    denied: int = 0
    violated: int = 0
    errored: int = 0
    drifting: int = 0
    new: int = 0
    baseline: Scan | None = None
    pods_refused: int = 0


@dataclass(frozen=True, slots=True)
class NewProblems:
    """The ids of the problems of a scan that are new since its baseline, a scan or the problems of a report.

    `as_recorded` is true if these are the problems that began with the scan, so that the statuses of its findings agree with the
    baseline. `gone` is the number of problems open in the baseline and not in this scan.
    """

    ids: frozenset[str] = field(default_factory=frozenset)
    baseline: Scan | None = None
    as_recorded: bool = True
    gone: int = 0
