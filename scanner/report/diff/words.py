"""The difference of two scans in words: what makes them incomparable, what changed besides objects, and the text of rules."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import Final, NamedTuple

from scanner.model.json import Json, JsonObject
from scanner.model.outcome import Gap
from scanner.model.scans.cause import CauseKind
from scanner.model.scans.method import Method
from scanner.model.scans.scan import Scan, ScanState
from scanner.posture.history.scan_diff import (
    DifferingProblem,
    FindingChange,
    ProblemChange,
    ProblemState,
    RuleDifference,
    RuleKind,
    ScanDiff,
)
from scanner.posture.problem_ids import problem_id
from scanner.posture.waivers.waiving import WaivedProblem, WaiverChanges
from scanner.report.diff.alike import make_alike
from scanner.report.document.policy_text import yaml_of
from scanner.report.document.waivers import waiver_text
from scanner.report.text.numbers import join_texts, plural
from scanner.report.text.scope import EVERYTHING, exclusions_of, scope_of
from scanner.report.text.times import stamp
from scanner.report.text.titles import ACTION_WORDS, CAUSES, RESOLUTIONS, RULES_KINDS, without_expression

RULES_CHANGED: Final[Mapping[CauseKind, str]] = {
    **RULES_KINDS,
    CauseKind.SERVER: "server",
    CauseKind.KYVERNO: "release of Kyverno",
    CauseKind.ASSAY: "Assay",
    CauseKind.OPTIONS: "options",
}
RULE_TITLES: Final[Mapping[RuleKind, str]] = {
    RuleKind.POLICY: "policy",
    RuleKind.BINDING: "binding",
    RuleKind.PARAM: "param",
    RuleKind.EXCEPTION: "exception",
    RuleKind.GLOBAL_CONTEXT: "global context entry",
    RuleKind.NAMESPACE_LABELS: "namespace labels of",
    RuleKind.CONFIGURATION: "configuration of",
}
EQUAL_TEXT: Final = "(the shown text is equal)"
_MOST_LINES: Final = 2000
"""Lines that are compared with one another: the time to compare grows with their square."""


class DiffValue(NamedTuple):
    """A part of two scans with its values, which are texts for readers."""

    part: str
    before: str
    now: str


class RuleChange(StrEnum):
    """The changes of a rule."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


def rule_change(difference: RuleDifference) -> RuleChange:
    """The change of a rule that differs."""
    if difference.before is None:
        return RuleChange.ADDED
    return RuleChange.REMOVED if difference.now is None else RuleChange.CHANGED


def scan_title(scan: Scan) -> str:
    """The id, the end and the state of a scan."""
    return f"{scan.id} of {stamp(scan.finished_at)}{_name_state(scan)}"


def choice_title(scan: Scan) -> str:
    """The same in a list of scans, of which a reader chooses by date, and a narrow field shows the begin."""
    return f"{stamp(scan.finished_at)}{_name_state(scan)}, {scan.id}"


def _name_state(scan: Scan) -> str:
    state = "" if scan.state is ScanState.COMPLETE else f", {scan.state.value}"
    return f"{state}{', preview' if scan.preview else ''}"


class DiffWarning(NamedTuple):
    """A warning before a comparison: a word, a sentence, and the gaps that are the reason."""

    word: str
    sentence: str
    gaps: tuple[Gap, ...] = ()


