"""The table of sources of refusals is made from a stored scan, and claims nothing that the scan does not know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import Scope
from scanner.report.document.document import document_of
from scanner.report.document.sentences import verdict_line
from scanner.report.document.sources import Source, SourceName, SourceState
from tests.report.records import small_record, with_findings

NONE = (
    OutOfScope("resourcequotas", "ResourceQuota", "0 objects: the plug-in decides"),
    OutOfScope("limitranges", "LimitRange", "0 objects: the plug-in decides"),
)
CONFIGURATION = RuleObject(RuleType.CONFIGURATION, "PodSecurity", "0" * 64, {})


def sources(
    *outside: OutOfScope, release: str = "v1.35.0", scope: Scope | None = None, **fields: Any
) -> dict[str, Source]:
    """The sources of a scan of a cluster with these items, by name."""
    return {
        source.name: source for source in document_of(record(*outside, release=release, scope=scope, **fields)).sources
    }


def record(*outside: OutOfScope, release: str = "v1.35.0", scope: Scope | None = None, **fields: Any) -> Any:
    """A scan of a cluster with these items besides policies."""
    small = small_record()
    cluster = replace(small.scan.cluster, server_version=release)
    scan = replace(small.scan, cluster=cluster, scope=scope or small.scan.scope)
    return replace(small, scan=scan, outside=outside, **fields)


def test_everything_is_judged_if_nothing_else_decides() -> None:
    """Then the verdict is about all requests."""
    whole = record(*NONE, rules=(CONFIGURATION,))
    admitted = with_findings(whole, [stored for stored in whole.findings() if not stored.finding.denies])
    document = document_of(admitted)
    assert {SourceState.JUDGED, SourceState.NONE} == {source.state for source in document.sources}
    assert "no problem would be refused" == verdict_line(document)[0]


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (OutOfScope("resourcequotas", "ResourceQuota", "1,200 objects: the plug-in decides"), SourceName.LIMITS),
        (
            OutOfScope("mutatingpolicies.policies.kyverno.io", "MutatingPolicy", "2 objects: Kyverno"),
            SourceName.KYVERNO,
        ),
        (OutOfScope("legacyPolicy", "ClusterPolicy of kyverno.io", "2 (1 mutate): Kyverno 1.20 …"), SourceName.KYVERNO),
        (OutOfScope("a.constraints.gatekeeper.sh", "A", "3 objects (3 deny): Gatekeeper"), SourceName.GATEKEEPER),
        (OutOfScope("MutatingWebhookConfiguration", "hook", "1 webhook (a): a program"), SourceName.WEBHOOKS),
    ],
)
def test_an_object_that_decides_is_named_and_limits_the_verdict(item: OutOfScope, name: SourceName) -> None:
    """For every source that it belongs to."""
    whole = record(*NONE[1:], item, rules=(CONFIGURATION,))
    admitted = with_findings(whole, [stored for stored in whole.findings() if not stored.finding.denies])
    document = document_of(admitted)
    states = {source.name: (source.state, source.named) for source in document.sources}
    assert (SourceState.NAMED, item.number) == states[name]
    assert "no problem would be refused by a judged policy" == verdict_line(document)[0]


@pytest.mark.parametrize(
    ("release", "static", "conditions"), [("v1.35.0", False, False), ("v1.36.1", True, False), ("v1.37.0", True, True)]
)
def test_a_release_has_the_sources_of_its_time(release: str, *, static: bool, conditions: bool) -> None:
    """Files of policies exist since 1.36, authorizers with conditions since 1.37."""
    names = sources(release=release).keys()
    assert (static, conditions) == (SourceName.CONTROL_PLANE in names, SourceName.AUTHORIZERS in names)


def test_what_an_older_version_did_not_list_is_not_visible() -> None:
    """A scan without items about quotas does not know that there are none."""
    assert SourceState.NOT_VISIBLE is sources()[SourceName.LIMITS].state
    assert SourceState.NONE is sources(*NONE)[SourceName.LIMITS].state


def test_a_missing_right_is_what_would_show_a_source() -> None:
    """The right is read from the reason of the list."""
    refusal = "cannot list limitranges: forbidden for auditor. Grant `list` on limitranges"
    item = OutOfScope("limitranges", "LimitRange", f"whether there are any is not known: {refusal}")
    limits = sources(NONE[0], item)[SourceName.LIMITS]
    assert (SourceState.NOT_VISIBLE, "the right to list limitranges") == (limits.state, limits.shown_by)


def test_policies_that_could_not_be_listed_are_not_visible() -> None:
    """A gap about another kind changes nothing."""
    where = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding"
    gaps = (Gap(GapKind.LIST, where, "the server went away"), Gap(GapKind.LIST, "v1/Pod", "forbidden"))
    found = sources(gaps=gaps)
    assert SourceState.NOT_VISIBLE is found[SourceName.VALIDATING].state
    assert SourceState.NOT_VISIBLE is not found[SourceName.MUTATING].state


def test_a_policy_that_could_not_be_evaluated_is_named() -> None:
    """With the reason of its gap."""
    policy = next(used.policy for used in small_record().policies if used.bindings)
    gap = Gap(GapKind.EVALUATION, f"policy {policy.name}", "its params could not be listed")
    validating = sources(gaps=(gap,))[SourceName.VALIDATING]
    assert (1, "its params could not be listed") == (
        validating.named,
        validating.parts[-1].why or validating.parts[0].why,
    )


@pytest.mark.parametrize("scope", [Scope(policies=("own",)), Scope(bindings=("own",))])
def test_policies_that_the_user_left_out_are_not_visible(scope: Scope) -> None:
    """Their number is not known."""
    assert SourceState.NOT_VISIBLE is sources(scope=scope)[SourceName.VALIDATING].state


def test_pod_security_that_the_user_left_out_is_not_visible() -> None:
    """The option is what would show it."""
    source = sources(scope=Scope(skip_languages=("PodSecurity",)))[SourceName.POD_SECURITY]
    assert (SourceState.NOT_VISIBLE, True) == (source.state, "--no-pod-security" in source.shown_by)


def test_a_webhook_without_a_rule_decides_nothing() -> None:
    """It is counted, and no source that was not judged."""
    idle = OutOfScope("ValidatingWebhookConfiguration", "idle", "no webhook: the API server never calls it")
    webhooks = sources(idle)[SourceName.WEBHOOKS]
    assert (SourceState.NONE, 0) == (webhooks.state, webhooks.named)


def test_a_kind_that_imitates_a_webhook_is_a_constraint() -> None:
    """The group decides, which only one API can have, and no name that a user chooses."""
    item = OutOfScope(
        "validatingwebhookconfigurations.constraints.gatekeeper.sh", "ValidatingWebhookConfiguration", "1 object: …"
    )
    found = sources(item)
    assert (0, 1) == (found[SourceName.WEBHOOKS].named, found[SourceName.GATEKEEPER].named)


@pytest.mark.parametrize(
    ("why", "number"),
    [
        ("0 objects: x", 0),
        ("1 object (1 deny): x", 1),
        ("12,345 objects: x", 12_345),
        ("2 (1 mutate): x", 2),
        ("3: x", 3),
        ("2 webhooks (a): x", 1),
        ("whether there are any is not known: x", None),
        ("5 objections", 1),
    ],
)
def test_the_reason_of_an_item_has_its_number(why: str, number: int | None) -> None:
    """Without one, the item is an object itself."""
    assert number == OutOfScope("kind", "name", why).number
