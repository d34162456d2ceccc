"""A preview as a report: the words of its differences, and the sentence with the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from scanner.model.outcome import Finding
from scanner.model.population import Workload
from scanner.preview.differences import ContestedField, Difference, PolicyDifference
from scanner.preview.rule_change import ABSENT, Cause, ChangedField
from scanner.preview.rule_preview import PreviewedObject, PreviewResult
from scanner.preview.verdict import AGREES, API_SERVER, DIFFERS, NOT_ASKED, NOT_COMPARED, Decision, Effect
from scanner.preview.workload_risks import Action, Certainty, Risk, WorkloadRisks
from scanner.report.text.evidence import describe_value
from scanner.report.text.numbers import join_texts, plural

DIFFERENCE_TEXTS: Final[Mapping[Difference, str]] = {
    Difference.NEWLY_DENIED: "newly denied",
    Difference.PODS_NEWLY_DENIED: "its pods newly denied",
    Difference.UNDECIDED: "undecided",
    Difference.NEWLY_WARNED: "newly warned of",
    Difference.NEWLY_AUDITED: "newly in the audit log",
    Difference.NEWLY_FAILED: "evaluation newly fails, and is ignored",
    Difference.ALREADY_DENIED: "denied by one more policy",
    Difference.MUTATED_OTHERWISE: "changed otherwise by mutating policies",
    Difference.OTHER_MESSAGE: "another message",
    Difference.NEWLY_ADMITTED: "newly admitted",
    Difference.PODS_NEWLY_ADMITTED: "its pods newly admitted",
    Difference.NO_LONGER_WARNED: "no longer warned of",
    Difference.NO_LONGER_AUDITED: "no longer in the audit log",
    Difference.NO_LONGER_FAILED: "evaluation no longer fails",
    Difference.STILL_DENIED: "denied by one policy less",
}
NOTHING_STORED: Final = "Nothing was stored: a preview enters no history."


@dataclass(frozen=True, slots=True)
class PreviewDocument:
    """A preview, and the sentence about all of it. In Markdown, its workloads may be listed `by_owner`."""

    result: PreviewResult
    by_owner: bool = False

    @property
    def counts(self) -> Counter[Difference]:
        """The number of objects by their worst difference."""
        return Counter(each.difference.worst for each in self.result.objects)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences about all of it, the worst first."""
        every = (self.starting_sentence, self.restart_sentence, self.verdict_sentence, self.server_sentence)
        return tuple(filter(None, every))

    @property
    def starting_sentence(self) -> str:
        """The workloads that could not start again, with numbers; empty for none."""
        teams = len({each.owner for each in self.result.workloads if each.cannot_start and each.owner})
        return describe_starting(self.result.workloads, f" of {plural(teams, 'team')}" if teams else "")

    @property
    def restart_sentence(self) -> str:
        """The workloads whose pods the next apply would restart, with numbers; empty for none."""
        restarted = [each for each in self.result.objects if each.restarts_pods]
        if not restarted:
            return ""
        pods = sum(each.replicas or 0 for each in restarted)
        return f"The next apply of {plural(len(restarted), 'workload')} would restart {'its' if len(restarted) == 1 else 'their'} pods: {plural(pods, 'replica')}."

    @property
    def server_sentence(self) -> str:
        """The answers of the API server, with numbers; empty if it was not to be asked."""
        asked = self.result.asked
        if asked is None:
            return ""
        parts = [f"{asked[each]:,} {text}" for each, text in ASKED_TEXTS.items() if asked.get(each)]
        about = f" about {plural(sum(asked.values()), 'request')}: {', '.join(parts)}" if parts else " nothing"
        return (
            f"The API server was asked{about}. It decides by the rules before the change: it does not have the others."
        )

    @property
    def verdict_sentence(self) -> str:
        """The verdict about all objects, with numbers."""
        counts, result = self.counts, self.result
        parts = [f"{counts[each]:,} {text}" for each, text in DIFFERENCE_TEXTS.items() if counts[each]]
        denied = [each for each in result.objects if each.difference.worst in DENIED]
        of_workloads = f" of {plural(len({each.workload for each in denied}), 'workload')}" if denied else ""
        namespaces = len({each.object.namespace for each in denied})
        where = f" in {plural(namespaces, 'namespace')}" if denied else ""
        undecided = sum(not all(risk.is_refused for risk in each.risks) for each in result.workloads)
        missing = ((len(result.gaps), "gap"), (undecided, "undecided workload"))
        parts_missing = join_texts(plural(number, noun) for number, noun in missing if number)
        unknown = f" Incomplete: {parts_missing}." if parts_missing else ""
        if not parts:
            answer = "Nothing would change"
            return f"{answer} for the {plural(result.examined, 'object')} that the changed policies can match.{unknown}"
        newly = f" Newly denied: {plural(len(denied), 'object')}{of_workloads}{where}." if denied else ""
        return f"{plural(result.examined, 'object')} compared: {', '.join(parts)}.{newly}{unknown}"


