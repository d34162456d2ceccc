"""The filter and the orders of a list of problems or findings: `assay findings`, the pages of `serve`, its API and the static pages.

The script of the static pages (`reports_templates/findings.js`) follows the same rules; tests compare all four.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from scanner.model.list_fields import ActionFilter, FindingStatus, SortOrder
from scanner.posture.severity import Severity
from scanner.report.lists.problem_facts import REFUSED, CommonProblem

ACTIONS: Final[Sequence[tuple[str, str]]] = (
    (ActionFilter.REFUSED, "would be refused"),
    (ActionFilter.DENY, "Deny"),
    (ActionFilter.PODS, "its pods would be refused"),
    (ActionFilter.WARN, "Warn"),
    (ActionFilter.AUDIT, "Audit"),
    (ActionFilter.ERRORED, "Errored"),
    (ActionFilter.CHANGE, "would change"),
)
"""The actions with their words."""

STATUSES: Final[Sequence[tuple[str, str]]] = (
    (FindingStatus.UNRESOLVED, "all but resolved"),
    (FindingStatus.OPEN, "open, not waived"),
    (FindingStatus.NEW, "new"),
    (FindingStatus.REOPENED, "reopened"),
    (FindingStatus.WAIVED, "waived"),
    (FindingStatus.EXCEPTED, "excepted"),
    (FindingStatus.UNCHECKED, "not checked"),
    (FindingStatus.PREVIEW, "preview"),
    (FindingStatus.OUTDATED, "outdated"),
    (FindingStatus.RESOLVED, "resolved"),
)
"""The statuses with their words."""

SORTS: Final[Sequence[tuple[str, str]]] = (
    ("", "worst first"),
    (SortOrder.OLDEST, "oldest first"),
    (SortOrder.NEWEST, "newest first"),
    (SortOrder.SEVERITY, "by severity"),
    (SortOrder.WORKLOAD, "by workload"),
    (SortOrder.POLICY, "by rule"),
    (SortOrder.OWNER, "by owner"),
)
"""The orders with their words; without one, pages have the worst first."""
UNRESOLVED: Final = FindingStatus.UNRESOLVED.value
"""The status of links that name none: the findings of a policy, a namespace or an owner that its number counts."""
CLUSTER_SCOPED: Final = "_cluster"
UNOWNED: Final = "unowned"
SEVERITIES: Final = tuple(map(str, Severity))
"""The names of severities, by rank."""
_CHIPS: Final[Mapping[str, tuple[str, ...]]] = {
    ActionFilter.REFUSED: REFUSED,
    ActionFilter.ERRORED: ("refused-error", "error", "preview-refused-error", "preview-error"),
    ActionFilter.CHANGE: ("drift", "preview-drift"),
}


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The choice of a user in a list: the rows that have one of the values of each field. An empty field chooses everything.

    Values of `policy`, `namespace`, `owner`, `kind` and `workload` may be globs. A policy has its name and its title. A workload is
    `Deployment/web`, in any namespace, or `Deployment shop/web`. `kind` is that of objects. `text` are words, all of which are in
    the texts of a finding. Without a `status`, resolved rows are chosen, too.
    """

    text: str = ""
    policy: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    severity: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    workload: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    min_severity: Severity | None = None
    sort: str = ""

    @property
    def words(self) -> list[str]:
        """The words of the text, without case."""
        return self.text.casefold().split()

    @property
    def has_resolved(self) -> bool:
        """Return whether resolved findings are chosen."""
        return not self.status or FindingStatus.RESOLVED in self.status

    def has_facts(self, each: CommonProblem, names: str) -> bool:
        """Return whether the facts of a problem are chosen; `names` has the names and the title of its policy, a line for each."""
        policy_names = each.policy[1], *names.split("\n")
        return (
            (not self.policy or any(_matches(wanted, name) for wanted in self.policy for name in policy_names))
            and (not self.severity or SEVERITIES[each.severity] in self.severity)
            and (self.min_severity is None or each.severity <= self.min_severity.rank)
            and (not self.action or any(_has_action(each, action) for action in self.action))
            and (not self.status or any(_has_status(each, status) for status in self.status))
        )

    def has_place(self, *, namespace: str, owner: str, kind: str) -> bool:
        """Return whether the place of objects is chosen."""
        return (
            (not self.namespace or any(_is_namespace(wanted, namespace) for wanted in self.namespace))
            and (not self.owner or any(_is_owner(wanted, owner) for wanted in self.owner))
            and (not self.kind or any(_matches(wanted, kind) for wanted in self.kind))
        )

    def has_workload(self, kind: str, path: str) -> bool:
        """Return whether a workload is chosen, given its kind, and its namespace and name as `shop/web`."""
        return not self.workload or any(_is_workload(wanted, kind, path) for wanted in self.workload)


def _matches(wanted: str, name: str) -> bool:
    # A name that has the characters of a glob is chosen by itself.
    return name == wanted or fnmatchcase(name, wanted)


def _is_namespace(wanted: str, namespace: str) -> bool:
    return not namespace if wanted == CLUSTER_SCOPED else _matches(wanted, namespace)


def _is_owner(wanted: str, owner: str) -> bool:
    return not owner if wanted in ("", UNOWNED) else bool(owner) and _matches(wanted, owner)


def _is_workload(wanted: str, kind: str, path: str) -> bool:
    of_kind, space, place = wanted.partition(" ")
    if not space:
        of_kind, _, place = wanted.partition("/")
        path = path.rpartition("/")[2]
    return of_kind.casefold() == kind.casefold() and _matches(place, path)


def _has_action(each: CommonProblem, action: str) -> bool:
    chips = _CHIPS.get(action)
    if chips is None:
        return each.facts.action == action
    return each.facts.chip in chips and (action != ActionFilter.REFUSED or each.is_counted)


def _has_status(each: CommonProblem, status: str) -> bool:
    facts = each.facts
    match status:
        case FindingStatus.WAIVED:
            return facts.waived
        case FindingStatus.EXCEPTED:
            return facts.excepted
        case FindingStatus.OPEN:
            return each.is_counted
        case FindingStatus.NEW | FindingStatus.REOPENED:
            return facts.status == status and each.is_counted
        case FindingStatus.UNRESOLVED:
            return facts.status != FindingStatus.RESOLVED
        case _:
            return facts.status == status
