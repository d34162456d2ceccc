"""Answers what admission would decide about objects that a cluster does not have yet, and by rules that it does not have yet.

`new_objects` reads manifests as objects of the cluster, `rules` gathers the rules that can decide about them, `requested` makes the
object of each request, `check` decides about one after the other, and `verdict` is the answer.

`decide` decides about one request in the order of admission: `admission_request` is what it reads, `mutations` and `validations` evaluate
the policies.

`rule_change` applies a change to the rules of a cluster, `rule_preview` compares both sets of rules on every object, with `page_pair` and
`differences`. `object_requests` makes the requests about an object that controllers would make, `risk_rules` compares the decisions about
each of them, with `objects_between` where a controller creates another object first, and `workload_risks` joins what becomes of a workload. Nothing is written and nothing is stored.
"""

from scanner.preview.check import check
from scanner.preview.new_objects import NewObject, StoredObjects
from scanner.preview.verdict import CheckedObject, CheckResult, Decision, Effect, Verdict

__all__ = [
    "CheckResult",
    "CheckedObject",
    "Decision",
    "Effect",
    "NewObject",
    "StoredObjects",
    "Verdict",
    "check",
]
