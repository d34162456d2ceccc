"""Our own replies to the requests about expressions, in the form of the programs (see expressions.go)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from scanner import cel
from scanner.admission.compiled import CompiledPolicy
from scanner.cluster.yaml import load
from scanner.model.release import Minor
from scanner.model.resource import Kind, resource_of
from scanner.policies.kyverno import libraries
from scanner.policies.kyverno.compile import compile_policy, own_words
from scanner.policies.kyverno.inventory import Inventory
from scanner.policies.kyverno.request import METERED, evaluated, with_doubles, with_variables
from scanner.policies.manifest import read_policy
from tests.oracle import ours

NOW = datetime(2026, 7, 1, tzinfo=UTC)
"""The time of our evaluations; those of the programs have the clock's."""


class Entries(Inventory):
    """The cluster data of a request: its collections, and the entries of the global context by name."""

    def __init__(self, collections: list[dict[str, Any]], entries: Mapping[str, Any]) -> None:
        kinds = {_kind(collection): collection for collection in collections}
        super().__init__(kinds, parse=load)
        self._given = entries
        for kind, collection in kinds.items():
            self.put(kind, "", [resource_of(kind, item) for item in collection.get("items", ())])

    def entry(self, name: str, projection: str, /) -> cel.Value:
        """See ClusterData."""
        return with_doubles(self._given.get(f"{name}/{projection}" if projection else name))


def _kind(collection: dict[str, Any]) -> Kind:
    group, _, version = collection["apiVersion"].rpartition("/")
    return Kind(group, version, collection["kind"], collection["resource"], namespaced=True)


def reply(release: Minor, request: dict[str, Any]) -> dict[str, Any]:
    """Return our reply to a request."""
    namespace = request.get("namespace", "")
    try:
        with ours.limited():
            compiled, program = _compiled(release, request)
            data = Entries(request.get("inventory", []), request.get("entries", {}))
            values = libraries.library_values(data, cel.Timestamp(int(NOW.timestamp()) * 10**9), namespace, release)
            outcomes = [_outcome(program, compiled, request, values, document) for document in request["objects"]]
    except cel.CompileError as error:
        return {"refused": own_words(error.detail)}
    except Exception as error:  # noqa: BLE001 (any crash is a finding)
        return {"panic": repr(error)}
    return {"resultType": program.result_type.full_name(), "outcomes": outcomes}


def _compiled(release: Minor, request: dict[str, Any]) -> tuple[CompiledPolicy, cel.Program]:
    """Return a policy with these variables, and an expression that may read them. Raises CompileError."""
    namespaced = bool(request.get("namespace"))
    entries = [{"name": each["name"], "expression": each["expression"]} for each in request.get("variables", ())]
    spec = {"spec": {"variables": entries}}
    policy = compile_policy(read_policy(spec, language="test"), release, namespaced=namespaced)
    environment = libraries.environment(release, namespaced=namespaced)
    for name, variable in policy.variables.items():
        if variable.program is None:
            raise cel.CompileError(variable.fault, variable.fault)
        declared = environment.composed.declare(name, variable.program.result_type)
        environment = replace(environment, composed=declared)
    return policy, cel.compile(request["expression"], environment)


def _outcome(
    program: cel.Program,
    compiled: CompiledPolicy,
    request: dict[str, Any],
    values: Mapping[str, object],
    document: Any,
) -> dict[str, Any]:
    base = {
        **values,
        "object": document,
        "oldObject": request.get("oldObject"),
        "request": request.get("request"),
        "namespaceObject": request.get("namespaceObject"),
        "exceptions": libraries.exempted([], []),
        METERED: True,
    }
    outcome = evaluated(program, with_variables(compiled, base))
    if isinstance(outcome, cel.EvaluationError):
        return {"error": str(outcome)}
    return {"value": ours.tagged(outcome)}
