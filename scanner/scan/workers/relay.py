"""Sends authorizer checks and schema requests of workers to the parent, which alone has the connections to the cluster.

A worker sends a request to its parent, which sends it to the cluster; each request is sent once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from scanner.cel import AuthorizerAnswer, Decider, Question
from scanner.errors import AssayError, AuthorizerFailed
from scanner.model.resource import Kind
from scanner.mutate.schema import Conversion, Schema, Schemas

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Reply: TypeAlias = AuthorizerAnswer | Schema | AssayError | None


class WorkerRequest(Struct, frozen=True):
    """The request of a worker: an authorizer check, or the schema of a kind."""

    what: Question | Kind


class Relay:
    """Answers authorizer checks and schema requests in every process. Satisfies `scanner.cel.Decider` and `Schemas`.

    An answer is kept, so that a request is sent once.
    """

    def __init__(self, schemas: Callable[[], Schemas]) -> None:
        """Use these schemas while there is no parent; they are created on first use."""
        self._schemas = cache(schemas)
        self._decider: Decider | None = None
        self._parent: Connection | None = None
        self._answers: dict[Question, AuthorizerAnswer] = {}
        self._schemas_by_kind: dict[Kind, Schema | None] = {}

    def use_decider(self, decider: Decider) -> Decider:
        """Send authorizer checks to this decider, in the process without a parent. Returns the relay."""
        self._decider = decider
        return self

    def send_to(self, parent: Connection) -> None:
        """Send requests to the parent from now on, as a worker does."""
        self._parent = parent

    def decide(self, question: Question) -> AuthorizerAnswer:
        """The authorizer's answer to a question. Raises AuthorizerFailed."""
        if question not in self._answers:
            self._answers[question] = self._decide(question)
        return self._answers[question]

    def schema(self, kind: Kind) -> Schema | None:
        """The schema of a kind, or None if the cluster has none. Raises SchemaUnknown."""
        if kind not in self._schemas_by_kind:
            self._schemas_by_kind[kind] = self._read_schema(kind)
        return self._schemas_by_kind[kind]

    def conversion(self, kind: Kind) -> Conversion:
        """See Schemas. Only the process without a parent asks, when it plans the lists."""
        return self._schemas().conversion(kind)

    def reply(self, request: WorkerRequest) -> Reply:
        """The reply to the request of a worker: an answer, a schema or None; an error that the worker raises."""
        try:
            return self.schema(request.what) if isinstance(request.what, Kind) else self.decide(request.what)
        except AssayError as error:
            return error

    def _decide(self, question: Question) -> AuthorizerAnswer:
        answer = self._ask_parent(question) if self._parent else self._decider and self._decider.decide(question)
        if not isinstance(answer, AuthorizerAnswer):
            raise AuthorizerFailed("the authorizer was not asked")
        return answer

    def _read_schema(self, kind: Kind) -> Schema | None:
        schema = self._ask_parent(kind) if self._parent else self._schemas().schema(kind)
        return schema if isinstance(schema, Schema) else None

    def _ask_parent(self, what: Question | Kind) -> Reply:
        if self._parent is None:
            return None
        self._parent.send(WorkerRequest(what))
        reply: Reply = self._parent.recv()
        if isinstance(reply, AssayError):
            raise reply
        return reply
