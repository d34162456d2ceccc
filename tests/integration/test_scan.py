"""A scan of a live cluster reports exactly the failures that admission finds in the same objects.

The example cluster is stored on a real API server in its two states. The server is asked about every object by a
dry-run create, Assay by one scan; both must object to the same objects, in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.command import Ran, assay_here
from tests.integration import examples
from tests.integration.apiserver import ApiServer, running
from tests.integration.manifests import apply, delete, wait_until_enforced
from tests.integration.parity import Verdict, failures_of, stored, verdict_of_report, verdict_of_server

STATES = ("before", "after")


@dataclass(frozen=True, slots=True)
class Look:
    """One state of the cluster, as the server evaluates it and as a scan reports it."""

    documents: list[JsonObject]
    verdict: Verdict
    ran: Ran

    @property
    def reported(self) -> Verdict:
        """The findings of the scan."""
        return verdict_of_report(self.ran.report)


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of this module alone: other objects would be in the reports."""
    with running(assets, tmp_path_factory.mktemp("scanned")) as server:
        yield server


@pytest.fixture(scope="module")
def looks(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Look]:
    """Both states, one after the other on the same server, into the same database."""
    home = tmp_path_factory.mktemp("home")
    before = examples.objects("before")
    apply(server, [*before, *examples.policies()])
    wait_until_enforced(server)
    first = look(server, before, home)
    after = examples.objects("after")
    change(server, before, after)
    return {"before": first, "after": look(server, after, home)}


def change(server: ApiServer, old: list[JsonObject], new: list[JsonObject]) -> None:
    """Replace one state by the other while no binding exists: one of them denies requests with any action."""
    bindings = [document for document in examples.policies() if as_text(document["kind"]).endswith("Binding")]
    for document in bindings:
        delete(server, document)
    wait_until_enforced(server)
    kept = {key(document) for document in new}
    for document in old:
        if key(document) not in kept:
            delete(server, document)
    apply(server, [document for document in new if document not in old])
    apply(server, bindings)
    wait_until_enforced(server)


def look(server: ApiServer, documents: list[JsonObject], home: Path) -> Look:
    """Ask both about everything there is, about our own objects as they were submitted."""
    ours = {key(document) for document in documents}
    others = [document for document in stored(server) if key(document) not in ours]
    verdict = verdict_of_server(server, [*documents, *others])
    ran = assay_here("scan", "--kubeconfig", server.kubeconfig, "--db", "assay.db", "-o", "json", home=home)
    return Look([*documents, *others], verdict, ran)


def key(document: JsonObject) -> tuple[str, str, str]:
    """Kind, namespace and name, which identify an object in every version."""
    metadata = as_object(document["metadata"])
    return as_text(document["kind"]), as_text(metadata.get("namespace")), as_text(metadata["name"])


@pytest.mark.parametrize("state", STATES)
def test_a_scan_reports_the_failures_that_the_server_finds(looks: dict[str, Look], state: str) -> None:
    """Every warning of every object is a finding in the same words, and there is no finding besides."""
    seen = looks[state]

    print(figures(state, seen))  # noqa: T201 - what `pytest -s` is for
    assert seen.verdict.warned == seen.reported.warned
    assert seen.verdict.warned.total() >= 40


@pytest.mark.parametrize("state", STATES)
def test_a_scan_reports_what_the_server_denies_with_any_action(looks: dict[str, Look], state: str) -> None:
    """A param that does not exist refuses the claim in staging although the binding only warns."""
    seen = looks[state]

    message = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert seen.verdict.refused == seen.reported.refused
    assert {("storage-limits-staging", message)} == {
        (violation.binding, violation.message) for violation in seen.verdict.refused
    }


@pytest.mark.parametrize("state", STATES)
def test_a_scan_of_everything_is_complete(looks: dict[str, Look], state: str) -> None:
    """The scan is complete: the exit code is 0, and the report has no gap."""
    ran = looks[state].ran

    assert (0, True, []) == (ran.code, ran.report["complete"], ran.report["gaps"])
    assert "complete" == dig(ran.report, "provenance", "state")


def test_a_second_scan_resolves_what_is_no_longer_found(looks: dict[str, Look]) -> None:
    """Findings of the first scan that the second lacks are resolved, and the server does not report them either."""
    first, second = (looks[state].ran.report for state in STATES)
    gone = fingerprints(first["findings"]) - fingerprints(second["findings"])

    assert gone == fingerprints(second["resolved"])
    assert not looks["after"].verdict.warned & failures_of(as_list(second["resolved"]))
    assert {"Deployment shop/checkout", "Pod staging/netshoot", "ClusterRole /deployer"} <= {
        failure.where for failure in failures_of(as_list(second["resolved"]))
    }


def test_a_second_scan_knows_what_it_has_seen_before(looks: dict[str, Look]) -> None:
    """Findings of both scans are open, findings of the second alone are new."""
    first, second = (looks[state].ran.report for state in STATES)
    before = fingerprints(first["findings"])
    statuses = {as_text(dig(finding, "fingerprint")): dig(finding, "status") for finding in as_list(second["findings"])}

    assert {mark: "open" if mark in before else "new" for mark in statuses} == statuses
    assert {"open", "new"} == set(statuses.values())


def fingerprints(findings: Json) -> set[str]:
    """The fingerprints of some findings of a report."""
    return {as_text(dig(finding, "fingerprint")) for finding in as_list(findings)}


def figures(state: str, seen: Look) -> str:
    """A sentence with the numbers of compared objects, policies and results."""
    report = seen.ran.report
    kinds = len({document["kind"] for document in seen.documents})
    evaluated = sum(int(as_text(str(dig(kind, "evaluated")))) for kind in as_list(dig(report, "coverage", "kinds")))
    return (
        f"\n{state}: {len(seen.documents)} objects of {kinds} kinds asked about one by one, "
        f"{len(as_list(report['policies']))} policies, {evaluated} objects evaluated; "
        f"{seen.verdict.warned.total()} warnings and {seen.verdict.refused.total()} refusals compared"
    )
