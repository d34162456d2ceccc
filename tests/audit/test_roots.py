"""Every variable of an expression has a class: what of its values is shown."""

from __future__ import annotations

import pytest

from scanner.admission.compiled import compile_policy
from scanner.audit.taint import is_secret_elsewhere
from scanner.cel.checking.env import ADMISSION, AUTHORIZATION, PARAMS
from scanner.policies.kyverno import libraries
from scanner.policies.kyverno.compile import compile_policy as compile_kyverno
from scanner.policies.kyverno.releases import NEWEST, OLDEST
from scanner.policies.kyverno.spec import read_policy as read_kyverno
from scanner.policies.validating.language import read_policy
from tests.documents import policy
from tests.policies.kyverno.made import policy as kyverno_policy

DOCUMENTS = {"object", "oldObject", "params", "namespaceObject"}
"""Their sensitive fields are withheld."""
RESOLVED = {"variables"}
"""The variables of the policy: what they read counts."""
OPEN = {"authorizer", "authorizer.requestResource", "exceptions", "json", "yaml", libraries.syntax.NOW}
PARTLY = {"request", "resource"}
SECRET = {"http", "image", "globalContext", "mylib_version"}
ALL = [(1, minor) for minor in range(OLDEST[1], NEWEST[1] + 1)]
KUBERNETES = compile_policy(read_policy(policy("p", "true")))
FORM = next(form for _, form in read_kyverno(kyverno_policy("true")).variants())
KYVERNO = compile_kyverno(FORM, NEWEST, namespaced=False)


def test_every_variable_has_a_class() -> None:
    """A variable that a release or a language adds needs a decision, and a row here."""
    of_kyverno = (name for release in ALL for name, _ in libraries.environment(release, namespaced=False).variables)
    declared = {name for name, _ in (*ADMISSION, *PARAMS, *AUTHORIZATION)}.union(of_kyverno)
    assert declared == DOCUMENTS | RESOLVED | OPEN | PARTLY | SECRET


@pytest.mark.parametrize("root", sorted(OPEN | DOCUMENTS))
def test_an_open_variable_is_no_secret(root: str) -> None:
    """The secrets of documents are found in the documents."""
    assert not is_secret_elsewhere(root, ("data",), KYVERNO)


@pytest.mark.parametrize("root", sorted(SECRET))
def test_a_value_of_a_secret_variable_is_a_secret(root: str) -> None:
    """The number of its parts is none."""
    assert is_secret_elsewhere(root, ("metadata", "name"), KYVERNO)
    assert not is_secret_elsewhere(root, ("items", "#"), KYVERNO)


def test_an_unknown_variable_is_a_secret() -> None:
    """Also one that another language declares."""
    assert is_secret_elsewhere("vault", ("address",), KYVERNO)
    assert is_secret_elsewhere("resource", ("metadata", "name"), KUBERNETES)


@pytest.mark.parametrize(
    ("root", "steps", "secret"),
    [
        ("request", ("namespace",), False),
        ("request", ("userInfo", "username"), False),
        ("request", ("userInfo", "groups"), False),
        ("request", ("userInfo", "uid"), True),
        ("request", ("userInfo", "extra", "a"), True),
        ("request", ("userInfo",), True),
        ("request", (), True),
        ("resource", (), True),
        ("resource", ("kind",), False),
        ("resource", ("metadata", "name"), False),
        ("resource", ("metadata", "namespace"), False),
        ("resource", ("metadata",), True),
        ("resource", ("metadata", "annotations", "a"), True),
        ("resource", ("metadata", "labels", "a"), True),
        ("resource", ("data", "a"), True),
        ("resource", ("items",), True),
        ("resource", ("items", "#"), False),
        ("resource", ("items", "*"), True),
        ("resource", ("items", "*", "metadata", "name"), False),
        ("resource", ("items", "*", "data", "name"), True),
    ],
)
def test_what_is_shown_of_requests_and_of_other_objects(root: str, steps: tuple[str, ...], *, secret: bool) -> None:
    """The name and the groups of the requester, and the names and kinds of other objects."""
    assert secret == is_secret_elsewhere(root, steps, KYVERNO)