DENIED: Final = (Difference.NEWLY_DENIED, Difference.PODS_NEWLY_DENIED)


@dataclass(frozen=True, slots=True)
class WorkloadGroup:
    """The objects of one workload with the same policies and differences, for one line of a report."""

    workload: Workload
    difference: Difference
    objects: tuple[PreviewedObject, ...]

    @property
    def first(self) -> PreviewedObject:
        """The first of the objects, which stands for all."""
        return self.objects[0]


def group_objects(result: PreviewResult) -> Iterator[WorkloadGroup]:
    """The objects by workload, in their order: those of one workload with the same differences are one group."""
    keyed = groupby(result.objects, key=_group_key)
    for _, objects in keyed:
        same = tuple(objects)
        yield WorkloadGroup(same[0].workload, same[0].difference.worst, same)


def _group_key(each: PreviewedObject) -> object:
    return (
        each.workload,
        each.object.kind,
        each.difference.denied_by,
        [(one.policy, one.difference) for one in each.difference.policies],
    )


def list_contested(result: PreviewResult) -> Iterator[tuple[str, tuple[PreviewedObject, ...]]]:
    """A sentence for each field that two policies set in turn, and the objects."""
    by_field: dict[ContestedField, list[PreviewedObject]] = {}
    for each in result.objects:
        for contested in each.difference.contested:
            by_field.setdefault(contested, []).append(each)
    for contested, objects in sorted(by_field.items(), key=lambda item: item[0]):
        yield describe_contested(contested), tuple(objects)


def describe_contested(field: ContestedField) -> str:
    """`/metadata/labels/team is set in turn: "red" by add-red, "blue" by add-blue`."""
    values = f"{field.value_of_one} by {field.one[1]}, {field.value_of_other} by {field.other[1]}"
    return f"{field.path} is set in turn: {values}"


def name_workload(workload: Workload) -> str:
    """`Deployment payments/web`."""
    name = f"{workload.namespace}/{workload.name}" if workload.namespace else workload.name
    return f"{workload.kind} {name}"


def name_object(each: PreviewedObject) -> str:
    """`Pod payments/web-1`."""
    name = f"{each.object.namespace}/{each.object.name}" if each.object.namespace else each.object.name
    return f"{each.object.kind.kind} {name}"


def name_policy(each: PolicyDifference) -> str:
    """The policy with its bindings, unless one has its name, and their params."""
    findings = each.after or each.before
    bindings = dict.fromkeys(finding.binding for finding in findings if finding.binding)
    params = dict.fromkeys(name for finding in findings if (name := _name_param(finding)))
    is_other = tuple(bindings) not in ((), (each.policy[1],))
    of_bindings = f" (binding {join_texts(tuple(bindings))})" if is_other else ""
    return f"{each.policy[1]}{of_bindings}{f' with {join_texts(tuple(params))}' if params else ''}"


def _name_param(finding: Finding) -> str:
    return "/".join(filter(None, (finding.param_namespace, finding.param_name)))


def list_values(findings: Sequence[Finding]) -> Iterator[str]:
    """The fields that decided, with their values, such as `spec.replicas: 5`."""
    seen: dict[str, None] = {}
    for finding in findings:
        for reason in finding.evidence.reasons:
            if reason.path and not reason.erred:
                seen[describe_value(reason)] = None
    yield from seen


def describe_cause(cause: Cause) -> str:
    """The part of the change in one line, without its fields."""
    line = next((field.line for field in cause.fields if field.line), 0)
    source = f"{cause.place.file}:{line}" if cause.place and line else cause.source
    return f"{source}: {cause.what}"


def describe_field(field: ChangedField) -> str:
    """`spec.failurePolicy: Ignore → Fail`; an object is only added or removed."""
    if field.before == ABSENT and field.after.startswith("{"):
        return f"{field.path}: added"
    if field.after == ABSENT and field.before.startswith("{"):
        return f"{field.path}: removed"
    return f"{field.path}: {field.before} → {field.after}"


# Workloads and what they could no longer do.

