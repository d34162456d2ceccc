"""What changed for a finding between two scans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from scanner.model.json import JsonObject
from scanner.model.policy import PolicyKey
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.cause import Cause, CauseKind, cause_of
from scanner.posture.history.causes import CircumstanceChanges, Circumstances, Coordinates
from scanner.posture.history.namespace_keys import EVERY
from tests.store.made import policy

POLICY = "ValidatingAdmissionPolicy", "replicas"
LIMITS = RuleObject(RuleType.PARAM, "ConfigMap shop/limits", "three", {})
EXCEPTION = RuleObject(
    RuleType.EXCEPTION, "kyverno/allowed", "one", {"spec": {"policyRefs": [{"name": "replicas", "kind": "X"}]}}
)
LABELS = RuleObject(RuleType.NAMESPACE_LABELS, "shop", "tier", {})
BEFORE = Circumstances(
    policies={POLICY: "digest"},
    bindings={(*POLICY, "strict"): "digest"},
    rules=(LIMITS, LABELS, EXCEPTION),
    server="v1.36.0",
    assay="0.1.0",
    options=("create",),
)
FINDING = Coordinates(*POLICY, "strict", "shop", "limits", "shop")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(BEFORE, (), id="nothing"),
        pytest.param(replace(BEFORE, policies={POLICY: "other"}), (CauseKind.POLICY,), id="policy"),
        pytest.param(replace(BEFORE, bindings={(*POLICY, "strict"): "x"}), (CauseKind.BINDING,), id="binding"),
        pytest.param(replace(BEFORE, bindings={}), (CauseKind.BINDING,), id="binding gone"),
        pytest.param(
            replace(BEFORE, rules=(replace(LIMITS, digest="300"), LABELS, EXCEPTION)), (CauseKind.PARAM,), id="param"
        ),
        pytest.param(replace(BEFORE, rules=(LIMITS, LABELS)), (CauseKind.EXCEPTION,), id="exception gone"),
        pytest.param(replace(BEFORE, rules=(LIMITS, EXCEPTION)), (CauseKind.NAMESPACE,), id="namespace labels"),
        pytest.param(replace(BEFORE, server="v1.37.0"), (CauseKind.SERVER,), id="server"),
        pytest.param(replace(BEFORE, assay="0.2.0"), (CauseKind.ASSAY,), id="assay"),
        pytest.param(replace(BEFORE, options=("update",)), (CauseKind.OPTIONS,), id="options"),
        pytest.param(
            replace(BEFORE, policies={POLICY: "x"}, assay="0.2.0"), (CauseKind.POLICY, CauseKind.ASSAY), id="two"
        ),
    ],
)
def test_a_change_of_what_decides_is_named(now: Circumstances, expected: tuple[CauseKind, ...]) -> None:
    """In the order in which the parts explain a change, in both directions."""
    assert expected == CircumstanceChanges(BEFORE, now).list_changes(FINDING)
    assert expected == CircumstanceChanges(now, BEFORE).list_changes(FINDING)


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(replace(BEFORE, policies={**BEFORE.policies, ("x", "y"): "z"}), id="another policy"),
        pytest.param(
            replace(BEFORE, rules=(*BEFORE.rules, replace(LIMITS, name="ConfigMap bank/limits"))), id="another param"
        ),
        pytest.param(replace(BEFORE, rules=(*BEFORE.rules, replace(LABELS, name="bank"))), id="another namespace"),
        pytest.param(
            replace(
                BEFORE,
                rules=(
                    *BEFORE.rules,
                    replace(EXCEPTION, name="k/x", document={"spec": {"policyRefs": [{"name": "x"}]}}),
                ),
            ),
            id="an exception of another policy",
        ),
    ],
)
def test_what_concerns_other_findings_is_not_named(now: Circumstances) -> None:
    """The finding was decided by other parts."""
    assert CircumstanceChanges(BEFORE, now).list_changes(FINDING) == ()


def test_the_first_part_that_changed_is_the_cause() -> None:
    """In the order of the parts of a decision; the others are listed in this order, too."""
    assert Cause(CauseKind.PARAM, (CauseKind.ASSAY, CauseKind.OBJECT_CHANGED)) == cause_of(
        {CauseKind.OBJECT_CHANGED, CauseKind.ASSAY, CauseKind.PARAM}
    )


def test_other_sources_of_policies_are_no_change() -> None:
    """The policies themselves are compared; the sources only tell whether a missing one was deleted."""
    assert not CircumstanceChanges(BEFORE, replace(BEFORE, sources=("policies/",))).rules_changed


@pytest.mark.parametrize(
    ("bindings", "renamed"),
    [
        pytest.param({(*POLICY, "renamed"): "digest"}, True, id="same content"),
        pytest.param({(*POLICY, "renamed"): "other"}, False, id="other content"),
        pytest.param({(*POLICY, "strict"): "digest", (*POLICY, "renamed"): "digest"}, False, id="a copy"),
    ],
)
def test_a_binding_is_renamed_if_its_content_stays(bindings: dict[tuple[str, str, str], str], *, renamed: bool) -> None:
    """The earlier one is gone, and the new one was not there."""
    comparison = CircumstanceChanges(BEFORE, replace(BEFORE, bindings=bindings))
    assert renamed is comparison.renames_binding((*POLICY, "strict"), (*POLICY, "renamed"))


@pytest.mark.parametrize(
    ("data", "renamed"), [pytest.param("3", True, id="same content"), pytest.param("300", False, id="other content")]
)
def test_a_param_is_renamed_if_its_content_stays(data: str, *, renamed: bool) -> None:
    """The name is part of the content of a param; all the rest must stay."""

    def limits(name: str, value: str) -> RuleObject:
        document: JsonObject = {"metadata": {"name": name, "namespace": "shop"}, "data": {"max": value}}
        return RuleObject(RuleType.PARAM, f"ConfigMap shop/{name}", f"{name}{value}", document)

    before, now = (replace(BEFORE, rules=(limits(*each),)) for each in (("limits", "3"), ("limits-2", data)))
    assert renamed is CircumstanceChanges(before, now).renames_param("shop/limits", "shop/limits-2")


MUTATING = "MutatingAdmissionPolicy", "replicas"


def of_language(language: str, digest: str, manifest: JsonObject) -> Circumstances:
    """A scan with one policy of a language, and its manifest."""
    recorded = replace(policy("replicas"), language=language, manifest=manifest)
    return replace(BEFORE, policies={(language, "replicas"): digest}, policy=lambda _: recorded)


@pytest.mark.parametrize(
    ("language", "before", "now", "decides"),
    [
        pytest.param(POLICY[0], {"message": "a"}, {"message": "b"}, False, id="a text"),
        pytest.param(POLICY[0], {"expression": "a"}, {"expression": "b"}, True, id="an expression"),
        pytest.param(MUTATING[0], {"message": "a"}, {"message": "b"}, True, id="a text of a mutating policy"),
        pytest.param(POLICY[0], {"message": "a"}, {"message": "a"}, True, id="a digest without its manifest"),
        pytest.param("Unknown", {"message": "a"}, {"message": "b"}, True, id="a language of another version"),
    ],
)
def test_a_change_of_a_policy_decides_unless_texts_alone_differ(
    language: str, before: JsonObject, now: JsonObject, *, decides: bool
) -> None:
    """The change has a name in both cases."""
    first, second = (
        of_language(language, digest, {"spec": {"validations": [validation]}})
        for digest, validation in (("one", before), ("two", now))
    )
    finding = Coordinates(language, "replicas", "strict", "", "", "shop")
    comparison = CircumstanceChanges(first, second)
    assert (CauseKind.POLICY,) == comparison.list_changes(finding)
    assert ((CauseKind.POLICY,) if decides else ()) == comparison.list_deciding(finding)


@pytest.mark.parametrize(
    ("language", "server", "decides"),
    [
        pytest.param(POLICY[0], "v1.36.4", False, id="patch release"),
        pytest.param(POLICY[0], "v1.37.0", True, id="minor release"),
        pytest.param(POLICY[0], "", True, id="no version"),
        pytest.param(MUTATING[0], "v1.36.4", True, id="patch release, mutating policy"),
        pytest.param("ValidatingPolicy", "v1.36.4", True, id="patch release, Kyverno's policy"),
    ],
)
def test_a_patch_release_decides_unless_the_language_excludes_it(language: str, server: str, *, decides: bool) -> None:
    """The change has a name in both cases."""
    finding = Coordinates(language, "replicas", "strict", "", "", "shop")
    comparison = CircumstanceChanges(BEFORE, replace(BEFORE, server=server))
    assert (CauseKind.SERVER,) == comparison.list_changes(finding)
    assert ((CauseKind.SERVER,) if decides else ()) == comparison.list_deciding(finding)


@pytest.mark.parametrize(
    ("language", "releases", "expected"),
    [
        pytest.param("ValidatingPolicy", ("1.18", "1.19"), (CauseKind.KYVERNO,), id="Kyverno's policy"),
        pytest.param("ValidatingPolicy", ("1.18", "1.18"), (), id="the same release"),
        pytest.param("ValidatingPolicy", ("", "1.19"), (), id="not known before"),
        pytest.param("ValidatingAdmissionPolicy", ("1.18", "1.19"), (), id="another policy"),
    ],
)
def test_the_release_of_kyverno_decides_about_its_policies(
    language: str, releases: tuple[str, str], expected: tuple[CauseKind, ...]
) -> None:
    """It decides about no other policy, and a release that is not known is no other one."""
    finding = Coordinates(language, "replicas", "strict", "", "", "shop")
    comparison = CircumstanceChanges(*(replace(BEFORE, kyverno=release) for release in releases))
    assert (expected, expected) == (comparison.list_changes(finding), comparison.list_deciding(finding))


def test_the_bindings_of_kyvernos_policies_follow_from_the_release() -> None:
    """A variant that a release adds has a binding that no object is: the release is the cause."""
    key = "ValidatingPolicy", "replicas"
    before = replace(BEFORE, policies={key: "digest"}, bindings={}, kyverno="1.18")
    now = replace(before, bindings={(*key, "autogen-defaults"): "digest"}, kyverno="1.19")
    finding = Coordinates(*key, "autogen-defaults", "", "", "shop")
    assert [(CauseKind.KYVERNO,), (CauseKind.BINDING,)] == [
        CircumstanceChanges(before, later).list_changes(finding) for later in (now, replace(now, kyverno="1.18"))
    ]


OTHER = "ValidatingAdmissionPolicy", "other"


def labelled(keys: Mapping[PolicyKey, set[str]], **labels: str) -> Circumstances:
    """A scan of two policies that read keys of namespaces, and the labels of the namespace that were recorded."""
    document: JsonObject = {"metadata": {"name": "shop", "labels": {**labels}}}
    recorded = RuleObject(RuleType.NAMESPACE_LABELS, "shop", str(labels), document)
    return replace(
        BEFORE,
        policies=dict.fromkeys(keys, "digest"),
        bindings={(*policy, "strict"): "digest" for policy in keys},
        rules=(recorded,) if labels else (),
        namespace_keys=lambda policy: frozenset(keys.get(policy, ())),
    )


ENV, TIER = {"labels/env"}, {"labels/tier"}
BOTH = {POLICY: ENV, OTHER: TIER}


@pytest.mark.parametrize(
    ("before", "now", "concerned"),
    [
        pytest.param(labelled(BOTH, env="a"), labelled(BOTH, env="b"), [POLICY], id="a label that one of them reads"),
        pytest.param(labelled(BOTH, env="a"), labelled(BOTH), [POLICY], id="the label is gone"),
        pytest.param(
            labelled(BOTH, env="a", tier="1"), labelled(BOTH, env="b", tier="2"), [POLICY, OTHER], id="labels of both"
        ),
        pytest.param(
            labelled({POLICY: ENV}, env="a"), labelled(BOTH, env="a", tier="1"), [], id="another policy reads a label"
        ),
        pytest.param(labelled(BOTH, env="a", tier="1"), labelled({POLICY: ENV}, env="a"), [], id="reads no more"),
        pytest.param(
            labelled({POLICY: {EVERY}, OTHER: TIER}, env="a"),
            labelled({POLICY: {EVERY}, OTHER: TIER}, env="b"),
            [POLICY],
            id="reads every label",
        ),
        pytest.param(labelled({}), labelled(BOTH, env="a"), [], id="nothing was read before"),
    ],
)
def test_a_label_concerns_the_policies_that_read_it(
    before: Circumstances, now: Circumstances, concerned: list[PolicyKey]
) -> None:
    """A label that was not recorded before, because no policy read it, has not changed."""
    comparison = CircumstanceChanges(before, now)
    found = [
        policy
        for policy in (POLICY, OTHER)
        if CauseKind.NAMESPACE in comparison.list_changes(Coordinates(*policy, "strict", "", "", "shop"))
    ]
    assert concerned == found
    assert bool(concerned) == (CauseKind.NAMESPACE in comparison.kinds)


def test_a_withheld_label_may_be_any() -> None:
    """Its name is not known to have changed or not."""
    before, now = labelled(BOTH, env="a"), labelled(BOTH, env="b")
    masked = replace(now, rules=tuple(replace(rule, masked=True) for rule in now.rules))
    assert CauseKind.NAMESPACE in CircumstanceChanges(before, masked).list_changes(
        Coordinates(*OTHER, "strict", "", "", "shop")
    )
