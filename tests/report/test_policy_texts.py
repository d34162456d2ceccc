"""The texts of bindings and params, and the history, on the page of a policy."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

from scanner.model.json import JsonObject
from scanner.model.rule import RuleType
from scanner.model.scans.register import DayCounts
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.document.method import RuleSection
from scanner.report.html.pages import texts_of
from tests.report.in_memory import ScanInMemory

from .pages import main_of
from .records import small_record

BINDING: JsonObject = {"kind": "ValidatingAdmissionPolicyBinding", "spec": {"validationActions": ["Deny"]}}


def bound(record: ScanInMemory) -> ScanInMemory:
    """The record with a text for each binding."""
    policies = tuple(
        replace(used, bindings=tuple(replace(each, manifest=BINDING) for each in used.bindings))
        for used in record.policies
    )
    return replace(record, policies=policies)


def test_bindings_and_params_have_their_texts() -> None:
    """Of the params, those of the kind and the names that the bindings of the policy used."""
    document = document_of(bound(small_record()))
    texts = {policy.name: texts_of(policy, document.rules) for policy in document.policies}

    assert [("Binding", "max-replicas-shop"), ("Param", "shop/limits")] == [
        (text.what, text.name) for text in texts["max-replicas"].shown
    ]
    assert "maxReplicas" in texts["max-replicas"].shown[1].text


def test_texts_without_room_are_counted() -> None:
    """A page has room for some texts alone."""
    document = document_of(bound(small_record()))
    policy = next(policy for policy in document.policies if policy.name == "max-replicas")
    large = RuleSection(RuleType.PARAM, "ConfigMap shop/limits", "", masked=False, document={"data": "&" * 6_000})
    texts = texts_of(policy, [large] * 9)

    assert (10, True) == (texts.total, 1 < len(texts.shown) < texts.total)


def test_a_policy_has_a_history(tmp_path: Path) -> None:
    """Its failing checks on each recorded day, as a line and as a table."""
    record = small_record()
    days = tuple(DayCounts(date(2026, 3, day), number, 0, 0) for day, number in ((1, 41), (2, 37)))
    key = record.policies[0].policy.key
    FORMATS["html"].render(document_of(replace(record, days={key: days})), tmp_path / "report")
    page = main_of(tmp_path / "report" / "policies" / f"{key[1]}.html")

    assert "At the end of each day with a complete scan: 41 on 2026-03-01, 37 on 2026-03-02" in page
