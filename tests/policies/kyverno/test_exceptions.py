"""The effect of a PolicyException on findings."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.errors import InvalidManifest
from scanner.model.outcome import Errored, Passed, Skipped, SkipReason, Violated
from scanner.policies.kyverno.exceptions import is_exception, read_exception
from scanner.policies.kyverno.modes import CONTROLLER
from tests.policies.kyverno.made import check_results, deployment, exception, outcomes, pod, policy, result

NO_LATEST = policy({"expression": "false", "message": "never"}, resources=("deployments",), group="apps")
BY_NAME = [{"name": "name", "expression": "object.metadata.name == 'web'"}]


def test_an_excepted_check_is_evaluated() -> None:
    """The outcome without exceptions is always known, and names the exception that removes its effect."""
    (check_result,) = check_results(deployment(), NO_LATEST, exceptions=(exception(matchConditions=BY_NAME),))
    assert ("team/let-be", Violated("never", "", 400)) == (check_result.excepted_by, check_result.outcome)


def test_what_passes_anyway_needs_no_exception() -> None:
    """A check that passes is not counted as excepted."""
    passing = policy("true", resources=("deployments",), group="apps")
    (check_result,) = check_results(deployment(), passing, exceptions=(exception(),))
    assert ("", Passed()) == (check_result.excepted_by, check_result.outcome)


@pytest.mark.parametrize(
    "spec",
    [
        {"matchConditions": [{"name": "other", "expression": "object.metadata.name == 'other'"}]},
        {"expiresAt": "2026-06-30T23:59:59Z"},
        {"policyRefs": [{"name": "checks", "kind": "NamespacedValidatingPolicy"}]},
        {"policyRefs": [{"name": "check*", "kind": "ValidatingPolicy"}]},
    ],
)
def test_an_exception_must_match_name_the_policy_and_be_in_time(spec: Any) -> None:
    """An exception applies only if its conditions, its references and its end allow it."""
    (check_result,) = check_results(deployment(), NO_LATEST, exceptions=(exception(**spec),))
    assert check_result.excepted_by == ""


def test_kyvernos_own_scan_knows_no_end_of_an_exception() -> None:
    """As Kyverno's controller evaluates, an expired exception still exempts."""
    expired = exception(expiresAt="2020-01-01T00:00:00Z")
    assert ("skip", "exception") == _status_and_rule(result(deployment(), NO_LATEST, exceptions=(expired,)))


def _status_and_rule(reported: Any) -> tuple[str, str]:
    return reported.status, reported.rule


def test_kyverno_reports_a_skip_with_the_names_of_the_exceptions() -> None:
    """The message names all exceptions that match; properties have only their names."""
    exceptions = (exception("b"), exception("a"))
    reported = result(deployment(), NO_LATEST, exceptions=exceptions)
    expected = (
        "rule is skipped due to policy exception: team/a, team/b",
        {"exceptions": "a,b", "process": "background scan"},
    )
    assert expected == (reported.message, reported.properties)


def test_the_exception_of_the_highest_priority_decides_the_result() -> None:
    """Of several exceptions, the one with the highest priority decides between skip and pass."""
    important = exception("z", labels={"polex.kyverno.io/priority": "2"}, reportResult="pass")
    reported = result(deployment(), NO_LATEST, exceptions=(exception("a"), important))
    assert ("pass", "rule is passed due to policy exception: team/a, team/z") == (reported.status, reported.message)


@pytest.mark.parametrize("priority", ["", "-1", "2.0", str(2**63), "9" * 5_000])
def test_a_priority_that_is_no_number_is_none(priority: str) -> None:
    """Its exception is not more important than the first one, which has 1."""
    other = exception("z", labels={"polex.kyverno.io/priority": priority}, reportResult="pass")
    first = exception("a", labels={"polex.kyverno.io/priority": "1"})
    assert "skip" == result(deployment(), NO_LATEST, exceptions=(first, other)).status


@pytest.mark.parametrize(("expected", "names"), [("passed", ("a", "b")), ("skipped", ("b", "a"))])
def test_the_first_exception_decides_the_result_without_a_priority(expected: str, names: tuple[str, str]) -> None:
    """In the order of their names, also if it only offers images, and the message names all in this order."""
    first, second = names
    offers = exception(first, reportResult="pass", images=["nginx"])
    text = f"rule is {expected} due to policy exception: team/a, team/b"
    assert text == result(pod(), policy("false"), exceptions=(offers, exception(second))).message


