"""Which params a binding refers to, among the rule objects of a scan."""

from __future__ import annotations

import pytest

from scanner.model.json import JsonObject
from scanner.model.policy import ParamKind, ParamRef
from scanner.model.rule import RuleObject, RuleType
from scanner.model.selector import Requirement, Selector, parse_selector
from scanner.posture.history.causes import ParamReference, reference_of

CONFIG_MAP, LIMIT = ParamKind("v1", "ConfigMap"), ParamKind("example.com/v1", "Limit")
STRICT = parse_selector({"matchLabels": {"tier": "strict"}})
UNPARSABLE = Selector((Requirement("tier", "Near"),))


def param(name: str, tier: str = "strict", *, masked: bool = False) -> RuleObject:
    """A param by its kind and place, with a label."""
    document: JsonObject = {"metadata": {"labels": {"tier": tier}}}
    return RuleObject(RuleType.PARAM, name, "digest", document, masked)


def named(name: str = "limits", namespace: str = "") -> ParamRef:
    """A reference by name."""
    return ParamRef(name, namespace, None, "Deny")


def selecting(selector: Selector | None, namespace: str = "") -> ParamRef:
    """A reference by selector."""
    return ParamRef("", namespace, selector, "Deny")


@pytest.mark.parametrize(
    ("kind", "reference", "rule", "selected"),
    [
        pytest.param(CONFIG_MAP, named(), param("ConfigMap shop/limits"), True, id="name"),
        pytest.param(CONFIG_MAP, named(), param("ConfigMap shop/other"), False, id="another name"),
        pytest.param(CONFIG_MAP, named(), param("ConfigMap bank/limits"), False, id="another namespace"),
        pytest.param(CONFIG_MAP, named(), param("Secret shop/limits"), False, id="another kind"),
        pytest.param(LIMIT, named(), param("example.org/Limit limits"), False, id="another group"),
        pytest.param(CONFIG_MAP, named(namespace="bank"), param("ConfigMap bank/limits"), True, id="named namespace"),
        pytest.param(
            CONFIG_MAP, named(namespace="bank"), param("ConfigMap shop/limits"), False, id="not of the request"
        ),
        pytest.param(LIMIT, named(), param("example.com/Limit limits"), True, id="cluster-scoped"),
        pytest.param(LIMIT, selecting(Selector()), param("example.com/Limit limits"), True, id="empty selector"),
        pytest.param(CONFIG_MAP, selecting(STRICT), param("ConfigMap shop/limits"), True, id="selector"),
        pytest.param(CONFIG_MAP, selecting(STRICT), param("ConfigMap shop/limits", "lax"), False, id="another label"),
        pytest.param(
            CONFIG_MAP,
            selecting(STRICT),
            param("ConfigMap shop/limits", "lax", masked=True),
            True,
            id="withheld labels",
        ),
        pytest.param(
            CONFIG_MAP, selecting(None), param("ConfigMap shop/limits"), False, id="neither name nor selector"
        ),
        pytest.param(
            CONFIG_MAP, selecting(UNPARSABLE), param("ConfigMap shop/limits"), False, id="unparsable selector"
        ),
    ],
)
def test_a_reference_selects_params(kind: ParamKind, reference: ParamRef, rule: RuleObject, *, selected: bool) -> None:
    """For a request in the namespace shop."""
    assert selected is ParamReference(kind, reference).selects(rule, "shop")


def test_a_policy_that_is_not_known_refers_to_no_params() -> None:
    """Nor does a binding that is not known."""
    assert reference_of(None, None) is None
