"""Asks the API server for its own decision about each object, with dry runs that change nothing, and compares.

Source of truth: server-side apply with `dryRun=All`: all of admission runs, and nothing is stored. A server names one policy in a
refusal, so verdicts are compared, and not messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Protocol

from scanner.audit import redact
from scanner.errors import ListFailed
from scanner.model.json import JsonObject
from scanner.model.resource import Kind, Resource
from scanner.parity.answers import Response, is_unsendable, parse_warning, read_denial, read_unrelated
from scanner.parity.pod_security import find_refusal, is_warning
from scanner.preview.new_objects import NewObject
from scanner.preview.plugins import BUILT_IN
from scanner.preview.verdict import (
    AGREES,
    DIFFERS,
    NOT_COMPARED,
    CheckedObject,
    Decision,
    Effect,
    ServerAnswer,
    Verdict,
    find_verdict,
)

FOREIGN: Final = "an aggregated API server serves the kind, or may, and it may ignore dryRun"
_BY_POLICIES: Final = ("policy '", 'policy "')
"""The beginnings of a refusal by a mutating policy."""


class DryRunApplier(Protocol):
    """The part of a cluster that sends dry runs of server-side apply."""

    def is_foreign(self, kind: Kind) -> bool:
        """Return whether an aggregated API server serves these objects, or may serve them: it may ignore dryRun."""
        ...

    def apply(self, kind: Kind, body: JsonObject) -> Response:
        """The response to a dry run of a server-side apply. Raises ListFailed without one."""
        ...

    def create(self, kind: Kind, body: JsonObject) -> Response:
        """The response to a dry-run create. Raises ListFailed without one."""
        ...


def ask_server(
    applier: DryRunApplier, new: NewObject, checked: CheckedObject, *, is_other: bool = False
) -> CheckedObject:
    """The answer about an object with that of the API server. Where the server cannot be asked, that is undecided.

    If the request of the server `is_other`, a difference is not compared: another manifest counts for the verdict, and the server does
    not have it, or `kubectl apply` would remove fields that a server-side apply leaves.
    """
    resource = new.resource
    if applier.is_foreign(resource.kind):
        return _without_answer(checked, FOREIGN)
    try:
        # An object without a name cannot be applied, only created.
        send = applier.create if new.generates_name else applier.apply
        response = send(resource.kind, new.sent.body)
    except ListFailed as error:
        return _without_answer(checked, str(error))
    known = is_by_policy(response) or is_by_plugin(response, checked.select(Effect.REFUSES))
    unrelated = None if known else read_unrelated(response, "CREATE", resource.kind.resource)
    if unrelated and unrelated.permission:
        return _without_answer(checked, unrelated.reason)
    text = redact.redact_answer(response.message, resource)
    if unrelated:
        return replace(checked, server=ServerAnswer(None, NOT_COMPARED, text or unrelated.reason))
    verdict = Verdict.REFUSED if known else _read_verdict(response)
    compared = NOT_COMPARED if is_other and _compare(checked, verdict) == DIFFERS else _compare(checked, verdict)
    return replace(checked, server=ServerAnswer(verdict, compared, text or _show_warnings(response, resource)))


def is_by_policy(response: Response) -> bool:
    """Return whether a policy or Pod Security refuses the object."""
    if read_denial(response) or find_refusal(response):
        return True
    return any(mark in response.message for mark in _BY_POLICIES) and " denied request: " in response.message


def is_by_plugin(response: Response, refusals: Iterable[Decision]) -> bool:
    """Return whether the server refuses the object with the message of a plug-in that Assay evaluates."""
    return any(each.policy in BUILT_IN and each.message in response.message for each in refusals)


def _read_verdict(response: Response) -> Verdict:
    """The verdict of a server that admits; warnings of other origins, such as deprecated versions, do not count."""
    warns = any(parse_warning(warning) or is_warning(warning) for warning in response.warnings)
    return Verdict.WARNED if warns else Verdict.ADMITTED


def _compare(checked: CheckedObject, verdict: Verdict) -> str:
    """Compare the verdicts about the object itself: a dry run does not show what becomes of its pods.

    Where something is undecided, the server may be stricter; it knows what Assay does not.
    """
    known = find_verdict(each for each in checked.decisions if each.effect in (Effect.REFUSES, Effect.WARNS))
    if known is verdict:
        return AGREES
    if known is Verdict.WARNED and verdict is Verdict.ADMITTED and all(map(_is_lost, checked.select(Effect.WARNS))):
        return NOT_COMPARED
    if checked.has_undecided and known is not Verdict.REFUSED and verdict in (Verdict.REFUSED, Verdict.WARNED):
        return NOT_COMPARED
    return DIFFERS


def _is_lost(decision: Decision) -> bool:
    """Return whether the server drops the warning, because no header can hold it."""
    return is_unsendable(decision.message)


def _without_answer(checked: CheckedObject, why: str) -> CheckedObject:
    decision = Decision(Effect.UNDECIDED, f"the API server could not be asked: {why}")
    return replace(checked, decisions=(*checked.decisions, decision), server=ServerAnswer(None, NOT_COMPARED, why))


def _show_warnings(response: Response, resource: Resource) -> str:
    return "; ".join(redact.redact_answer(warning, resource) for warning in response.warnings)