def test_exceptions_come_before_match_conditions() -> None:
    """An exempted object is skipped even if the policy's match conditions are false."""
    unmet = policy(
        "true", resources=("deployments",), group="apps", matchConditions=[{"name": "no", "expression": "false"}]
    )
    assert ("skip", "exception") == _status_and_rule(result(deployment(), unmet, exceptions=(exception(),)))


ALLOWED = policy(
    "object.spec.containers.all(one, one.image in exceptions.allowedImages || one.image.startsWith('ours/'))",
    "object.metadata.name == 'web' || object.metadata.name in exceptions.allowedValues",
)


def test_an_exception_with_images_offers_them_to_the_policy() -> None:
    """The exception removes the effect of a finding that its images make pass."""
    results = check_results(pod(), ALLOWED, exceptions=(exception(images=["nginx"]),))
    assert [("team/let-be", "Violated"), ("", "Passed")] == [
        (result.excepted_by, type(result.outcome).__name__) for result in results
    ]


def test_what_the_offer_does_not_allow_still_fails() -> None:
    """An exception with other images changes nothing."""
    results = check_results(pod(), ALLOWED, exceptions=(exception(images=["busybox"]),))
    assert [("", "Violated"), ("", "Passed")] == [
        (result.excepted_by, type(result.outcome).__name__) for result in results
    ]


def test_in_kyvernos_mode_an_offer_makes_the_check_pass() -> None:
    """Kyverno's report shows a pass."""
    assert ("pass", "") == _status_and_rule(result(pod(), ALLOWED, exceptions=(exception(images=["nginx"]),)))


def test_an_offer_that_a_condition_reads_decides_the_match() -> None:
    """Without the offer the conditions are false, so the check has its result with the offer."""
    conditions = [{"name": "offered", "expression": "exceptions.allowedImages[0] == 'nginx'"}]
    manifest = policy("false", matchConditions=conditions)
    results = check_results(pod(), manifest, exceptions=(exception(images=["nginx"]),))
    assert [("", "Violated")] == [(result.excepted_by, type(result.outcome).__name__) for result in results]


BROKEN = [{"name": "broken", "expression": "object.spec.none == 1"}]


def test_an_error_in_an_exception_is_the_policys() -> None:
    """With failurePolicy Fail the request is denied."""
    (check_result,) = check_results(deployment(), NO_LATEST, exceptions=(exception(matchConditions=BROKEN),))
    assert (
        Errored("failed to load context: no such key: none", would_deny=True, reason="", code=400)
        == check_result.outcome
    )


def test_with_failure_policy_ignore_such_an_exception_does_not_apply() -> None:
    """The check is evaluated, and no exception removes its effect."""
    ignores_negative_selectors = policy("false", resources=("deployments",), group="apps", failurePolicy="Ignore")
    (check_result,) = check_results(
        deployment(), ignores_negative_selectors, exceptions=(exception(matchConditions=BROKEN),)
    )
    assert ("", "Violated") == (check_result.excepted_by, type(check_result.outcome).__name__)


def test_an_exception_that_asks_the_network_leaves_a_failure_open() -> None:
    """A scan cannot evaluate the exception: a pass stays a pass, a failure is not auditable."""
    asking = [{"name": "ask", "expression": "http.Get('http://x').ok == true"}]
    mixed = policy("true", "false", resources=("deployments",), group="apps")
    assert ["Passed", "Skipped"] == outcomes(deployment(), mixed, exceptions=(exception(matchConditions=asking),))


USING = [{"name": "x", "expression": "variables.x"}]
VARIABLES: Any = {"variables": [{"name": "x", "expression": "true"}]}
ON_DEPLOYMENTS: Any = {"resources": ("deployments",), "group": "apps"}


def test_a_variable_in_an_exception_compiles_and_has_no_value() -> None:
    """Every evaluation of it is an error: with failurePolicy Fail the request is denied."""
    using = policy("variables.x", **ON_DEPLOYMENTS, **VARIABLES)
    (check_result,) = check_results(deployment(), using, exceptions=(exception(matchConditions=USING),))
    message = "failed to load context: no such attribute(s): variables"
    assert Errored(message, would_deny=True, reason="", code=400) == check_result.outcome


def test_with_failure_policy_ignore_an_exception_with_a_variable_is_skipped() -> None:
    """The policy is evaluated as if the exception did not exist."""
    ignores_negative_selectors = policy("!variables.x", **ON_DEPLOYMENTS, **VARIABLES, failurePolicy="Ignore")
    (check_result,) = check_results(
        deployment(), ignores_negative_selectors, exceptions=(exception(matchConditions=USING),)
    )
    assert ("", "Violated") == (check_result.excepted_by, type(check_result.outcome).__name__)


