"""The auditability of a policy: how far an evaluation of stored objects can stand for admission.

Static, before any object is read: the access paths of the expressions that decide outcomes, and the operations of the rules.
A path that stops short of a field (`object == oldObject`, `dyn(request)`) reads everything below it: a class too many
warns, a class too few would let a policy that exempts the scanner's user look clean.

Source of truth: the Kubernetes API conventions for what a server sets in metadata and status, and
`AdmissionRequest` of `admission.k8s.io/v1` for the fields of a request.

Rules: `docs/semantics/cel-environment.md#request`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scanner.admission.compiled import CompiledPolicy
from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import Operation, Policy
from scanner.model.reading import Auditability, CheckReading, Reading

AUDITABLE: tuple[Operation, ...] = ("CREATE", "UPDATE")
OPERATIONS: Mapping[str, tuple[Operation, ...]] = {"auto": AUDITABLE, "create": ("CREATE",), "update": ("UPDATE",)}

Paths = frozenset[tuple[str, ...]]

# The fields of a request besides the object depend on the user who makes the request.
_REQUESTER = (("request", "userInfo"), ("request", "options"), ("request", "dryRun"), ("authorizer",))
_SET_IN_METADATA = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
# The fields of the spec that a scheduler, an allocator or a binder sets after the object was admitted.
_SET_IN_SPEC = ("nodeName", "clusterIP", "clusterIPs", "volumeName", "claimRef")
# The old object has a class of its own.
_SERVER_SET = (("object", "status"), *(("object", "metadata", name) for name in _SET_IN_METADATA))
_FILLED_IN = tuple(("object", "spec", name) for name in _SET_IN_SPEC)


def classify_policy(compiled: CompiledPolicy, operations: tuple[Operation, ...] = AUDITABLE) -> Reading:
    """The classes of a policy and of each of its checks, for requests of these operations."""
    conditions = Check(CheckKind.CONDITIONS)
    before = compiled.reads(conditions)
    check_readings = (CheckReading(check, _classify_paths(before | compiled.reads(check))) for check in compiled.checks)
    first = (CheckReading(conditions, _classify_paths(before)),) if compiled.conditions else ()
    checks = (*first, *check_readings)
    reason = explain_unauditable(compiled.policy, operations)
    classes_found = {classes_found for check_reading in checks for classes_found in check_reading.classes} | (
        {Auditability.OPERATIONS} if reason else set()
    )
    classes = tuple(class_ for class_ in Auditability if class_ in classes_found)
    return Reading(classes or (Auditability.FULL,), checks, reason)


def _classify_paths(paths: Paths) -> tuple[Auditability, ...]:
    reads = {
        Auditability.REQUESTER: _meets(paths, _REQUESTER),
        Auditability.OLD_OBJECT: any(path[0] == "oldObject" for path in paths),
        Auditability.SERVER_SET: _meets(paths, _SERVER_SET) or _enters(paths, _FILLED_IN),
        Auditability.AUTHORIZER: any(path[0] == "authorizer" for path in paths),
    }
    return tuple(class_ for class_, read in reads.items() if read)


def _meets(paths: Paths, areas: Iterable[tuple[str, ...]]) -> bool:
    """Return whether a path leads to an area, into an area, or to a parent of an area."""
    return any(
        all(step == expected for step, expected in zip(path, area, strict=False)) for path in paths for area in areas
    )


def _enters(paths: Paths, areas: Iterable[tuple[str, ...]]) -> bool:
    """Return whether a path leads to an area, or into an area. Nearly every policy selects a whole spec."""
    return any(path[: len(area)] == area for path in paths for area in areas)


def explain_unauditable(policy: Policy, operations: tuple[Operation, ...] = AUDITABLE) -> str:
    """The reason why no stored object can be evaluated against a policy, or an empty string."""
    rules = policy.match.rules if policy.match else ()
    writes = [rule for rule in rules if {"*", *operations} & set(rule.operations)]
    if rules and not writes:
        operations_of_rules = {operation for rule in rules for operation in rule.operations}
        return f"its rules name only {', '.join(sorted(operations_of_rules))}: {_describe_missing(operations_of_rules, operations)}"
    if rules and all("/" in resource and not resource.endswith("/*") for rule in writes for resource in rule.resources):
        return "its rules name only subresources: no list shows their objects"
    return ""


def _describe_missing(operations_of_rules: set[str], operations: tuple[Operation, ...]) -> str:
    if operations_of_rules.isdisjoint(AUDITABLE):
        return "no write of a stored object"
    return f"this scan asks about {' and '.join(operations)} alone, see --operation"
