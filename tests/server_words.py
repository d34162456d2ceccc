"""The answers of Assay about one policy on a server of a Kubernetes release, in the words of the server.

Servers get two questions: whether the policy may be created, and whether an object may be created once the policy
is stored.
"""

from __future__ import annotations

import re

from scanner.api import Auditor
from scanner.cel import AuthorizerAnswer
from scanner.cluster.definitions import builtin_kinds
from scanner.errors import InvalidManifest
from scanner.model.json import JsonObject
from scanner.model.outcome import Errored, Violated
from scanner.model.release import minor_of
from scanner.model.resource import Kind, UserInfo
from scanner.policies.validating.language import read_policy

ACCEPTED = "accepted"
ALLOWED = "allowed"
ADMINISTRATOR = UserInfo("admin", "admin", ("system:masters", "system:authenticated"))
_INVALID = re.compile(
    r"(?:refused: )?ValidatingAdmissionPolicy\.admissionregistration\.k8s\.io \"[^\"]*\" is invalid: "
)
_DENIED = re.compile(
    r".*: ValidatingAdmissionPolicy '[^']*'(?: with binding '[^']*')? denied request: (?:failed to configure policy: )?",
    re.DOTALL,
)


def until_syntax_error(text: str) -> str:
    """Return a text up to the words of a syntax error, which are Assay's own and follow the server's place; else the whole text."""
    return "".join(text.partition("Syntax error: ")[:2])


class AllowAll:
    """The authorizer of an administrator."""

    def decide(self, question: object) -> AuthorizerAnswer:
        """Allow everything."""
        del question
        return AuthorizerAnswer(allowed=True)


def about_creation(policy: JsonObject, version: str) -> str:
    """`accepted`, or why the policy is refused."""
    minor = minor_of(version)
    assert minor is not None
    try:
        read_policy(policy, source="document", rules=minor)
    except InvalidManifest as invalid:
        return str(invalid)
    return ACCEPTED


def about_object(
    policy: JsonObject,
    binding: JsonObject,
    document: JsonObject,
    version: str,
    kinds: tuple[Kind, ...] = (),
    namespaces: tuple[JsonObject, ...] = (),
) -> str:
    """`allowed`, or the first reason why the stored policy denies the creation of an object by an administrator."""
    auditor = Auditor(
        policies=[policy],
        bindings=[binding],
        kinds=(*builtin_kinds(), *kinds),
        namespaces=namespaces,
        user=ADMINISTRATOR,
        authorizer=AllowAll(),
        kubernetes_version=version,
    )
    invocation_results = auditor.evaluate(document, operation="CREATE")
    outcomes = [
        check_result.outcome
        for invocation_result in invocation_results
        for check_result in invocation_result.check_results
    ]
    denied = [
        outcome
        for outcome in outcomes
        if isinstance(outcome, Violated) or (isinstance(outcome, Errored) and outcome.would_deny)
    ]
    return denied[0].message if denied else ALLOWED


def refusal_of_policy(message: str) -> str:
    """The reasons for which a server refuses a policy, without its name."""
    return _INVALID.sub("", message, count=1)


def refusal_of_object(message: str) -> str:
    """The reasons for which a server denies an object, without the names of the policy and its binding."""
    return _DENIED.sub("", message, count=1)
