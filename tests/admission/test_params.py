"""The param objects that a binding selects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from scanner.admission.params import explain_unserved, resolve_params
from scanner.errors import ConfigurationError
from scanner.model.policy import Binding, ParamKind, Policy
from scanner.model.resource import Kind, Resource, resource_of
from scanner.policies.manifest import read_binding, read_policy
from tests import documents
from tests.documents import CONFIG_MAPS, LIMITS, thing


class ParamList:
    """Param objects of two kinds. Satisfies ParamSource."""

    def __init__(self, *objects: Resource) -> None:
        self.objects = objects

    def find_kind(self, param_kind: ParamKind) -> Kind | None:
        return next(
            (kind for kind in (CONFIG_MAPS, LIMITS) if (kind.api_version, kind.kind) == _named(param_kind)), None
        )

    def get(self, kind: Kind, namespace: str, name: str) -> Resource | None:
        return next((param for param in self.list_all(kind, namespace) if param.name == name), None)

    def list_all(self, kind: Kind, namespace: str) -> Iterable[Resource]:
        return [param for param in self.objects if (param.kind, param.namespace) == (kind, namespace)]


def _named(param_kind: ParamKind) -> tuple[str, str]:
    return param_kind.api_version, param_kind.kind


def a_param(kind: Kind, name: str, namespace: str = "", **labels: str) -> Resource:
    """A param object."""
    return resource_of(kind, thing(kind, name, namespace, metadata={"labels": labels}))


PARAMS = ParamList(
    a_param(CONFIG_MAPS, "b", "default", tier="gold"),
    a_param(CONFIG_MAPS, "a", "default"),
    a_param(CONFIG_MAPS, "a", "other", tier="gold"),
    a_param(LIMITS, "z", tier="gold"),
    a_param(LIMITS, "y"),
)


def a_policy(kind: Kind | None) -> Policy:
    """A policy with params of a kind."""
    spec = {} if kind is None else {"paramKind": {"apiVersion": kind.api_version, "kind": kind.kind}}
    return read_policy(documents.policy("p", "true", **spec), language="any")


def a_binding(**reference: Any) -> Binding:
    """A binding with a paramRef, or with none."""
    spec = {"paramRef": {"parameterNotFoundAction": "Allow", **reference}} if reference else {}
    return read_binding(documents.binding("b", "p", **spec), language="any")


def names_of_params(kind: Kind | None, namespace: str, reference: dict[str, Any]) -> list[str | None]:
    """The params for a request in a namespace, as namespace/name."""
    params = resolve_params(a_policy(kind), a_binding(**reference), namespace, PARAMS)
    return [None if param is None else f"{param.namespace}/{param.name}" for param in params]


@pytest.mark.parametrize(
    ("expected", "kind", "namespace", "reference"),
    [
        ([None], None, "default", {}),
        ([None], None, "default", {"name": "a"}),
        ([None], CONFIG_MAPS, "default", {}),
        (["default/a"], CONFIG_MAPS, "default", {"name": "a"}),
        (["other/a"], CONFIG_MAPS, "default", {"name": "a", "namespace": "other"}),
        (["other/a"], CONFIG_MAPS, "", {"name": "a", "namespace": "other"}),
        (["default/a", "default/b"], CONFIG_MAPS, "default", {"selector": {}}),
        (["default/b"], CONFIG_MAPS, "default", {"selector": {"matchLabels": {"tier": "gold"}}}),
        ([], CONFIG_MAPS, "empty", {"selector": {}}),
        ([], CONFIG_MAPS, "default", {"name": "missing"}),
        (["/z"], LIMITS, "default", {"name": "z"}),
        (["/y", "/z"], LIMITS, "", {"selector": {}}),
    ],
)
def test_what_a_reference_means(
    expected: list[str | None], kind: Kind | None, namespace: str, reference: dict[str, Any]
) -> None:
    """Without paramKind or paramRef there is one evaluation without a param; the default namespace is the request's."""
    assert expected == names_of_params(kind, namespace, reference)


@pytest.mark.parametrize(
    ("text", "kind", "namespace", "reference"),
    [
        (
            "no params found for policy binding with `Deny` parameterNotFoundAction",
            CONFIG_MAPS,
            "default",
            {"name": "missing", "parameterNotFoundAction": "Deny"},
        ),
        (
            "no params found for policy binding with `Deny` parameterNotFoundAction",
            CONFIG_MAPS,
            "empty",
            {"selector": {}, "parameterNotFoundAction": "Deny"},
        ),
        (
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
            CONFIG_MAPS,
            "",
            {"name": "a"},
        ),
        (
            "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
            LIMITS,
            "default",
            {"name": "z", "namespace": "default"},
        ),
        (
            "paramRef.name and paramRef.selector are mutually exclusive",
            LIMITS,
            "default",
            {"name": "z", "selector": {}},
        ),
        ("one of name or selector must be provided", LIMITS, "default", {"parameterNotFoundAction": "Deny"}),
        (
            "failed to find resource referenced by paramKind: 'example.com/v2, Kind=Limit'",
            Kind("example.com", "v2", "Limit", "limits", namespaced=False),
            "default",
            {"name": "z"},
        ),
    ],
)
def test_configuration_errors(text: str, kind: Kind, namespace: str, reference: dict[str, Any]) -> None:
    """The texts are those of the server."""
    with pytest.raises(ConfigurationError) as caught:
        names_of_params(kind, namespace, reference)
    assert text == str(caught.value)


@pytest.mark.parametrize("objects", [PARAMS.objects, PARAMS.objects[-1:], ()])
def test_a_selector_that_cannot_be_parsed_is_always_an_error(objects: tuple[Resource, ...]) -> None:
    """The server parses the selector before it reads params."""
    broken = {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}}
    with pytest.raises(ConfigurationError, match="values set can't be empty"):
        resolve_params(a_policy(LIMITS), a_binding(**broken), "default", ParamList(*objects))


@pytest.mark.parametrize(
    ("expected", "kind"),
    [
        ("", None),
        ("", LIMITS),
        (
            "failed to find resource referenced by paramKind: '/v1, Kind=Nonexistent'",
            Kind("", "v1", "Nonexistent", "x", namespaced=True),
        ),
    ],
)
def test_param_kinds_that_are_not_served(expected: str, kind: Kind | None) -> None:
    """The core group is empty before the slash."""
    assert expected == explain_unserved(a_policy(kind), PARAMS)
