"""What the server answers to a request on a pod or on a workload with a template: the refusal, the warning, the audit annotations.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38, `admission/admission.go`.

Rules: `docs/semantics/pod-security.md#requests`, `docs/semantics/pod-security.md#answers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from scanner.model.json import JsonObject
from scanner.model.resource import Kind
from scanner.policies.pod_security.baseline import Failure
from scanner.policies.pod_security.configuration import Configuration
from scanner.policies.pod_security.labels import Demand, LabelFault, Mode, NamespacePolicy, read_labels
from scanner.policies.pod_security.pods import find_template, read_pod
from scanner.policies.pod_security.standards import Server, judge


@dataclass(frozen=True, slots=True)
class Answer:
    """The text after `pods "NAME" is forbidden: ` or empty, the warning or empty, and the audit annotations."""

    refusal: str = ""
    warning: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


_ADMITTED: Final = Answer()
_PRIVILEGED: Final = Answer(annotations={"enforce-policy": str(Demand())})
"""The server names the latest version here instead of that of the labels."""


def write_failures(failures: Iterable[Failure]) -> str:
    """The reasons and details of failures, as the server joins them."""
    return ", ".join(failure.text for failure in failures)


def answer(
    kind: Kind,
    body: JsonObject,
    labels: Mapping[str, str],
    *,
    namespace: str,
    user: str,
    configuration: Configuration,
    server: Server,
) -> Answer:
    """The answer to the creation of an object by a user, in a namespace with some labels.

    An update is answered alike if it is significant; see `is_significant`.
    """
    is_pod = (kind.group, kind.plural) == ("", "pods")
    if exemption := configuration.find_exemption(namespace, user):
        return Answer(annotations={"exempt": exemption})
    policy = read_labels(labels, configuration.defaults)
    modes = tuple(Mode) if is_pod else (Mode.AUDIT, Mode.WARN)
    if not policy.faults and policy.is_off_in(*modes):
        return _PRIVILEGED if is_pod else _ADMITTED
    found = find_template(kind, body)
    if found is None:
        return _ADMITTED
    pod = read_pod(*found)
    if exemption := configuration.find_runtime_exemption(pod.spec):
        return Answer(annotations={"exempt": exemption})
    results: dict[Demand, str] = {}
    for demand in {policy.demands[mode] for mode in modes}:
        results[demand] = write_failures(judge(*demand, server, pod).values())
    annotations = _describe_enforced(policy) if is_pod else {}
    if policy.faults:
        annotations["error"] = f"Failed to parse policy: {write_faults(policy.faults)}"
    refused, audited, warned = (results.get(policy.demands[mode], "") for mode in Mode)
    if audited:
        annotations["audit-violations"] = f"would violate PodSecurity {_quote(policy, Mode.AUDIT)}: {audited}"
    refusal = f"violates PodSecurity {_quote(policy, Mode.ENFORCE)}: {refused}" if is_pod and refused else ""
    warning = f"would violate PodSecurity {_quote(policy, Mode.WARN)}: {warned}" if warned and not refusal else ""
    return Answer(refusal, warning, annotations)


def _quote(policy: NamespacePolicy, mode: Mode) -> str:
    return f'"{policy.demands[mode]}"'


def _describe_enforced(policy: NamespacePolicy) -> dict[str, str]:
    return {"enforce-policy": str(policy.demands[Mode.ENFORCE])}


def write_faults(faults: Iterable[LabelFault]) -> str:
    """Errors as the server joins them: one alone, several in brackets."""
    texts = list(map(str, faults))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


NOT_JUDGED: Final = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"},
)
"""The subresources of pods whose requests are not judged."""