def warnings(diff: ScanDiff) -> Iterator[DiffWarning]:
    """The parts that the scans of a difference did not check, the later one first, and whether they are previews."""
    earlier_gaps, gaps = diff.gaps
    if diff.now.state is ScanState.INCOMPLETE:
        left = count_problems(diff)[ProblemChange.NOT_CHECKED]
        rest = f" {plural(left, 'open problem')} {'was' if left == 1 else 'were'} not checked." if left else ""
        yield DiffWarning("INCOMPLETE", f"The later scan {_describe_missed(gaps)}.{rest}", gaps)
    if diff.before.state is ScanState.INCOMPLETE:
        appeared = sum(_sum(diff.problems, change, CauseKind.COVERAGE) for change in _APPEARED)
        rest = f" {plural(appeared, 'problem')} of the cause coverage may have existed then." if appeared else ""
        yield DiffWarning("Incomplete", f"The earlier scan {_describe_missed(earlier_gaps)}.{rest}", earlier_gaps)
    for scan, name in ((diff.now, "later"), (diff.before, "earlier")):
        if scan.preview:
            yield DiffWarning(
                "Preview",
                f"The {name} scan assumed bindings that are not in force (--assume-bound). Their findings take no part.",
            )


_APPEARED: Final = (ProblemChange.NEW, ProblemChange.REOPENED)


def _describe_missed(gaps: Sequence[Gap]) -> str:
    return f"did not scan {plural(len(gaps), 'item')}" if gaps else "was recorded as incomplete"


def gap_words(gap: Gap) -> str:
    """The place and the reason of a gap."""
    return f"{gap.where}: {gap.why}"


def incomparable_values(diff: ScanDiff) -> Iterator[DiffValue]:
    """The parts in which comparable scans would be equal."""
    for part in diff.incomparable:
        before, now = _VALUES[part](diff.before, diff.methods[0]), _VALUES[part](diff.now, diff.methods[1])
        yield DiffValue(part, before, now)


def incomparable_sentence(diff: ScanDiff) -> str:
    """The warning before a comparison of scans that are not comparable; empty for comparable ones."""
    if not diff.incomparable:
        return ""
    return f"These scans are not comparable: they differ in {join_texts(diff.incomparable)}. Differences may come from that."


def rules_sentence(diff: ScanDiff) -> str:
    """The statement that the rules changed, with the parts; empty if they are equal."""
    if not diff.rules_changed:
        return ""
    return f"The rules changed between the scans: {join_texts(RULES_CHANGED[kind] for kind in diff.rules_changed)}."


def circumstances(diff: ScanDiff) -> Iterator[DiffValue]:
    """The server, the version of Assay and the options, where they differ."""
    if CauseKind.SERVER in diff.rules_changed:
        yield DiffValue("server", *(scan.cluster.server_version or "not known" for scan in (diff.before, diff.now)))
    if CauseKind.KYVERNO in diff.rules_changed:
        yield DiffValue("release of Kyverno", *(method.kyverno_release for method in diff.methods))
    if CauseKind.ASSAY in diff.rules_changed:
        yield DiffValue("Assay", diff.before.tool_version, diff.now.tool_version)
    if CauseKind.OPTIONS in diff.rules_changed:
        earlier, later = (_options(*each) for each in zip((diff.before, diff.now), diff.methods, strict=True))
        yield from (DiffValue(part, earlier[part], later[part]) for part in earlier if earlier[part] != later[part])


def count_problems(diff: ScanDiff, kind: CauseKind | None = None) -> dict[ProblemChange, int]:
    """The numbers of problems by change, of one cause or of all."""
    return {change: _sum(diff.problems, change, kind) for change in ProblemChange}


def count_findings(diff: ScanDiff, kind: CauseKind | None = None) -> dict[FindingChange, int]:
    """The numbers of findings by change, of one cause or of all."""
    return {change: _sum(diff.findings, change, kind) for change in FindingChange}


def counts_line(counts: Mapping[ProblemChange, int] | Mapping[FindingChange, int]) -> str:
    """`2 new, 1 resolved`, without those that are 0."""
    return (
        join_texts(
            f"{number:,} {_CHANGES.get(change.value, change.value)}" for change, number in counts.items() if number
        )
        or "none"
    )


_CHANGES: Final[Mapping[str, str]] = {ProblemChange.NOT_CHECKED.value: "not checked"}
DIFF_CAUSES: Final[Mapping[CauseKind, str]] = {
    **CAUSES,
    CauseKind.COVERAGE: "the earlier or the later scan did not check it",
}


