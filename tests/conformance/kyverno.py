"""The file `kyverno`: the results of Kyverno's command line in its own test suites, suite by suite."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.suite import check
from scanner.suite.kyverno import suite_of
from tests.conformance.cases import Result

_NOW = datetime(2026, 8, 21, tzinfo=UTC)
_UNRECORDED = {"http", "json", "globalcontext"}
_OTHER_KINDS = ("MutatingPolicy", "ImageValidatingPolicy", "ClusterPolicy")


def compare_kyverno(data: Any) -> Iterator[Result]:
    """Yield the result of every pair of an expected result and a resource name."""
    schemas = KnownSchemas(builtin_schemas())
    for case in data:
        documents = {**case, "values": case.get("variables"), "given": case.get("context")}
        in_scope = [result for result in case["results"] if not explain_exclusion(case, result)]
        suite = suite_of(case["name"], {**documents, "results": in_scope})
        for checked in check(suite, builtin_kinds(), schemas, _NOW):
            expected = checked.expectation
            subject = [case["name"], expected.policy, checked.resource]
            actual = [(result.status, result.message) for result in checked.results]
            yield Result(checked.right, checked.right, expected.result, actual, subject)
        for result in case["results"]:
            why = explain_exclusion(case, result)
            for name in (result.get("resources") or [""]) if why else ():
                subject = [case["name"], result["policy"], name]
                yield Result(
                    right=False, same_text=False, expected=result["result"], actual=why, subject=subject, skipped=True
                )


def explain_exclusion(suite: Any, result: Any) -> str:
    """Return why an expected result of a suite is not compared; empty if it is."""
    if _UNRECORDED & set(suite["tags"]):
        return f"the mock answers of {', '.join(suite['tags'])} are not recorded"
    name = result["policy"].rpartition("/")[2]
    kinds = {policy["kind"] for policy in suite["policies"] if policy["metadata"]["name"] == name}
    if kinds and kinds <= set(_OTHER_KINDS):
        return f"{', '.join(kinds)} is another kind of policy"
    modes = {policy["spec"].get("evaluation", {}).get("mode", "Kubernetes") for policy in suite["policies"]}
    return "" if modes <= {"Kubernetes"} else f"it evaluates payloads of {', '.join(sorted(modes))}"
