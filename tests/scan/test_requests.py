"""The simulated request of a whole scan: its operation, its user, and the authorizer's answers about the user."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cel import AuthorizerAnswer, Question
from scanner.errors import AuthorizerFailed
from scanner.model.outcome import GapKind
from scanner.model.reading import Auditability
from scanner.model.resource import UserInfo, build_user_info
from scanner.model.scans.scan import ScanState, Scope
from scanner.model.scans.tally import OutcomeName
from scanner.scan.options import Options
from tests.documents import binding, namespace, pod, policy, rule
from tests.scan.fakes import FakeCluster, changed, scanned

CLUSTER = FakeCluster([namespace("default"), pod("web"), pod("api")])
MAY = "authorizer.group('').resource('pods').check('delete').allowed()"


def under(*expressions: str, **spec: Any) -> FakeCluster:
    """The cluster with one bound policy on pods."""
    return changed(CLUSTER, documents=[*CLUSTER.documents, policy("p", *expressions, **spec), binding("b", "p")])


class Clerk:
    """An authorizer that allows the requests of `bob`, fails for `mallory`, and keeps the questions."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def decide(self, question: Question) -> AuthorizerAnswer:
        self.asked.append(question)
        if question.subject.username == "mallory":
            raise AuthorizerFailed("the authorizer check failed: the connection broke")
        return AuthorizerAnswer(allowed=question.subject.username == "bob")


def test_the_identity_that_scans_makes_the_requests() -> None:
    """The scanner's identity is the default user."""
    cluster = under("request.userInfo.username == 'auditor' && request.userInfo.groups == ['auditors']")
    recorded = scanned(cluster)
    assert (2, UserInfo("auditor", groups=("auditors",))) == (
        recorded.counted(OutcomeName.PASSED),
        recorded.start.requester,
    )


def test_another_user_can_be_named() -> None:
    """The user has groups, a UID and extra info."""
    user = build_user_info("bob", ("dev",), uid="u-1", extra=(("scopes", ("a",)),))
    cluster = under(
        "request.userInfo.username == 'bob' && request.userInfo.uid == 'u-1' && 'dev' in request.userInfo.groups "
        "&& request.userInfo.extra['scopes'] == ['a']"
    )
    recorded = scanned(cluster, Options(user=user))
    assert (2, user) == (recorded.counted(OutcomeName.PASSED), recorded.start.requester)


def test_outcomes_that_depend_on_the_user_are_counted_apart() -> None:
    """Passes are included, so that a policy that exempts the scanner does not look clean."""
    recorded = scanned(under("request.userInfo.username == 'auditor'", "object.kind == 'Pod'"))
    assert {(0, True): 2, (1, False): 2} == {
        (key.check.index, key.requester): count for key, count in recorded.tallies.items()
    }


def test_a_condition_that_reads_the_requester_makes_all_checks_depend() -> None:
    """The checks that the condition skips depend on the user too."""
    conditions = [{"name": "others", "expression": "request.userInfo.username != 'auditor'"}]
    recorded = scanned(under("false", matchConditions=conditions))
    assert [(OutcomeName.SKIPPED, True)] == [(key.outcome, key.requester) for key in recorded.tallies]


def test_policies_are_classed_before_the_scan() -> None:
    """Policies without a binding have their classes too."""
    cluster = under("oldObject == null")
    cluster = changed(cluster, documents=[*cluster.documents, policy("unbound", "true")])
    readings = scanned(cluster).start.readings
    assert {"p": (Auditability.OLD_OBJECT,), "unbound": (Auditability.FULL,)} == {
        name: reading.classes for (_, name), reading in readings.items()
    }


@pytest.mark.parametrize(
    ("operation", "operations"), [("auto", ["CREATE"]), ("create", ["CREATE"]), ("update", ["UPDATE"])]
)
def test_the_operation_can_be_chosen(operation: str, operations: list[str]) -> None:
    """Findings state the operation that was simulated."""
    recorded = scanned(under("request.operation == 'none'"), Options(scope=Scope(operation=operation)))
    assert operations == sorted({finding.operation for finding in recorded.findings})


def test_a_policy_without_that_operation_is_named_and_not_evaluated() -> None:
    """The policy is not auditable in this scan, and the scan resolves none of its findings."""
    spec = {"matchConstraints": {"resourceRules": [rule("pods", operations=["CREATE"])]}}
    recorded = scanned(under("false", **spec), Options(scope=Scope(operation="update")))
    assert ([], (), [("notAuditable", "p", "")], ScanState.COMPLETE) == (
        recorded.messages,
        recorded.end.evaluated_policies,
        recorded.health,
        recorded.scan.state,
    )


def test_the_authorizer_answers_for_the_requester() -> None:
    """A check about the user is sent once for any number of objects."""
    clerk = Clerk()
    recorded = scanned(changed(under(MAY), clerk=clerk), Options(user=build_user_info("bob")))
    assert (2, ["bob"]) == (
        recorded.counted(OutcomeName.PASSED),
        [question.subject.username for question in clerk.asked],
    )
    assert ("", "pods", "delete") == (clerk.asked[0].group, clerk.asked[0].resource, clerk.asked[0].verb)


def test_without_an_authorizer_its_checks_are_not_auditable() -> None:
    """Only checks that read the authorizer are affected; policy health states the reason, and the scan is complete."""
    recorded = scanned(under(MAY, "object.kind == 'Pod'"))
    assert {(0, OutcomeName.NOT_AUDITABLE): 2, (1, OutcomeName.PASSED): 2} == {
        (key.check.index, key.outcome): count for key, count in recorded.tallies.items()
    }
    assert ([("notAuditable", "p", "")], ScanState.COMPLETE) == (recorded.health, recorded.scan.state)


def test_the_authorizer_is_not_asked_about_an_unknown_user() -> None:
    """A server that does not report the scanner's user has no answer about that user."""
    clerk = Clerk()
    recorded = scanned(changed(under(MAY), clerk=clerk, user=UserInfo()))
    assert (2, []) == (recorded.counted(OutcomeName.NOT_AUDITABLE), clerk.asked)


def test_an_authorizer_without_an_answer_leaves_gaps() -> None:
    """An object that could not be evaluated has no outcome."""
    recorded = scanned(changed(under(MAY), clerk=Clerk()), Options(user=build_user_info("mallory")))
    assert (0, ScanState.INCOMPLETE) == (recorded.counted(), recorded.scan.state)
    assert [(GapKind.EVALUATION, "v1/Pod default/api"), (GapKind.EVALUATION, "v1/Pod default/web")] == sorted(
        (gap.kind, gap.where) for gap in recorded.gaps
    )
    assert {"policy p: the authorizer check failed: the connection broke"} == {gap.why for gap in recorded.gaps}


def test_an_authorizer_that_no_policy_reads_is_not_asked() -> None:
    """Not even the permission to use it is requested."""

    class Silent(FakeCluster):
        def authorizer(self) -> None:
            raise AssertionError("asked")

    cluster = under("true")
    assert 2 == scanned(Silent(cluster.documents)).counted(OutcomeName.PASSED)