def change_words(problem: DifferingProblem) -> str:
    """The change of a problem, with the parts that changed or the reason of its resolution."""
    if problem.change is ProblemChange.RESOLVED:
        moved = f" to {join_texts(problem.moved_to)}" if problem.moved_to else ""
        return (
            f"resolved: {RESOLUTIONS.get(problem.resolution, problem.resolution)}{moved}"
            if problem.resolution
            else "resolved"
        )
    if problem.change is ProblemChange.CHANGED:
        return f"changed: {join_texts(map(part_words(problem), problem.parts))}"
    if problem.unchecked_before:
        return f"{problem.change}, not checked before"
    return _CHANGES.get(problem.change.value, problem.change.value)


def also_words(problem: DifferingProblem) -> str:
    """The further causes of a change: `also: the object changed`; empty without one."""
    also = ", and ".join(DIFF_CAUSES[kind] for kind in problem.cause.also)
    return f"also: {also}" if also else ""


def part_words(problem: DifferingProblem) -> Callable[[str], str]:
    """The words for a part of a problem that changed: an exception was added or ended."""
    excepted = bool(problem.now and problem.now.excepted)
    was_excepted = bool(problem.before and problem.before.excepted)
    exception = "exception" if excepted == was_excepted else "excepted" if excepted else "no longer excepted"
    return lambda part: exception if part == "exception" else part


def workload_words(problem: DifferingProblem) -> str:
    """Kind, namespace and name of the workload."""
    top = problem.workload
    return f"{top.kind} {'/'.join(filter(None, (top.namespace, top.name)))}{' (derived)' if top.derived else ''}"


def state_words(state: ProblemState) -> str:
    """The numbers of findings of a problem that the scan checked and did not, with its action."""
    action = "excepted" if state.excepted else ACTION_WORDS.get(state.action, state.action)
    left = f"{plural(state.unchecked, 'finding')} not checked" if state.unchecked else ""
    checked = plural(state.findings, "finding") if state.findings or not left else ""
    return join_texts(filter(None, (checked, left, action)))


def message_lines(problem: DifferingProblem) -> Iterator[tuple[str, str]]:
    """The messages of a problem: `-` before that of the earlier scan, `+` before that of the later one, if they differ.

    An expression whose evaluation failed is left out, unless the messages differ in it alone.
    """
    before, now = (without_expression(state.message) if state else "" for state in (problem.before, problem.now))
    if problem.before and problem.now and problem.before.message != problem.now.message:
        if before == now:
            before, now = problem.before.message, problem.now.message
        yield "-", before
        yield "+", now
    elif message := now or before:
        yield "", message


def rule_lines(difference: RuleDifference) -> list[str]:
    """The unified diff of a rule as YAML, without the lines that name files, and without what means the same (see `alike`)."""
    texts = difference.before, difference.now
    if texts[0] and texts[1]:
        texts = make_alike(texts[0], texts[1])
    before, now = map(_lines, texts)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False)))
    if max(len(before), len(now)) - same > _MOST_LINES:
        return [
            f"@@ too long to compare: {len(before):,} lines before, {len(now):,} lines now, equal up to line {same} @@"
        ]
    return [line.rstrip("\n") for line in difflib.unified_diff(before, now, lineterm="")][2:]


def _lines(document: JsonObject | None) -> list[str]:
    return yaml_of(document).splitlines() if document else []


def _sum(
    counts: Mapping[tuple[CauseKind, ProblemChange], int] | Mapping[tuple[CauseKind, FindingChange], int],
    wanted_change: StrEnum,
    kind: CauseKind | None,
) -> int:
    return sum(
        number
        for (cause, change), number in counts.items()
        if change == wanted_change and (kind is None or cause is kind)
    )


def _scope(scan: Scan, _: Method) -> str:
    limits = (*scope_of(scan), *(f"without {text}" for text in exclusions_of(scan.scope)))
    return "; ".join(limit for limit in limits if limit not in EVERYTHING) or "everything"


