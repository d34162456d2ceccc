"""The simulated request of a whole scan: its operation, its requester, and what the authorizer says about them."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cel import Answer, Question
from scanner.errors import AuthorizerFailed
from scanner.model.outcome import GapKind
from scanner.model.reading import Auditability
from scanner.model.requester import named
from scanner.model.resource import UserInfo
from scanner.model.scan import OutcomeName, ScanState, Scope
from scanner.scan.options import Options
from tests.documents import binding, namespace, pod, policy, rule
from tests.scan.fakes import FakeCluster, changed, scanned

CLUSTER = FakeCluster([namespace("default"), pod("web"), pod("api")])
MAY = "authorizer.group('').resource('pods').check('delete').allowed()"


def under(*expressions: str, **spec: Any) -> FakeCluster:
    """The cluster with one policy on pods in force."""
    return changed(CLUSTER, documents=[*CLUSTER.documents, policy("p", *expressions, **spec), binding("b", "p")])


class Clerk:
    """Allows what `bob` asks for, knows nobody called `mallory`, and writes down the questions."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def decide(self, question: Question) -> Answer:
        self.asked.append(question)
        if question.subject.username == "mallory":
            raise AuthorizerFailed("the authorizer check failed: the connection broke")
        return Answer(allowed=question.subject.username == "bob")


def test_the_identity_that_scans_makes_the_requests() -> None:
    """Unless somebody else is named."""
    cluster = under("request.userInfo.username == 'auditor' && request.userInfo.groups == ['auditors']")
    told = scanned(cluster)
    assert (2, UserInfo("auditor", groups=("auditors",))) == (told.counted(OutcomeName.PASSED), told.start.requester)


def test_somebody_else_can_be_named() -> None:
    """With groups, UID and whatever an authenticator adds."""
    user = named("bob", ("dev",), uid="u-1", extra=(("scopes", ("a",)),))
    cluster = under(
        "request.userInfo.username == 'bob' && request.userInfo.uid == 'u-1' && 'dev' in request.userInfo.groups "
        "&& request.userInfo.extra['scopes'] == ['a']"
    )
    told = scanned(cluster, Options(user=user))
    assert (2, user) == (told.counted(OutcomeName.PASSED), told.start.requester)


def test_what_depends_on_the_requester_is_tallied_apart() -> None:
    """Passes included: a policy that exempts whoever scans does not look clean."""
    told = scanned(under("request.userInfo.username == 'auditor'", "object.kind == 'Pod'"))
    assert {(0, True): 2, (1, False): 2} == {
        (key.check.index, key.requester): count for key, count in told.tallies.items()
    }


def test_a_condition_that_reads_the_requester_makes_all_checks_depend() -> None:
    """Those that it skips as well."""
    conditions = [{"name": "others", "expression": "request.userInfo.username != 'auditor'"}]
    told = scanned(under("false", matchConditions=conditions))
    assert [(OutcomeName.SKIPPED, True)] == [(key.outcome, key.requester) for key in told.tallies]


def test_policies_are_classed_before_the_scan() -> None:
    """Also those that nothing binds."""
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
    """Findings say which one was simulated."""
    told = scanned(under("request.operation == 'none'"), Options(scope=Scope(operation=operation)))
    assert operations == sorted({finding.operation for finding in told.findings})


def test_a_policy_without_that_operation_is_named_and_not_evaluated() -> None:
    """It is not auditable in this scan, and the scan resolves none of its findings."""
    spec = {"matchConstraints": {"resourceRules": [rule("pods", operations=["CREATE"])]}}
    told = scanned(under("false", **spec), Options(scope=Scope(operation="update")))
    assert ([], (), [("notAuditable", "p", "")], ScanState.COMPLETE) == (
        told.said,
        told.end.evaluated_policies,
        told.health,
        told.scan.state,
    )


def test_the_authorizer_answers_for_the_requester() -> None:
    """One question is asked once, however many objects it is about."""
    clerk = Clerk()
    told = scanned(changed(under(MAY), clerk=clerk), Options(user=named("bob")))
    assert (2, ["bob"]) == (told.counted(OutcomeName.PASSED), [question.subject.username for question in clerk.asked])
    assert ("", "pods", "delete") == (clerk.asked[0].group, clerk.asked[0].resource, clerk.asked[0].verb)


def test_an_authorizer_that_may_not_be_asked_makes_checks_not_auditable() -> None:
    """Only those that ask it: nothing is guessed, policy health says why, and the scan is complete."""
    told = scanned(under(MAY, "object.kind == 'Pod'"))
    assert {(0, OutcomeName.NOT_AUDITABLE): 2, (1, OutcomeName.PASSED): 2} == {
        (key.check.index, key.outcome): count for key, count in told.tallies.items()
    }
    assert ([("notAuditable", "p", "")], ScanState.COMPLETE) == (told.health, told.scan.state)


def test_nobody_is_asked_about_nobody() -> None:
    """Where the server does not tell who scans, a question about that identity has no answer."""
    clerk = Clerk()
    told = scanned(changed(under(MAY), clerk=clerk, user=UserInfo()))
    assert (2, []) == (told.counted(OutcomeName.NOT_AUDITABLE), clerk.asked)


def test_an_authorizer_that_falls_silent_leaves_gaps() -> None:
    """An object that could not be judged is not called anything else."""
    told = scanned(changed(under(MAY), clerk=Clerk()), Options(user=named("mallory")))
    assert (0, ScanState.PARTIAL) == (told.counted(), told.scan.state)
    assert [(GapKind.EVALUATION, "v1/Pod default/api"), (GapKind.EVALUATION, "v1/Pod default/web")] == sorted(
        (gap.kind, gap.where) for gap in told.gaps
    )
    assert {"policy p: the authorizer check failed: the connection broke"} == {gap.why for gap in told.gaps}


def test_an_authorizer_that_no_policy_asks_is_left_alone() -> None:
    """Whether it may be asked is a request, too."""

    class Silent(FakeCluster):
        def authorizer(self) -> None:
            raise AssertionError("asked")

    cluster = under("true")
    assert 2 == scanned(Silent(cluster.documents)).counted(OutcomeName.PASSED)
