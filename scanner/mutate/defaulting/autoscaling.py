"""Defaults of autoscalers: `pkg/apis/autoscaling/v1/defaults.go` and `v2/defaults.go`."""

from __future__ import annotations

from scanner.model.json import Json, JsonObject, as_object
from scanner.mutate.defaulting.rules import when_absent, when_zero
from scanner.mutate.walk import Rule, Rules, in_order, where, within

_AUTOSCALING = "io.k8s.api.autoscaling."
_HALF_BUSY: Json = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
]
_DOUBLE: JsonObject = {"type": "Percent", "value": 100, "periodSeconds": 15}
_FOUR_PODS: JsonObject = {"type": "Pods", "value": 4, "periodSeconds": 15}
_UP: JsonObject = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [_FOUR_PODS, _DOUBLE]}
_DOWN: JsonObject = {"selectPolicy": "Max", "policies": [_DOUBLE]}


def _scaling_rules(name: str, defaults: JsonObject) -> Rule:
    """`GenerateHPAScaleUpRules`, `GenerateHPAScaleDownRules`."""

    def apply(behavior: JsonObject) -> JsonObject:
        rules = as_object(behavior.get(name))
        return behavior if all(rules.get(key) is not None for key in defaults) else _with(behavior, name, rules)

    def _with(behavior: JsonObject, name: str, rules: JsonObject) -> JsonObject:
        return {**behavior, name: {**defaults, **{key: value for key, value in rules.items() if value is not None}}}

    return apply


RULES: Rules = {
    f"{_AUTOSCALING}v1.HorizontalPodAutoscaler": within("spec", when_absent(minReplicas=1)),
    f"{_AUTOSCALING}v2.HorizontalPodAutoscaler": within(  # SetDefaults_HorizontalPodAutoscaler
        "spec",
        in_order(
            when_absent(minReplicas=1),
            when_zero(metrics=_HALF_BUSY),
            where("behavior", in_order(_scaling_rules("scaleUp", _UP), _scaling_rules("scaleDown", _DOWN))),
        ),
    ),
}
