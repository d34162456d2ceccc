"""A waiver: the decision of a person to accept findings of a policy until a date, written in a file.

A waiver never changes an outcome. It is applied when a report is read, as of the day of that report: see `posture.waivers.waivers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from scanner.model.outcome import Check
from scanner.model.population import Pairs
from scanner.model.selector import EVERYTHING, Selector


@dataclass(frozen=True, slots=True)
class Waiver:
    """A waiver as its author wrote the file. An empty field does not restrict the waiver.

    `cluster` is a glob. `check` is the id of a check, or its expression without spaces at both ends. `workload` and `object` are
    `Kind/name`, or a name of any kind. `selector` concerns the kept labels of the object. `since` and `until` are days in UTC, and
    the waiver applies on both. `control` is the control that limits the risk in the meantime, in the words of the author. `source`
    is the file, or the ConfigMap and its key. `check_digest` is the digest of the question that the check asks
    (`posture.waivers.read_waived_checks`).
    """

    name: str
    policy: str
    until: date
    reason: str
    requested_by: str
    approved_by: str
    cluster: str = ""
    check: str = ""
    namespace: str = ""
    workload: str = ""
    object: str = ""
    selector: Selector = EVERYTHING
    ticket: str = ""
    since: date | None = None
    control: str = ""
    source: str = ""
    check_digest: str = ""


@dataclass(frozen=True, slots=True)
class WaiverSet:
    """The waivers that a scan or a report uses, by name. An empty set is not the same as none.

    `faults` are sentences about documents of ConfigMaps that could not be read as waivers, and so waive nothing; `notes` name
    what else was left out, such as the ConfigMaps of other namespaces.
    """

    waivers: tuple[Waiver, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class WaiverSubject(NamedTuple):
    """The facts about a finding that a waiver can name. `check_id` is empty if the check has none.

    `labels` are the kept labels of the object.
    """

    policy: str
    check_id: str
    expression: str
    namespace: str
    kind: str
    name: str
    workload_kind: str
    workload_name: str
    labels: Pairs


class CheckOfFinding(NamedTuple):
    """The check of a finding, under one binding and param. Findings share it."""

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    check: Check


class Candidate(NamedTuple):
    """An open finding without its texts, for the counting of waived findings. `row` is its number in the database.

    `problem` is the number of its problem. `outcome` is a value of `OutcomeName`. The scan did not check it if `checked` is
    false; a `preview` has no history. `labels` are the kept labels of the object.
    """

    row: int
    problem: int
    check: CheckOfFinding
    kind: tuple[str, str]
    namespace: str
    name: str
    outcome: str
    checked: bool
    preview: bool
    workload_kind: str
    workload_name: str
    labels: Pairs

    @property
    def counts(self) -> bool:
        """Return whether gates and scores count the finding."""
        return self.checked and not self.preview and self.outcome != "excepted"


class CandidateFilter(NamedTuple):
    """The findings to which waivers may apply: of these policies, with one of these names or labels, or with any.

    `objects` and `workloads` are names without kinds; `labels` are kept labels of objects.
    """

    policies: frozenset[str]
    objects: frozenset[str]
    workloads: frozenset[str]
    namespaces: frozenset[str]
    labels: frozenset[tuple[str, str]]
    any: bool


class WaivedCheck(NamedTuple):
    """A check that a waiver names, in a form in which a scan had it: see `posture.waivers.read_waived_checks`.

    `waiver` is the key of the waiver, `form` the digest of the form, and `question` that of the question. `since` is the revision
    of the first scan that used the waiver and had the check in this form.
    """

    waiver: bytes
    form: bytes
    question: str
    since: int


class LabelledConfigMap(NamedTuple):
    """A ConfigMap that has the label of waivers."""

    namespace: str
    name: str
    data: Mapping[str, str]