@pytest.mark.parametrize(
    ("expected", "expression"),
    [
        ("team/let-be", "true || variables.x"),
        ("", "false && variables.x"),
    ],
)
def test_a_variable_that_decides_nothing_is_no_error(expected: str, expression: str) -> None:
    """Logical operators absorb the error, like every other error."""
    using = policy("false", **ON_DEPLOYMENTS, **VARIABLES)
    conditions = [{"name": "x", "expression": expression}]
    (check_result,) = check_results(deployment(), using, exceptions=(exception(matchConditions=conditions),))
    assert (expected, "Violated") == (check_result.excepted_by, type(check_result.outcome).__name__)


def test_an_earlier_exemption_is_not_undone_by_a_variable() -> None:
    """Exceptions are evaluated in order; errors after a full exemption do not count."""
    using = policy("false", **ON_DEPLOYMENTS, **VARIABLES)
    both = (exception("a"), exception("b", matchConditions=USING))
    (check_result,) = check_results(deployment(), using, exceptions=both)
    assert "team/a" == check_result.excepted_by


@pytest.mark.parametrize(
    ("expected", "conditions", "variables"),
    [
        ("undefined field 'y'", [{"name": "y", "expression": "variables.y"}], "true"),
        ("output is expected to be of type bool", USING, "object"),
        ("output is expected to be of type bool", USING, "1"),
    ],
)
def test_an_exception_that_does_not_compile_breaks_the_policy(expected: str, conditions: Any, variables: str) -> None:
    """Kyverno does not load a policy if an exception has an undeclared variable, or a condition that is no bool."""
    using = policy("true", **ON_DEPLOYMENTS, variables=[{"name": "x", "expression": variables}])
    (check_result,) = check_results(deployment(), using, exceptions=(exception(matchConditions=conditions),))
    message = getattr(check_result.outcome, "message", "")
    assert (True, True) == ("policy exception team/let-be: spec.matchConditions[0]" in message, expected in message)


def test_conditions_of_an_exception_are_not_rewritten() -> None:
    """For a controller, conditions read the controller and not its template."""
    results = check_results(deployment(), policy("false"), exceptions=(exception(matchConditions=BY_NAME),))
    assert ["team/let-be"] == [result.excepted_by for result in results]


def test_in_kyvernos_mode_every_check_is_skipped() -> None:
    """The outcome has the reason in Kyverno's words."""
    (check_result,) = check_results(deployment(), NO_LATEST, exceptions=(exception(),), mode=CONTROLLER)
    expected = Skipped(SkipReason.EXCEPTION, "rule is skipped due to policy exception: team/let-be")
    assert expected == check_result.outcome


def test_the_other_kind_of_this_name_is_no_exception() -> None:
    """The PolicyException of `kyverno.io` does not apply to these policies."""
    assert not is_exception({"apiVersion": "kyverno.io/v2", "kind": "PolicyException"})


@pytest.mark.parametrize(
    ("expected", "spec"),
    [
        ("spec.policyRefs: Required value", {"policyRefs": []}),
        ("spec.policyRefs[0].kind: Required value", {"policyRefs": [{"name": "x"}]}),
        (
            'spec.expiresAt: Invalid value: "soon": spec.expiresAt in body must be of type date-time: "soon"',
            {"expiresAt": "soon"},
        ),
        ('spec.expiresAt: Invalid value: "": spec.expiresAt in body must be of type date-time: ""', {"expiresAt": 1}),
        (
            'spec.images[1]: Invalid value: "integer": spec.images[1] in body must be of type string: "integer"',
            {"images": ["a", 1]},
        ),
        ('spec.reportResult: Unsupported value: "": supported values: "skip", "pass"', {"reportResult": ""}),
        ("spec.matchConditions[0].name: Required value", {"matchConditions": [{"expression": "true"}]}),
        ("spec.policyRefs[0].name: Required value", {"policyRefs": [{"name": None, "kind": "ValidatingPolicy"}]}),
    ],
)
def test_an_exception_in_a_file_is_held_to_its_schema(expected: str, spec: Any) -> None:
    """Assay refuses the exceptions that the API refuses, and names the field."""
    with pytest.raises(InvalidManifest) as caught:
        read_exception(exception(**spec), source="exceptions.yaml")
    assert expected in caught.value.reasons
