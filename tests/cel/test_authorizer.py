"""Questions to the authorizer, its answers, and the questions that are errors before it is called."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from scanner.cel import AUTHORIZATION, CompileError, Environment, EvaluationError, compile
from scanner.cel.functions.authorizer import Authorizer, AuthorizerAnswer, AuthorizerSubject, CachingDecider, Question

ENVIRONMENT = Environment().extend(AUTHORIZATION)
BOB = AuthorizerSubject("bob", ("dev", "system:authenticated"), "u-1")
POD = Question(BOB, verb="get", group="", version="*", resource="pods")
ALLOWED = AuthorizerAnswer(allowed=True)
ROBOT = AuthorizerSubject("system:serviceaccount:ns:robot", ("system:serviceaccounts", "system:serviceaccounts:ns"))


@dataclass
class RecordingDecider:
    """A decider that gives the same answer to every question, and records the questions."""

    answer: AuthorizerAnswer = ALLOWED
    questions: list[Question] = field(default_factory=list)

    def decide(self, question: Question) -> AuthorizerAnswer:
        self.questions.append(question)
        return self.answer


def evaluate(text: str, decider: RecordingDecider | CachingDecider) -> object:
    """Return the value of an expression that may call the decider."""
    authorizer = Authorizer(decider, BOB)
    named = {"subresource": "scale", "namespace": "team-1", "name": "web"}
    return compile(text, ENVIRONMENT).evaluate(
        {
            "authorizer": authorizer,
            "authorizer.requestResource": authorizer.request_resource(group="apps", resource="deployments", **named),
        }
    )


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("authorizer.group('').resource('pods').check('get')", POD),
        (
            "authorizer.group('apps').resource('deployments').subresource('status').namespace('n').name('x').check('create')",
            Question(
                BOB,
                verb="create",
                group="apps",
                version="*",
                resource="deployments",
                subresource="status",
                namespace="n",
                name="x",
            ),
        ),
        (
            "authorizer.group('').resource('pods').fieldSelector('spec.nodeName=a').labelSelector('a badoperator b').check('get')",
            Question(
                BOB,
                verb="get",
                version="*",
                resource="pods",
                field_selector="spec.nodeName=a",
                label_selector="a badoperator b",
            ),
        ),
        ("authorizer.path('/healthz').check('get')", Question(BOB, verb="get", path="/healthz")),
        (
            "authorizer.requestResource.check('custom')",
            Question(
                BOB,
                verb="custom",
                group="apps",
                version="*",
                resource="deployments",
                subresource="scale",
                namespace="team-1",
                name="web",
            ),
        ),
        (
            "authorizer.requestResource.namespace('a').namespace('b').subresource('').check('get')",
            Question(BOB, verb="get", group="apps", version="*", resource="deployments", namespace="b", name="web"),
        ),
        (
            "authorizer.serviceAccount('ns', 'robot').group('').resource('pods').check('get')",
            Question(ROBOT, verb="get", version="*", resource="pods"),
        ),
    ],
)
def test_questions(text: str, question: Question) -> None:
    """A chain of calls becomes a single question, about the requester or a service account."""
    decider = RecordingDecider()
    evaluate(text, decider)
    assert [question] == decider.questions


@pytest.mark.parametrize(
    ("call", "answer", "expected"),
    [
        ("allowed()", AuthorizerAnswer(allowed=True), True),
        ("allowed()", AuthorizerAnswer(allowed=False), False),
        ("reason()", AuthorizerAnswer(allowed=False, reason="no rule"), "no rule"),
        ("errored()", AuthorizerAnswer(allowed=False), False),
        ("errored()", AuthorizerAnswer(allowed=False, error="timed out"), True),
        ("error()", AuthorizerAnswer(allowed=False), ""),
        ("error()", AuthorizerAnswer(allowed=False, error="timed out"), "timed out"),
    ],
)
def test_answers(call: str, answer: AuthorizerAnswer, expected: object) -> None:
    """A decision has the authorizer's answer; an error of the authorizer is no error of the expression."""
    assert expected == evaluate(f"authorizer.path('/x').check('get').{call}", RecordingDecider(answer))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("authorizer.path('')", "path must not be empty"),
        ("authorizer.path(' \\u00a0')", "path must not be empty"),
        ("authorizer.group('').resource('  ')", "resource must not be empty"),
        ("authorizer.serviceAccount('ns', 'Bad')", "Invalid service account name"),
        ("authorizer.serviceAccount('Bad', 'Bad')", "Invalid service account name"),
        ("authorizer.serviceAccount('a.b', 'robot')", "Invalid service account namespace"),
        ("authorizer == authorizer", "no such overload"),
        ("authorizer == dyn(1)", "no such overload"),
        ("dyn(authorizer).check('get')", "no such overload: check(kubernetes.authorization.Authorizer, string)"),
        ("dyn(authorizer).all(x, true)", "got 'library.authorizerVal', expected iterable type"),
    ],
)
def test_malformed_questions_are_errors(text: str, message: str) -> None:
    """A malformed question is an error, and the decider is not called."""
    decider = RecordingDecider()
    with pytest.raises(EvaluationError) as caught:
        evaluate(text, decider)
    assert (message, []) == (str(caught.value), decider.questions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("authorizer != authorizer", True),
        ("authorizer in [authorizer]", False),
        ("[authorizer] == [authorizer]", True),
        ("authorizer == null", False),
        ("type(authorizer) == type(authorizer.requestResource)", False),
    ],
)
def test_authorizers_do_not_compare(text: str, expected: object) -> None:
    """The equality of two authorizers is an error, which surrounding operators treat as upstream's do."""
    assert expected == evaluate(text, RecordingDecider())


def test_without_an_authorizer_the_variable_is_missing() -> None:
    """An expression that was compiled with an authorizer is an error where the activation has none, as in audit annotations."""
    with pytest.raises(EvaluationError, match=r"^no such attribute\(s\): authorizer$"):
        compile("authorizer.path('/x').check('get').allowed()", ENVIRONMENT).evaluate({})


def test_message_expressions_have_no_authorizer() -> None:
    """The authorizer is undeclared in environments in which admission does not provide it."""
    with pytest.raises(CompileError, match="undeclared reference to 'authorizer'"):
        compile("authorizer.path('/x').check('get').allowed()", Environment())


def test_a_remembering_decider_asks_once() -> None:
    """A remembering decider forwards each distinct question once."""
    decider = RecordingDecider()
    text = "authorizer.group('').resource('pods').check('get').allowed()"
    assert (
        evaluate(f"{text} && {text} && authorizer.path('/x').check('get').allowed()", CachingDecider(decider)) is True
    )
    assert [POD, Question(BOB, verb="get", path="/x")] == decider.questions


def test_selectors_came_with_kubernetes_1_31() -> None:
    """Checks have selectors from 1.31 on, and none before."""
    declared = [Environment(version=version).function("fieldSelector") is not None for version in ((1, 30), (1, 31))]
    assert declared == [False, True]
