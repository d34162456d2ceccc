"""Defaults of workloads: `pkg/apis/apps/v1/defaults.go`."""

from __future__ import annotations

from scanner.model.json import JsonObject, as_object
from scanner.mutate.defaulting.rules import when_absent, when_zero
from scanner.mutate.walk import Rule, Rules, in_order, within

_APPS = "io.k8s.api.apps.v1."


def _rolling_update(rule: Rule) -> Rule:
    """Set the strategy to RollingUpdate where none is given, and fill in its parameters."""

    def apply(strategy: JsonObject) -> JsonObject:
        strategy = when_zero(type="RollingUpdate")(strategy)
        return within("rollingUpdate", rule)(strategy) if strategy["type"] == "RollingUpdate" else strategy

    return apply


def _stateful_strategy(strategy: JsonObject) -> JsonObject:
    """Default the type to RollingUpdate, and the partition where the strategy has parameters (`SetDefaults_StatefulSet`)."""
    if not strategy.get("type"):
        strategy = {**strategy, "type": "RollingUpdate", "rollingUpdate": as_object(strategy.get("rollingUpdate"))}
    if strategy["type"] != "RollingUpdate" or strategy.get("rollingUpdate") is None:
        return strategy
    return within("rollingUpdate", when_absent(partition=0))(strategy)


_replicas = when_absent(replicas=1)
_history = when_absent(revisionHistoryLimit=10)

RULES: Rules = {
    f"{_APPS}Deployment": within(  # SetDefaults_Deployment
        "spec",
        in_order(
            _replicas,
            within("strategy", _rolling_update(when_absent(maxUnavailable="25%", maxSurge="25%"))),
            _history,
            when_absent(progressDeadlineSeconds=600),
        ),
    ),
    f"{_APPS}DaemonSet": within(  # SetDefaults_DaemonSet
        "spec",
        in_order(within("updateStrategy", _rolling_update(when_absent(maxUnavailable=1, maxSurge=0))), _history),
    ),
    f"{_APPS}StatefulSet": within(  # SetDefaults_StatefulSet
        "spec",
        in_order(
            when_zero(podManagementPolicy="OrderedReady"),
            within("updateStrategy", _stateful_strategy),
            within("persistentVolumeClaimRetentionPolicy", when_zero(whenDeleted="Retain", whenScaled="Retain")),
            _replicas,
            _history,
        ),
    ),
    f"{_APPS}ReplicaSet": within("spec", _replicas),  # SetDefaults_ReplicaSet
}
