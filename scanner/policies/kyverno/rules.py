"""The objects that decide together with Kyverno's policies: the exceptions that name them, and the global context entries.

An entry counts for every policy, because an expression can compute the name of the entry that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scanner.model.rule import RuleType
from scanner.policies.bound_language import RuleDocument
from scanner.policies.documents import Supporting
from scanner.policies.kyverno.exceptions import read_exception
from scanner.policies.kyverno.spec import KyvernoPolicy


def rule_documents(
    policies: Iterable[KyvernoPolicy], exceptions: Iterable[Supporting], entries: Iterable[Supporting]
) -> Iterator[RuleDocument]:
    """The manifests of the exceptions and entries that the policies depend on; none without policies."""
    named = {(policy.name, policy.kind) for policy in policies}
    for exception in exceptions:
        if not named.isdisjoint(read_exception(exception.body).references):
            yield RuleDocument(RuleType.EXCEPTION, exception.name, exception.body)
    for entry in entries if named else ():
        yield RuleDocument(RuleType.GLOBAL_CONTEXT, entry.name, entry.body)
