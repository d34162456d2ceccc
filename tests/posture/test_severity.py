"""The severity of policies, and the texts that describe them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.json import JsonObject
from scanner.model.policy import VALIDATING, Policy
from scanner.posture.history.rule_digests import description_digest, policy_set_digest
from scanner.posture.severity import Description, DescriptionOverride, Severity, describe
from scanner.posture.triage import BelowSeverity

OURS = "assay.dev/"
KYVERNOS = "policies.kyverno.io/"


def policy(**annotations: str) -> Policy:
    """A policy `limits`; the underscore in a name stands for the rest of its prefix: `ours_title`, `kyvernos_title`."""
    prefixes = {"ours": OURS, "kyvernos": KYVERNOS}
    written: JsonObject = {
        f"{prefixes[name.partition('_')[0]]}{name.partition('_')[2]}": text for name, text in annotations.items()
    }
    manifest: JsonObject = {"metadata": {"name": "limits", "annotations": written}}
    return Policy(VALIDATING, "limits", None, None, (), (), (), (), "Fail", manifest, "spec of limits")


def test_a_policy_without_annotations_is_medium() -> None:
    """Its title is its name."""
    assert Description("limits", Severity.MEDIUM) == describe(policy())


def test_annotations_of_kyverno_describe_a_policy() -> None:
    """Title, severity, category and description are those of its policy library."""
    texts = {"kyvernos_title": "Limits", "kyvernos_severity": "high", "kyvernos_category": "Cost"}
    expected = Description("Limits", Severity.HIGH, "Cost", "Sets limits.")

    assert expected == describe(policy(**texts, kyvernos_description="Sets limits."))


def test_our_annotations_come_first() -> None:
    """A part that ours do not name is that of Kyverno's."""
    own = {"ours_severity": "low", "ours_remediation": "Set limits.", "ours_docs": "https://example.com/limits"}
    described = describe(policy(kyvernos_severity="critical", kyvernos_category="Cost", **own))

    assert (Severity.LOW, "Cost", "Set limits.", "https://example.com/limits") == (
        described.severity,
        described.category,
        described.remediation,
        described.docs,
    )


def test_kyverno_has_no_remediation() -> None:
    """Only the annotations that Kyverno's library has are read of its prefix."""
    assert "" == describe(policy(kyvernos_remediation="x")).remediation


def test_a_configuration_comes_before_annotations() -> None:
    """The first override that applies counts, and leaves alone what it does not name."""
    overrides = (
        DescriptionOverride("other-*", severity=Severity.INFO),
        DescriptionOverride("lim*", language="ValidatingPolicy", severity=Severity.INFO),
        DescriptionOverride("lim*", severity=Severity.CRITICAL, category=""),
        DescriptionOverride("limits", severity=Severity.LOW, title="never"),
    )
    described = describe(policy(ours_severity="low", ours_title="Limits", ours_category="Cost"), overrides)

    assert Description("Limits", Severity.CRITICAL) == described


def test_an_unknown_severity_is_medium_and_named() -> None:
    """A typing error must not look like a severity that its author chose."""
    described = describe(policy(ours_severity="Urgent", kyvernos_severity="low"))

    assert (Severity.MEDIUM, "urgent") == (described.severity, described.unknown_severity)


def test_an_override_corrects_an_unknown_severity() -> None:
    """Then nothing is left to be named."""
    override = DescriptionOverride("limits", severity=Severity.HIGH)

    assert "" == describe(policy(ours_severity="Urgent"), (override,)).unknown_severity


CHECKS = {
    "ours_severity": "low",
    "ours_remediation": "Read the message.",
    "ours_severity.a": "Critical",
    "ours_severity.b": "urgent",
}


def test_a_check_has_its_own_severity_and_remediation_or_those_of_the_policy() -> None:
    """Annotations name the check after a dot; a text that is no severity leaves that of the policy."""
    described = describe(policy(**CHECKS, **{"ours_remediation.b": "Set b."}))

    assert {
        "a": (Severity.CRITICAL, "Read the message."),
        "b": (Severity.LOW, "Set b."),
        "c": (Severity.LOW, "Read the message."),
    } == {name: (described.severity_of(name), described.remediation_of(name)) for name in "abc"}


def test_a_configuration_decides_about_every_check_of_a_policy() -> None:
    """It names policies, so the severities of their checks do not count."""
    described = describe(policy(**CHECKS), (DescriptionOverride("limits", severity=Severity.INFO),))

    assert {Severity.INFO} == {described.severity_of(name) for name in "abc"}


def test_a_policy_is_below_a_severity_with_its_worst_check() -> None:
    """Its other checks are below it; a policy that the scan did not record is not."""
    limits = policy(**CHECKS)
    below = BelowSeverity({limits.key: describe(limits)}, Severity.HIGH)

    assert [False, True] == [below(limits.key, name) for name in "ab"]
    assert not below.has_policy(limits.key)
    assert not below((VALIDATING, "unrecorded"), "b")


@pytest.mark.parametrize("text", ["HIGH", " high ", "High"])
def test_case_and_spaces_do_not_matter(text: str) -> None:
    """Policies in the field are written in all of these forms."""
    assert Severity.HIGH == describe(policy(kyvernos_severity=text)).severity


@given(st.sampled_from(Severity), st.sampled_from(Severity))
def test_severities_are_ordered(first: Severity, second: Severity) -> None:
    """Of two severities, the one that comes first in the list is at least as bad."""
    names = list(Severity)

    assert (names.index(first) <= names.index(second)) == first.at_least(second)


def test_an_edited_title_changes_the_descriptions_alone() -> None:
    """The digest of the rules stays, so the edit is no change of rules."""
    before, after = policy(ours_title="Limits"), policy(ours_title="Limits of memory")

    assert policy_set_digest([before], []) == policy_set_digest([after], [])
    assert description_digest([before], []) != description_digest([after], [])


def test_an_edited_check_changes_the_rules_alone() -> None:
    """The digest of a spec is that of the rules."""
    before, after = policy(), replace(policy(), digest="another spec")

    assert policy_set_digest([before], []) != policy_set_digest([after], [])
    assert description_digest([before], []) == description_digest([after], [])
