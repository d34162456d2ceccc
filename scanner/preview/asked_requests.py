"""Asks the API server about the requests of a preview, under the rules that it has, and compares its answers with those of Assay.

Source of truth: dry runs (`dryRun=All`) and the impersonation of users: all of admission runs, and nothing is stored. A server cannot be
asked about rules that it does not have, so its answers confirm one side of a preview, that before the change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from scanner.audit import redact
from scanner.errors import ListFailed
from scanner.model.json import JsonObject, dig
from scanner.model.resource import Kind, UserInfo
from scanner.parity.answers import Response, read_unrelated
from scanner.preview.requested import Requested
from scanner.preview.server_answers import FOREIGN, is_by_plugin, is_by_policy
from scanner.preview.verdict import AGREES, DIFFERS, NOT_ASKED, NOT_COMPARED, Decision, Effect

_MAY_NOT_IMPERSONATE: Final = "cannot impersonate"
_FORBIDDEN: Final = 403


class RequestWriter(Protocol):
    """The part of a cluster that sends dry-run writes. Without a `user`, the user of the credentials sends them."""

    def is_foreign(self, kind: Kind) -> bool:
        """Return whether an aggregated API server serves these objects, or may serve them: it may ignore dryRun."""
        ...

    def create(self, kind: Kind, body: JsonObject, user: UserInfo | None = None) -> Response:
        """The response to a dry-run create. Raises ListFailed without one."""
        ...

    def update(self, kind: Kind, body: JsonObject, user: UserInfo | None = None) -> Response:
        """The response to a dry-run update. Raises ListFailed without one."""
        ...

    def patch(self, kind: Kind, body: JsonObject, changes: JsonObject, user: UserInfo | None = None) -> Response:
        """The response to a dry-run merge patch of the object that `body` names. Raises ListFailed without one."""
        ...


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """A request that the API server was asked about, by a user. Without a `response`, `why_not` has the reason."""

    requested: Requested
    user: UserInfo
    response: Response | None
    why_not: str = ""

    @property
    def stored(self) -> JsonObject | None:
        """The object that the server would store, None if it refuses the request."""
        return self.response.body if self.response and self.response.body else None


@dataclass(frozen=True, slots=True)
class RequestAnswer:
    """The answer of the API server about a request under the rules that it has, compared with the decision of Assay by the same rules.

    `admitted` is None where the answer does not concern policies; `why` has the reason then, and the message otherwise, redacted.
    """

    compared: str
    admitted: bool | None
    user: str
    why: str = ""


class RequestAsker:
    """Asks about requests, each as its own user, or as the user of the credentials where that may not impersonate the other."""

    def __init__(self, writer: RequestWriter, own: UserInfo) -> None:
        """Send the requests with `writer`, whose credentials are those of the user `own`."""
        self._writer, self._own = writer, own
        self._not_impersonated: set[UserInfo] = set()
        self.counts: Counter[str] = Counter()
        self.reasons: dict[str, None] = {}

    def ask(self, requested: Requested, user: UserInfo) -> AskedRequest:
        """Send a request as a dry run."""
        if self._writer.is_foreign(requested.resource.kind):
            return AskedRequest(requested, user, None, FOREIGN)
        try:
            if user == self._own or user in self._not_impersonated:
                return AskedRequest(requested, self._own, self._send(requested, None))
            response = self._send(requested, user)
            if response.status == _FORBIDDEN and _MAY_NOT_IMPERSONATE in response.message:
                self._not_impersonated.add(user)
                return AskedRequest(requested, self._own, self._send(requested, None))
            return AskedRequest(requested, user, response)
        except ListFailed as error:
            return AskedRequest(requested, user, None, str(error))

    def _send(self, requested: Requested, user: UserInfo | None) -> Response:
        """The response to a create, or to a merge patch; to an update where the user may not patch, as some controllers."""
        resource, old = requested.resource, requested.old
        if old is None:
            return self._writer.create(resource.kind, resource.body, user)
        removes = dig(old.body, "metadata", "finalizers") and not dig(resource.body, "metadata", "finalizers")
        changes: JsonObject = {"metadata": {"finalizers": None}} if removes else {}
        response = self._writer.patch(resource.kind, resource.body, changes, user)
        unrelated = read_unrelated(response, "UPDATE", resource.kind.resource)
        if unrelated and unrelated.permission:
            return self._writer.update(resource.kind, resource.body, user)
        return response

    def compare(
        self, asked: AskedRequest, decide: Callable[[Requested, UserInfo], Iterable[Decision]]
    ) -> RequestAnswer:
        """Compare an answer with the decisions about the same request of the same user by the rules that the server has."""
        answer = _compare(asked, decide)
        self.counts[answer.compared] += 1
        if answer.compared == NOT_ASKED:
            self.reasons[answer.why] = None
        return answer


def _compare(asked: AskedRequest, decide: Callable[[Requested, UserInfo], Iterable[Decision]]) -> RequestAnswer:
    requested, response, user = asked.requested, asked.response, asked.user.username
    if response is None:
        return RequestAnswer(NOT_ASKED, None, user, asked.why_not)
    decisions = tuple(decide(requested, asked.user))
    refusals = [each for each in decisions if each.effect is Effect.REFUSES]
    is_known = is_by_policy(response) or is_by_plugin(response, refusals)
    resource = requested.resource
    unrelated = None if is_known else read_unrelated(response, requested.operation, resource.kind.resource)
    text = redact.redact_answer(response.message, resource)
    if unrelated and unrelated.permission:
        return RequestAnswer(NOT_ASKED, None, user, f"{user or 'the user'}: {unrelated.reason}")
    if unrelated:
        return RequestAnswer(NOT_COMPARED, None, user, text or unrelated.reason)
    admitted = not is_known
    if admitted is not bool(refusals):
        return RequestAnswer(AGREES, admitted, user, text)
    # Where something is undecided, the server may refuse: it knows what Assay does not.
    undecided = is_known and any(each.effect is Effect.UNDECIDED for each in decisions)
    expected = text or "; ".join(f"{each.policy} was expected to refuse it: {each.message}" for each in refusals)
    return RequestAnswer(NOT_COMPARED if undecided else DIFFERS, admitted, user, expected)
