"""Defaults of workloads: `pkg/apis/{apps,batch,autoscaling,scheduling}/*/defaults.go`."""

from __future__ import annotations

from scanner.model.json import Json, JsonObject, as_object, dig
from scanner.mutate.walk import Rule, Rules, apply_when_set, apply_within, chain_rules, fill_absent, fill_zero

_APPS = "io.k8s.api.apps.v1."


def _make_rolling_update_rule(rule: Rule) -> Rule:
    """Set the strategy to RollingUpdate where none is given, and fill in its parameters."""

    def apply(strategy: JsonObject) -> JsonObject:
        strategy = fill_zero(type="RollingUpdate")(strategy)
        return apply_within("rollingUpdate", rule)(strategy) if strategy["type"] == "RollingUpdate" else strategy

    return apply


def _default_stateful_strategy(strategy: JsonObject) -> JsonObject:
    """Default the type to RollingUpdate, and the partition where the strategy has parameters (`SetDefaults_StatefulSet`)."""
    if not strategy.get("type"):
        strategy = {**strategy, "type": "RollingUpdate", "rollingUpdate": as_object(strategy.get("rollingUpdate"))}
    if strategy["type"] != "RollingUpdate" or strategy.get("rollingUpdate") is None:
        return strategy
    return apply_within("rollingUpdate", fill_absent(partition=0))(strategy)


_replicas = fill_absent(replicas=1)
_history = fill_absent(revisionHistoryLimit=10)

APPS_RULES: Rules = {
    f"{_APPS}Deployment": apply_within(  # SetDefaults_Deployment
        "spec",
        chain_rules(
            _replicas,
            apply_within("strategy", _make_rolling_update_rule(fill_absent(maxUnavailable="25%", maxSurge="25%"))),
            _history,
            fill_absent(progressDeadlineSeconds=600),
        ),
    ),
    f"{_APPS}DaemonSet": apply_within(  # SetDefaults_DaemonSet
        "spec",
        chain_rules(
            apply_within("updateStrategy", _make_rolling_update_rule(fill_absent(maxUnavailable=1, maxSurge=0))),
            _history,
        ),
    ),
    f"{_APPS}StatefulSet": apply_within(  # SetDefaults_StatefulSet
        "spec",
        chain_rules(
            fill_zero(podManagementPolicy="OrderedReady"),
            apply_within("updateStrategy", _default_stateful_strategy),
            apply_within("persistentVolumeClaimRetentionPolicy", fill_zero(whenDeleted="Retain", whenScaled="Retain")),
            _replicas,
            _history,
        ),
    ),
    f"{_APPS}ReplicaSet": apply_within("spec", _replicas),  # SetDefaults_ReplicaSet
}


# Defaults of jobs: `pkg/apis/batch/v1/defaults.go`.

_BATCH = "io.k8s.api.batch.v1."
_RETRIES = 6
_UNLIMITED = 2**31 - 1


def _default_job_spec(spec: JsonObject) -> JsonObject:
    """`SetDefaults_Job`."""
    if spec.get("parallelism") is None:
        spec = fill_absent(completions=1)(spec) if spec.get("completions") is None else spec
        spec = {**spec, "parallelism": 1}
    limited_by_index = spec.get("backoffLimitPerIndex") is not None
    replaced = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    return fill_absent(
        backoffLimit=_UNLIMITED if limited_by_index else _RETRIES,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy=replaced,
        manualSelector=False,
    )(spec)


def _default_template_labels(job: JsonObject) -> JsonObject:
    """A job without labels has those of its template (`SetDefaults_Job`)."""
    labels = as_object(dig(job, "spec", "template", "metadata", "labels"))
    return apply_within("metadata", fill_zero(labels=labels))(job) if labels else job


BATCH_RULES: Rules = {
    f"{_BATCH}Job": chain_rules(apply_within("spec", _default_job_spec), _default_template_labels),
    f"{_BATCH}CronJob": apply_within(  # SetDefaults_CronJob
        "spec",
        chain_rules(
            fill_zero(concurrencyPolicy="Allow"),
            fill_absent(suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1),
        ),
    ),
    f"{_BATCH}PodFailurePolicyOnPodConditionsPattern": fill_zero(status="True"),
}


# Defaults of autoscalers: `pkg/apis/autoscaling/v1/defaults.go` and `v2/defaults.go`.

_AUTOSCALING = "io.k8s.api.autoscaling."
_HALF_BUSY: Json = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
]
_DOUBLE: JsonObject = {"type": "Percent", "value": 100, "periodSeconds": 15}
_FOUR_PODS: JsonObject = {"type": "Pods", "value": 4, "periodSeconds": 15}
_UP: JsonObject = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [_FOUR_PODS, _DOUBLE]}
_DOWN: JsonObject = {"selectPolicy": "Max", "policies": [_DOUBLE]}


def _make_scaling_rule(name: str, defaults: JsonObject) -> Rule:
    """`GenerateHPAScaleUpRules`, `GenerateHPAScaleDownRules`."""

    def apply(behavior: JsonObject) -> JsonObject:
        rules = as_object(behavior.get(name))
        return behavior if all(rules.get(key) is not None for key in defaults) else _with(behavior, name, rules)

    def _with(behavior: JsonObject, name: str, rules: JsonObject) -> JsonObject:
        return {**behavior, name: {**defaults, **{key: value for key, value in rules.items() if value is not None}}}

    return apply


AUTOSCALING_RULES: Rules = {
    f"{_AUTOSCALING}v1.HorizontalPodAutoscaler": apply_within("spec", fill_absent(minReplicas=1)),
    f"{_AUTOSCALING}v2.HorizontalPodAutoscaler": apply_within(  # SetDefaults_HorizontalPodAutoscaler
        "spec",
        chain_rules(
            fill_absent(minReplicas=1),
            fill_zero(metrics=_HALF_BUSY),
            apply_when_set(
                "behavior", chain_rules(_make_scaling_rule("scaleUp", _UP), _make_scaling_rule("scaleDown", _DOWN))
            ),
        ),
    ),
}


# Defaults of priority classes and pod groups: `pkg/apis/scheduling/*/defaults.go`, and `+default` in `types.go`.

_SCHEDULING = "io.k8s.api.scheduling."
_priority = fill_absent(preemptionPolicy="PreemptLowerPriority")  # SetDefaults_PriorityClass

SCHEDULING_RULES: Rules = {
    f"{_SCHEDULING}v1.PriorityClass": _priority,
    f"{_SCHEDULING}v1beta1.PriorityClass": _priority,
    f"{_SCHEDULING}v1alpha2.PodGroupSpec": fill_absent(disruptionMode="Pod"),
}