def _mode(_: Scan, method: Method) -> str:
    sources = (("files", bool(method.policy_files)), ("the cluster", not method.without_cluster_policies))
    policies = f"policies of {' and of '.join(name for name, used in sources if used) or 'nothing'}"
    return join_texts((policies, _network(method), _compat(method)))


def _network(method: Method) -> str:
    return f"network {join_texts(('public addresses', *method.network_to))}" if method.network else "no network"


def _compat(method: Method) -> str:
    return f"verdicts of Kyverno's {method.kyverno_compat}" if method.kyverno_compat else "verdicts of admission"


def _requester(scan: Scan, _: Method) -> str:
    user = scan.requester
    groups = f" of {join_texts(user.groups)}" if user.groups else ""
    return f"{user.username or 'the user that scanned'}{groups}"


_VALUES: Final[Mapping[str, Callable[[Scan, Method], str]]] = {
    "source": lambda scan, _: scan.cluster.source,
    "scope": _scope,
    "operation": lambda scan, _: scan.scope.operation,
    "requester": _requester,
    "mode": _mode,
}


def _options(scan: Scan, method: Method) -> dict[str, str]:
    return {
        "operation": scan.scope.operation,
        "requester": _requester(scan, method),
        "Kyverno": _compat(method),
        "network": _network(method),
    }


def cut_lines(lines: Iterable[str], most: int) -> tuple[list[str], int]:
    """The first lines, and how many are left out."""
    every = list(lines)
    return every[:most], max(len(every) - most, 0)


# The problems that a waiver covers in one of two scans only: the cause `waiver` of a difference.

WAIVED: Final = "waived"
NO_LONGER: Final = "no longer waived"


class WaiverRow(NamedTuple):
    """A problem that is waived in one scan: the change, its id, its policy, its workload, and the waiver with its last day."""

    change: str
    id: str
    policy: str
    workload: str
    waiver: str


def waiver_rows(changes: WaiverChanges) -> Iterator[WaiverRow]:
    """The problems that are no longer waived, then those that are waived since, each by policy and workload."""
    for change, problems in ((NO_LONGER, changes.no_longer), (WAIVED, changes.waived)):
        rows = (_row(change, number, problem) for number, problem in problems.items())
        yield from sorted(rows, key=lambda row: (row.policy, row.workload, row.id))


def _row(change: str, number: int, problem: WaivedProblem) -> WaiverRow:
    name = "/".join(filter(None, (problem.namespace, problem.workload_name)))
    workload = f"{problem.workload_kind} {name}"
    return WaiverRow(change, problem_id(max(number, 0)), problem.policy, workload, waiver_text(problem.waiver))


def counts_text(changes: WaiverChanges) -> str:
    """The numbers of problems that are no longer waived, and of those waived since."""
    numbers = (len(changes.no_longer), NO_LONGER), (len(changes.waived), WAIVED)
    return join_texts(f"{number:,} {change}" for number, change in numbers if number)


def changes_json(changes: WaiverChanges) -> dict[str, Json]:
    """The problems that are waived in one of the scans, as JSON: those waived since, and those no longer waived."""
    return {"waived": _list(changes, WAIVED), "noLongerWaived": _list(changes, NO_LONGER)}


def _list(changes: WaiverChanges, change: str) -> list[Json]:
    problems = changes.waived if change == WAIVED else changes.no_longer
    rows = [(_row(change, number, problem), problem) for number, problem in problems.items()]
    return [
        {
            "id": row.id,
            "policy": row.policy,
            "language": problem.language,
            "workload": {
                "kind": problem.workload_kind,
                "namespace": problem.namespace,
                "name": problem.workload_name,
            },
            "waiver": {
                "name": problem.waiver.name,
                "state": problem.waiver.state.value,
                "until": problem.waiver.until.isoformat(),
            },
        }
        for row, problem in sorted(rows, key=lambda pair: (pair[0].policy, pair[0].workload, pair[0].id))
    ]
