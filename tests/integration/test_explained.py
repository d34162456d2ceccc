"""The table of the mutation fuzz explains the known differences, and no similar ones."""

from __future__ import annotations

import pytest

from scanner.api import UserInfo
from scanner.model.json import JsonObject
from scanner.model.policy import Operation
from tests.integration.fuzz import explained
from tests.integration.fuzz.case import Case, Made, Outcome, Refused
from tests.integration.fuzz.compare import Compared, compared

CASE = Case((), UserInfo("tester"), "", "")
NO_PORT = 'Gadget.fuzz.example.com "empty" is invalid: spec.port: Invalid value: "{0}": spec.port in body must be of type integer,string: "{0}"'
NO_POLICY = 'HorizontalPodAutoscaler.autoscaling "scale" is invalid: spec.behavior.{}: Required value: must specify at least one Policy'
NO_FIELD = (
    'CustomResourceDefinition.apiextensions.k8s.io "gadgets" is invalid: {}: Forbidden: dependencies is not supported]'
)
UNLIKE: JsonObject = {"kind": "Job", "metadata": {}}


def differing(where: str, operation: Operation, theirs: Outcome) -> Compared:
    """A case of which Assay predicts that the object is left as it is."""
    return compared(CASE, where, operation, theirs, Made(UNLIKE))


def labelled(**labels: str) -> Made:
    """A Job with labels of its own."""
    document: JsonObject = {"kind": "Job", "metadata": {"labels": {**labels}}}
    return Made(document)


@pytest.mark.parametrize(
    ("is_explained", "difference"),
    [
        (True, differing("Gadget/empty", "UPDATE", Refused(422, NO_PORT.format("null")))),
        (False, differing("Gadget/empty", "UPDATE", Refused(422, NO_PORT.format("array")))),
        (
            True,
            differing("HorizontalPodAutoscaler/scale", "UPDATE", Refused(422, NO_POLICY.format("scaleUp.policies"))),
        ),
        (False, differing("HorizontalPodAutoscaler/scale", "UPDATE", Refused(422, NO_POLICY.format("scaleUp.other")))),
        (True, differing("CustomResourceDefinition/gadgets", "UPDATE", Refused(422, NO_FIELD.format("[spec")))),
        (False, differing("CustomResourceDefinition/gadgets", "UPDATE", Refused(500, NO_FIELD.format("[spec")))),
        (True, differing("Job/once", "CREATE", labelled(**{"controller-uid": "6ec2"}))),
        (False, differing("Job/once", "UPDATE", labelled(**{"controller-uid": "6ec2"}))),
        (False, differing("Pod/once", "CREATE", labelled(**{"controller-uid": "6ec2"}))),
    ],
)
def test_a_difference_has_a_reason_or_none(*, is_explained: bool, difference: Compared) -> None:
    """Where Assay predicts no change, the table explains these answers of the server and no others."""
    assert is_explained == (explained.reason(difference, changed=False) is not None)


@pytest.mark.parametrize(("is_explained", "noun"), [(True, "resource name"), (False, "resource")])
def test_an_empty_runtime_class_is_refused_by_its_plugin(*, is_explained: bool, noun: str) -> None:
    """Where Assay predicts the change, the table explains the server's look-up of the class."""
    difference = differing("Pod/small", "CREATE", Refused(500, f"{noun} may not be empty"))
    assert is_explained == (explained.reason(difference, changed=True) is not None)
