"""Servers of older releases, really built, and Assay with the rules of each: the same answers to the same questions.

RELEASES names the directories that hold the servers (`make nightly VERSIONS="1.30 1.32"` builds them and sets it); without
it nothing here runs. RELEASE_EXPRESSIONS random expressions of RELEASE_SEED come beside the tables. Policies that the server
would not let anybody write are put into its store, as one that was written to another release is.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
import urllib3

from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from tests import server_words
from tests.integration import older
from tests.integration.apiserver import ApiServer, running
from tests.integration.made import ADMISSION
from tests.integration.manifests import apply, wait_until_enforced
from tests.integration.older import Question

SERVERS = os.environ.get("RELEASES", "").split()
NONE_BUILT = pytest.param(
    "", marks=pytest.mark.skip("no older servers: make nightly VERSIONS='1.30 1.32 1.34' builds them")
)
CHOICES: list[object] = [*SERVERS] or [NONE_BUILT]
SEED = int(os.environ.get("RELEASE_SEED", "20261122"))
EXPRESSIONS = int(os.environ.get("RELEASE_EXPRESSIONS", "400"))
SHOWN = 40
CRASH = "internal error: runtime error"
POLICIES = f"/apis/{ADMISSION}/validatingadmissionpolicies"
THINGS = f"/apis/{older.GROUP}/v1/namespaces/default/things"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
EXPLAINED = (
    (
        "Go prints a node as an address, or with spaces that change from build to build",
        r"already exists for expression",
    ),
)
"""Differences in words that stay, each with what the server's side looks like."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One answer of each side."""

    question: Question
    subject: str
    server: str
    assay: str

    @property
    def same_class(self) -> bool:
        """Whether both accept, allow, deny or err."""
        return _class_of(self.server) == _class_of(self.assay)

    @property
    def explained(self) -> bool:
        """Whether the words differ for a reason that is written down."""
        return self.same_class and any(re.search(pattern, self.server) for _, pattern in EXPLAINED)


@pytest.fixture(scope="module", params=CHOICES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One of the servers, with every policy in its store."""
    with running(Path(request.param), tmp_path_factory.mktemp("release")) as started:
        yield started


def test_an_older_server_and_assay_say_the_same(server: ApiServer) -> None:
    """A policy is accepted or refused, and an object admitted or denied, with the same class and the same words."""
    version = as_text(dig(server.request("GET", "/version").body, "gitVersion"))
    questions = tuple(question for question in older.questions(SEED, EXPRESSIONS) if not crashes(question, version))
    apply(server, [older.definition()])
    for question in questions:
        put(server, question.policy)
        put(server, question.binding)
    wait_until_enforced(server)

    where = as_object(server.request("GET", "/api/v1/namespaces/default").body)
    compared = [comparison for question in questions for comparison in compare(server, question, version, where)]

    different = [
        comparison for comparison in compared if comparison.server != comparison.assay and not comparison.explained
    ]
    print(figures(version, compared), *map(shown, different[:SHOWN]), sep="\n")  # noqa: T201 - what `pytest -s` is for
    assert not different


def crashes(question: Question, version: str) -> bool:
    """Whether the policy ends the server that compiles it: a validator of literals looks for the parameter of dyn."""
    return CRASH in server_words.about_object(
        question.policy, question.binding, question.document, version, (older.THINGS,)
    )


def compare(server: ApiServer, question: Question, version: str, where: JsonObject) -> Iterator[Compared]:
    """Both questions about a policy."""
    yield Compared(
        question, "creation", created(server, question), server_words.about_creation(question.policy, version)
    )
    parts = (question.policy, question.binding, question.document)
    expected = server_words.about_object(*parts, version, (older.THINGS,), (where,))
    yield Compared(question, "object", denied(server, question), expected)


def created(server: ApiServer, question: Question) -> str:
    """Whether the server would store a policy that is new."""
    name = f"new-{as_text(dig(question.policy, 'metadata', 'name'))}"
    policy: JsonObject = {**question.policy, "metadata": {"name": name}}
    answer = server.request("POST", POLICIES, policy, {"dryRun": "All"})
    if answer.status == 201:
        return server_words.ACCEPTED
    return server_words.refusal_of_policy(as_text(dig(answer.body, "message")))


def denied(server: ApiServer, question: Question) -> str:
    """The message with which the stored policy denies its object."""
    answer = server.request("POST", THINGS, question.document, {"dryRun": "All"})
    if answer.status == 201:
        return server_words.ALLOWED
    return server_words.refusal_of_object(as_text(dig(answer.body, "message")))


def put(server: ApiServer, document: JsonObject) -> None:
    """Write a policy or a binding into the store, past everything that the server would say to it."""
    metadata: Json = {
        **as_object(document["metadata"]),
        "uid": str(uuid4()),
        "creationTimestamp": "2024-01-01T00:00:00Z",
    }
    key = f"/registry/{PLURALS[as_text(document['kind'])]}/{as_text(dig(document, 'metadata', 'name'))}"
    body = {"key": _encoded(key), "value": _encoded(json.dumps({**document, "metadata": metadata}))}
    answer = urllib3.request("POST", f"{server.store}/v3/kv/put", json=body)
    assert answer.status == 200, answer.data


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _class_of(answer: str) -> str:
    """Accepted or allowed, refused by the compiler, an error, a stop, or a denial."""
    if answer in (server_words.ACCEPTED, server_words.ALLOWED):
        return answer
    for kind in (
        "compilation failed",
        "must evaluate to",
        "compilation error",
        "cost limit exceeded",
        "resulted in error",
    ):
        if kind in answer:
            return kind
    return "denied"


def shown(comparison: Compared) -> str:
    """A difference as people read it."""
    return f"{comparison.question.about}, {comparison.subject}: {comparison.question.text}\n  server: {comparison.server}\n  assay:  {comparison.assay}"


def figures(version: str, compared: list[Compared]) -> str:
    """A row for each sort of question: how many, how many differ in class and in words, how many of those are explained."""
    lines = [f"\n{version}: {len(compared)} comparisons"]
    for about in sorted({comparison.question.about for comparison in compared}):
        rows = [comparison for comparison in compared if comparison.question.about == about]
        words = [comparison for comparison in rows if comparison.server != comparison.assay]
        classes = Counter(_class_of(comparison.server) for comparison in rows)
        shown = ", ".join(f"{number} {name}" for name, number in classes.most_common())
        lines.append(
            f"  {about}: {len(rows)} compared, {sum(not comparison.same_class for comparison in rows)} differ in class, "
            f"{len(words)} in words, {sum(comparison.explained for comparison in words)} of them explained ({shown})"
        )
    return "\n".join(lines)
