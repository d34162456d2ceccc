"""Defaults of jobs: `pkg/apis/batch/v1/defaults.go`."""

from __future__ import annotations

from scanner.model.json import JsonObject, as_object, dig
from scanner.mutate.defaulting.rules import when_absent, when_zero
from scanner.mutate.walk import Rules, in_order, within

_BATCH = "io.k8s.api.batch.v1."
_RETRIES = 6
_UNLIMITED = 2**31 - 1


def _job_spec(spec: JsonObject) -> JsonObject:
    """`SetDefaults_Job`."""
    if spec.get("parallelism") is None:
        spec = when_absent(completions=1)(spec) if spec.get("completions") is None else spec
        spec = {**spec, "parallelism": 1}
    limited_by_index = spec.get("backoffLimitPerIndex") is not None
    replaced = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    return when_absent(
        backoffLimit=_UNLIMITED if limited_by_index else _RETRIES,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy=replaced,
        manualSelector=False,
    )(spec)


def _template_labels(job: JsonObject) -> JsonObject:
    """A job without labels has those of its template (`SetDefaults_Job`)."""
    labels = as_object(dig(job, "spec", "template", "metadata", "labels"))
    return within("metadata", when_zero(labels=labels))(job) if labels else job


RULES: Rules = {
    f"{_BATCH}Job": in_order(within("spec", _job_spec), _template_labels),
    f"{_BATCH}CronJob": within(  # SetDefaults_CronJob
        "spec",
        in_order(
            when_zero(concurrencyPolicy="Allow"),
            when_absent(suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1),
        ),
    ),
    f"{_BATCH}PodFailurePolicyOnPodConditionsPattern": when_zero(status="True"),
}
