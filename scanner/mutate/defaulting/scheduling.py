"""Defaults of priority classes and pod groups: `pkg/apis/scheduling/*/defaults.go`, and `+default` in `types.go`."""

from __future__ import annotations

from scanner.mutate.defaulting.rules import when_absent
from scanner.mutate.walk import Rules

_SCHEDULING = "io.k8s.api.scheduling."
_priority = when_absent(preemptionPolicy="PreemptLowerPriority")  # SetDefaults_PriorityClass

RULES: Rules = {
    f"{_SCHEDULING}v1.PriorityClass": _priority,
    f"{_SCHEDULING}v1beta1.PriorityClass": _priority,
    f"{_SCHEDULING}v1alpha2.PodGroupSpec": when_absent(disruptionMode="Pod"),
}
