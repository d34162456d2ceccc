"""Row 3: decode, match and evaluate complete policies on raw pages, against decoding alone; two workers each."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

import orjson

from benchmarks.corpus import recorded
from benchmarks.measured import ROUNDS, conclude, say
from scanner.admission.context import EvaluationContext
from scanner.audit.page import PageEvaluator
from scanner.cluster.definitions import builtin_kinds
from scanner.model.resource import Kind, Page, UserInfo
from scanner.policies.plan import KindPlan, find_equivalents, plan
from scanner.policies.validating.language import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable
from scanner.scan.workers.process import freeze_heap

_GOAL = 1.6
_PAGE = 500
_PAGES = 8
_WORKERS = 2
_KIND = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
_NAMED = ("err_missing", "err_absorb", "msg_concat")
"""Left out of the corpus: two that fail for every object, and one that is a message."""


@cache
def page() -> bytes:
    """Return a raw page of the recorded Deployments in the form of a list answer."""
    documents = recorded()["objects"]
    items = [_named(documents[number % len(documents)], number) for number in range(_PAGE)]
    return orjson.dumps({"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {}, "items": items})


def _named(document: Any, number: int) -> Any:
    return {**document, "metadata": {**document["metadata"], "uid": f"{number:08d}-0000-4000-8000-000000000000"}}


@cache
def prepared() -> tuple[PageEvaluator, KindPlan]:
    """Return an evaluator of eighteen complete policies, each with its binding, and the plan of their kind."""
    cases = [case for case in recorded()["cases"] if case["name"] not in _NAMED]
    policies = [read_policy(_policy(case)) for case in cases]
    bindings = [read_binding(_binding(case)) for case in cases]
    kinds = builtin_kinds()
    bound = bind(policies, bindings)
    names = {as_namespace(document) for document in recorded()["objects"]}
    context = EvaluationContext(
        params=ParamTable(kinds),
        namespaces={name: {"metadata": {"name": name, "labels": {"env": "prod"}}} for name in names},
        equivalents=find_equivalents(kinds),
        user=UserInfo("auditor", groups=("system:authenticated",)),
    )
    (chosen,) = (kind_plan for kind_plan in plan(kinds, bound) if kind_plan.kind == _KIND)
    return PageEvaluator(context), chosen


def as_namespace(document: Any) -> str:
    """Return the name of an object's namespace."""
    return str(document["metadata"]["namespace"])


def _policy(case: Any) -> Any:
    name = case["name"].replace("_", "-")
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["deployments"],
    }
    variables = [{"name": variable["name"], "expression": variable["expr"]} for variable in case["variables"]]
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "variables": variables,
        "validations": [{"expression": case["expr"], "message": f"{name} is violated"}],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def _binding(case: Any) -> Any:
    name = case["name"].replace("_", "-")
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


def _evaluated(number: int) -> int:
    evaluator, chosen = prepared()
    result = evaluator.evaluate(Page(_KIND, number, page()), chosen)
    return sum(result.tallies.values())


def _decoded(_number: int) -> int:
    for _ in orjson.loads(page())["items"]:
        pass
    return 0


def against_decoding() -> None:
    """Row 3: two workers that evaluate pages, against two that only decode them, with the same settings of the garbage collector."""
    prepared(), page()
    fork = get_context("fork")
    with (
        ProcessPoolExecutor(_WORKERS, mp_context=fork, initializer=freeze_heap) as workers,
        ProcessPoolExecutor(_WORKERS, mp_context=fork, initializer=freeze_heap) as others,
    ):
        outcomes = sum(workers.map(_evaluated, range(_PAGES)))
        list(others.map(_decoded, range(_PAGES)))
        rounds = [(_seconds(workers, _evaluated), _seconds(others, _decoded)) for _ in range(ROUNDS)]
    ours, theirs = (sorted(times)[ROUNDS // 2] for times in zip(*rounds, strict=True))
    objects = _PAGE * _PAGES
    say(f"{objects} objects of {len(page()) / _PAGE:,.0f} bytes, {outcomes} outcomes a round")
    say(f"evaluated {ours / objects * 1e6:.1f} us an object, decoded {theirs / objects * 1e6:.1f} us")
    conclude(3, ours / theirs, _GOAL, rounds=ROUNDS, compared="decode, match and evaluate against orjson.loads alone")


def _seconds(workers: ProcessPoolExecutor, work: Callable[[int], int]) -> float:
    started = time.perf_counter()
    list(workers.map(work, range(_PAGES)))
    return time.perf_counter() - started