ACTION_TEXTS: Final[Mapping[Action, str]] = {
    Action.RECREATE: "cannot start again",
    Action.FINALIZE: "cannot be deleted",
    Action.UPDATE: "cannot be updated by its controller",
    Action.EDIT: "cannot be edited",
}
UNDECIDED_TEXTS: Final[Mapping[Action, str]] = {
    Action.RECREATE: "whether it could start again is undecided",
    Action.FINALIZE: "whether it could be deleted is undecided",
    Action.UPDATE: "whether its controller could update it is undecided",
    Action.EDIT: "whether it could be edited is undecided",
}
ASKED_TEXTS: Final[Mapping[str, str]] = {
    AGREES: "as predicted",
    DIFFERS: "decided OTHERWISE",
    NOT_COMPARED: "not comparable",
    NOT_ASKED: "without an answer",
}
CERTAINTY_TEXTS: Final[Mapping[Certainty, str]] = {
    Certainty.OBSERVED: "observed",
    Certainty.ASKED: "asked",
    Certainty.TEMPLATE: "template",
    Certainty.STORED: "as stored",
}
NO_CONTROLLER: Final = "no controller: nothing recreates it"


def rank_workload(each: WorkloadRisks) -> tuple[bool, int]:
    """What would be refused stands before what is undecided, and workloads with one worst action stand together."""
    return not each.risks[0].is_refused, _ACTIONS.index(each.risks[0].action)


_ACTIONS: Final = tuple(ACTION_TEXTS)


def describe_starting(workloads: Iterable[WorkloadRisks], of_teams: str = "") -> str:
    """The sentence about those that could not start again, with numbers; empty for none."""
    broken = [each for each in workloads if each.cannot_start]
    if not broken:
        return ""
    running = sum(each.running > 0 for each in broken)
    today = f"{running:,} of them {'runs' if running == 1 else 'run'} today" if running else "none of them runs today"
    if len(broken) == 1:
        today = "it runs today" if running else "it does not run today"
    return f"{plural(len(broken), 'workload')}{of_teams} could not start again; {today}."


def describe_action(risk: Risk) -> str:
    """`cannot start again`, or that it is undecided."""
    return (ACTION_TEXTS if risk.is_refused else UNDECIDED_TEXTS)[risk.action]


def describe_request(each: WorkloadRisks, risk: Risk) -> str:
    """`template, requested by USER`; another object than the workload is named."""
    is_other = (risk.object.kind.kind, risk.object.name) != (each.workload.kind, each.workload.name)
    of_object = f" {risk.object.kind.kind} {risk.object.name}" if is_other else ""
    return f"{CERTAINTY_TEXTS[risk.certainty]}{of_object}, requested by {risk.user or 'the user'}"


def describe_answer(risk: Risk) -> str:
    """`the API server admits it today, as predicted`; empty if it was not to be asked."""
    server = risk.server
    if server is None:
        return ""
    if server.admitted is None:
        text = "the API server was not asked" if server.compared == NOT_ASKED else "the API server refuses it today"
    else:
        text = f"the API server {'admits' if server.admitted else 'refuses'} it today"
    user = f" from {server.user}" if server.user != risk.user else ""
    why = "" if server.admitted and server.compared == AGREES else server.why
    return f"{text}{user}, {_COMPARED_TEXTS[server.compared]}{f': {why}' if why else ''}"


_COMPARED_TEXTS: Final[Mapping[str, str]] = {
    AGREES: "as predicted",
    DIFFERS: "OTHERWISE than predicted",
    NOT_COMPARED: "which is not comparable",
    NOT_ASKED: "so the prediction is not confirmed",
}


def describe_scale(each: WorkloadRisks) -> str:
    """`2 of 3 replicas run`; empty without a number."""
    if each.replicas == each.running == 0:
        pods = "scaled to 0 replicas"
    elif each.replicas is not None:
        pods = f"{each.running:,} of {plural(each.replicas, 'replica')} run"
    else:
        pods = f"{plural(each.running, 'pod')} running" if each.running else ""
    alone = "" if each.has_controller else NO_CONTROLLER
    return join_texts(part for part in (pods, alone) if part)


def list_decisions(each: WorkloadRisks) -> tuple[Decision, ...]:
    """The decisions about a workload, each message of a policy once."""
    every = (decision for risk in each.risks for decision in risk.decisions)
    return tuple({(one.policy, one.binding, one.message): one for one in every}.values())


def name_rule(decision: Decision) -> str:
    """The policy with its param and a binding of another name, or what else decides; empty for what Assay leaves undecided."""
    if decision.policy == API_SERVER and decision.effect is Effect.UNDECIDED:
        return ""
    binding = f" (binding {decision.binding})" if decision.binding not in ("", decision.policy) else ""
    return f"{decision.policy}{binding}{f' with {decision.param}' if decision.param else ''}"
