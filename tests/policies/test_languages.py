"""The table of policy languages: every document and every policy belongs to at most one language."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scanner.api import Auditor
from scanner.errors import UsageError
from scanner.model.policy import Policy
from scanner.model.release import NEWEST
from scanner.policies.bound_language import Supporting
from scanner.policies.kyverno.family import KyvernoLanguage, KyvernoOptions
from scanner.policies.language import LANGUAGES, compile_policy, with_options
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import KINDS, binding, pod, policy
from tests.policies.kyverno.made import exception
from tests.policies.kyverno.made import policy as kyverno_policy
from tests.scan import test_drift as mutating
from tests.scan.fakes import FakeCluster, scanned

DOCUMENTS: tuple[Any, ...] = (
    policy(),
    binding(),
    mutating.policy("m", "Object{}"),
    mutating.binding("m"),
    kyverno_policy("true"),
    exception(),
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_each_document_has_one_content(document: Any) -> None:
    """The order of the table decides nothing: languages of a family that read the same object read the same of it."""
    read = [
        language.read(document, source="cluster", namespace="default", rules=NEWEST)
        for language in LANGUAGES
        if language.reads(document)
    ]
    assert [read[0]] * len(read) == read


def test_no_language_reads_an_object() -> None:
    """Objects are evaluated, or are params."""
    assert not any(language.reads(pod()) for language in LANGUAGES)


def test_no_two_languages_have_a_name_in_common() -> None:
    """History, counts and pages identify a policy by language and name."""
    names = [name for language in LANGUAGES for name in language.names]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_a_policy_bears_a_name_of_its_language(document: Any) -> None:
    """The name in a policy or binding identifies its language, and is that of no other one."""
    for language in LANGUAGES:
        if language.reads(document):
            content = language.read(document, source="cluster", namespace="default", rules=NEWEST).content
            assert isinstance(content, Supporting) or content.language in language.names


def test_a_policy_is_compiled_by_its_own_language() -> None:
    """Kyverno's libraries are declared for Kyverno's policies alone."""
    reads = "resource.Get('v1', 'configmaps', 'team', 'a') == {}"
    faults = [_fault(document) for document in (kyverno_policy(reads), policy("p", reads))]
    assert [True, False] == [not fault for fault in faults]


def _fault(document: Any) -> str:
    language = next(language for language in LANGUAGES if language.reads(document))
    read = language.read(document, source="cluster", namespace="default", rules=NEWEST).content
    assert isinstance(read, Policy)
    return next(expression.fault for _, expression in compile_policy(read, NEWEST).expressions())


def test_options_reach_every_language_of_their_family_and_no_other() -> None:
    """The other languages stay unchanged and in their places."""
    kyverno = KyvernoOptions(compat="controller")
    expected = [
        replace(language, options=kyverno) if isinstance(language, KyvernoLanguage) else language
        for language in LANGUAGES
    ]
    assert expected == [*with_options(kyverno)]


def test_a_policy_that_needs_no_binding_cannot_be_assumed_bound() -> None:
    """The message states that the policy is in force already."""
    options = Options(manifests=(Manifest("p.yaml", kyverno_policy("true")),), assume_bound=(("checks", "Deny"),))
    with pytest.raises(UsageError, match="checks: a ValidatingPolicy needs no binding, and is in force already"):
        scanned(FakeCluster(), options)


def test_an_auditor_takes_no_document_of_no_language() -> None:
    """A Pod among the policies is an error."""
    with pytest.raises(UsageError, match="Pod in version v1 is no policy and no binding"):
        Auditor(policies=[pod()], bindings=[], kinds=KINDS)
