"""The same question put to both, server and scan: what do the policies say about these objects.

The server answers with the warnings of a dry-run create, or with a refusal; Assay with the findings of a scan. Both
answers become bags of failures, so that a failure reported twice, or once too little, is a difference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.integration.apiserver import ApiServer
from tests.integration.client import Answer
from tests.integration.manifests import dry_run, violations

ALLOCATED = ("clusterIP", "clusterIPs", "healthCheckNodePort")
MOST_WARNED = 4096
REFUSED = re.compile(
    r".*: ValidatingAdmissionPolicy '(?P<policy>[^']*)' with binding '(?P<binding>[^']*)' denied request: (?P<message>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, order=True)
class Failure:
    """A policy, through a binding, objects to an object. `where` is `Kind namespace/name`."""

    where: str
    policy: str
    binding: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The failures that warn, and those that deny a request with any action of the binding."""

    warned: Counter[Failure]
    refused: Counter[Failure]


def verdict_of_server(server: ApiServer, documents: Iterable[JsonObject]) -> Verdict:
    """Ask the server about each document on its own; nothing is stored."""
    warned: Counter[Failure] = Counter()
    refused: Counter[Failure] = Counter()
    for document in documents:
        where, answer = where_of(document), dry_run(server, _unallocated(document))
        texts = answer.warnings()
        assert sum(map(len, texts)) < MOST_WARNED, f"the server may have cut the warnings about {where}"
        warned.update(
            Failure(where, violation.policy, violation.binding, violation.message) for violation in violations(texts)
        )
        refused.update(_refusals(where, answer))
    return Verdict(warned, refused)


def verdict_of_report(report: JsonObject) -> Verdict:
    """The findings of a scan, without the errors that the server does not report because of failurePolicy Ignore."""
    lenient = {
        dig(policy, "name") for policy in as_list(report["policies"]) if dig(policy, "failurePolicy") == "Ignore"
    }
    findings = [as_object(finding) for finding in as_list(report["findings"])]
    shown = [finding for finding in findings if finding["outcome"] == "violated" or finding["policy"] not in lenient]
    return Verdict(
        warned=Counter(failure_of(finding) for finding in shown if not finding["wouldDeny"]),
        refused=Counter(failure_of(finding) for finding in shown if finding["wouldDeny"]),
    )


def stored(server: ApiServer, plurals: Container[str] | None = None) -> Iterator[JsonObject]:
    """Every object that the server holds, in the preferred version of its kind, as the server returns it.

    `plurals` names the resources to look at, by default all.
    """
    for root in _group_versions(server):
        for resource in map(as_object, as_list(dig(server.request("GET", root).body, "resources"))):
            if plurals is not None and resource["name"] not in plurals:
                continue
            if {"list", "create"} <= set(as_list(resource["verbs"])) and "/" not in as_text(resource["name"]):
                yield from _items(server, root, resource)


def failures_of(findings: Iterable[Json]) -> Counter[Failure]:
    """The findings as failures."""
    return Counter(failure_of(as_object(finding)) for finding in findings)


def _group_versions(server: ApiServer) -> Iterator[str]:
    yield "/api/v1"
    for group in as_list(dig(server.request("GET", "/apis").body, "groups")):
        yield f"/apis/{as_text(dig(group, 'preferredVersion', 'groupVersion'))}"


def _items(server: ApiServer, root: str, resource: JsonObject) -> Iterator[JsonObject]:
    answer = server.request("GET", f"{root}/{resource['name']}")
    api_version = root.removeprefix("/apis/").removeprefix("/api/")
    for item in map(as_object, as_list(dig(answer.body, "items"))):
        yield {"apiVersion": api_version, "kind": resource["kind"], **item}


def copy_of(document: JsonObject) -> JsonObject:
    """The request body that creates an object a second time."""
    metadata = {key: value for key, value in as_object(document["metadata"]).items() if key != "resourceVersion"}
    return _unallocated({**document, "metadata": metadata})


def _unallocated(document: JsonObject) -> JsonObject:
    """The document without what a Service was given at its creation, which a second one could not have."""
    if document["kind"] != "Service":
        return document
    spec = {key: value for key, value in as_object(document.get("spec")).items() if key not in ALLOCATED}
    return {**document, "spec": spec}


def _refusals(where: str, answer: Answer) -> Iterator[Failure]:
    """The one reason that a refusal names; the test must not lean on an answer that refuses for another reason."""
    if answer.status == 201 or (answer.status, dig(answer.body, "reason")) == (409, "AlreadyExists"):
        return
    message = as_text(dig(answer.body, "message"))
    match = REFUSED.fullmatch(message)
    assert match, f"the server refused {where} for a reason of its own: {answer.status} {message}"
    yield Failure(where, **match.groupdict())


def failure_of(finding: JsonObject) -> Failure:
    """A finding of a report as a failure."""
    where = _where_found(as_object(finding["object"]))
    policy, binding, message = (as_text(finding[key]) for key in ("policy", "binding", "message"))
    return Failure(where, policy, binding, message)


def _where_found(finding: JsonObject) -> str:
    return f"{finding['kind']} {as_text(finding['namespace'])}/{finding['name']}"


def where_of(document: JsonObject) -> str:
    """Kind, namespace and name of a document."""
    metadata = as_object(document["metadata"])
    return f"{document['kind']} {as_text(metadata.get('namespace'))}/{metadata['name']}"
