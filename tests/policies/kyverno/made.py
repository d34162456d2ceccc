"""Manifests and objects for the tests of this folder, and their results."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scanner.admission.auditability import AUDITABLE
from scanner.api import Auditor, InvocationResult, KyvernoContext, UserInfo
from scanner.cluster.definitions import builtin_kinds
from scanner.model.outcome import CheckResult
from scanner.model.release import Minor
from scanner.model.resource import Kind
from scanner.policies.kyverno.autogen import served_by
from scanner.policies.kyverno.libraries import ClusterData, NoClusterData
from scanner.policies.kyverno.modes import ADMISSION, CLI, CONTROLLER, KyvernoMode
from scanner.policies.kyverno.releases import NEWEST
from scanner.policies.kyverno.result import Result, result_of
from scanner.policies.kyverno.spec import read_policy

NOW = datetime(2026, 7, 1, tzinfo=UTC)
MODES = {"admission": ADMISSION, "controller": CONTROLLER, "cli": CLI}


def policy(
    *validations: Any,
    resources: tuple[str, ...] = ("pods",),
    group: str = "",
    kind: str = "ValidatingPolicy",
    name: str = "checks",
    match: Any = None,
    metadata: Any = None,
    **spec: Any,
) -> Any:
    """A policy for the creation of some resources; a validation is an expression or a whole map."""
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [*resources]}
    entries = [{"expression": validation} if isinstance(validation, str) else validation for validation in validations]
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"matchConstraints": {"resourceRules": [rule], **(match or {})}, "validations": entries, **spec},
    }


def exception(name: str = "let-be", *, namespace: str = "team", labels: Any = None, **spec: Any) -> Any:
    """An exception of the policy `checks`."""
    references = [{"name": "checks", "kind": "ValidatingPolicy"}]
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"policyRefs": references, **spec},
    }


def pod(name: str = "web", *, namespace: str = "team", labels: Any = None, **spec: Any) -> Any:
    """A Pod of one container."""
    containers = [{"name": "main", "image": "nginx"}]
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def deployment(name: str = "web", *, labels: Any = None, **template: Any) -> Any:
    """A Deployment whose template is a Pod's."""
    made = pod("", labels=labels, **template)
    body = {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"replicas": 1, "template": body},
    }


def invocation_results(
    document: Any,
    *policies: Any,
    exceptions: tuple[Any, ...] = (),
    mode: KyvernoMode = ADMISSION,
    cluster_data: ClusterData | None = None,
    namespaces: tuple[Any, ...] = (),
    operation: Any = None,
    release: Minor = NEWEST,
    kinds: tuple[Kind, ...] = (),
) -> tuple[InvocationResult, ...]:
    """The results of policies for an object, one for each invocation. `kinds` are served besides those that are built in."""
    served = (*builtin_kinds(), *kinds)
    auditor = Auditor(
        policies=policies,
        bindings=(),
        namespaces=namespaces,
        kinds=served,
        user=UserInfo(),
        exceptions=exceptions,
        kyverno_context=KyvernoContext(
            NOW,
            mode,
            cluster_data or NoClusterData(),
            (operation,) if operation else AUDITABLE,
            release=release,
            resolve=served_by(served),
        ),
    )
    return auditor.evaluate(document, operation=operation)


def check_results(document: Any, *policies: Any, **kyverno_context: Any) -> tuple[CheckResult, ...]:
    """The check results of the only policy and variant that matches."""
    (invocation_result,) = invocation_results(document, *policies, **kyverno_context)
    return invocation_result.check_results


def outcomes(document: Any, *policies: Any, **kyverno_context: Any) -> list[str]:
    """The names of the outcomes of the only policy and variant that matches."""
    return [
        type(check_result.outcome).__name__ for check_result in check_results(document, *policies, **kyverno_context)
    ]


def result(document: Any, manifest: Any, *, mode: KyvernoMode = CONTROLLER, **kyverno_context: Any) -> Result:
    """The result in Kyverno's report."""
    (invocation_result,) = invocation_results(document, manifest, mode=mode, **kyverno_context)
    return result_of(read_policy(manifest), invocation_result.invocation.policy, invocation_result.check_results)


def write_documents(folder: Path, name: str, *documents: Any) -> Path:
    """Write documents into a file of a folder, and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n---\n".join(map(json.dumps, documents)))
    return path
