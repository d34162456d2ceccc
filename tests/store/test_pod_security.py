"""The history of problems of Pod Security: labels that are raised and lowered, and a configuration that a scan does not know."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from scanner.model.scans.scan import ScanState
from scanner.policies.language import with_options
from scanner.policies.pod_security.configuration import Configuration
from scanner.policies.pod_security.labels import NO_DEMANDS, Demand, Mode
from scanner.policies.pod_security.language import PodSecurity
from scanner.policies.pod_security.standards import Level
from scanner.posture.severity import Severity
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.html import folder_report
from scanner.store import SqlStore
from tests.documents import Document, namespace, pod
from tests.policies.pod_security.made import PRIVILEGED, deployment, labelled
from tests.store.scanned import Story, facts, versioned

POD = versioned(pod("web", "shop", containers=[PRIVILEGED]), 1)
CONFIGURED = PodSecurity(Configuration({**NO_DEMANDS, Mode.ENFORCE: Demand(Level.BASELINE)}, body={"kind": "x"}))


@pytest.fixture
def story(store: SqlStore) -> Story:
    """Scans of a changing cluster by policies of all languages."""
    return Story(store, languages=with_options())


def shop(*others: Document, **levels: str) -> tuple[Document, ...]:
    """A cluster with a namespace of some levels, and a privileged pod."""
    return (labelled("shop", **levels), POD, *others)


def test_a_raised_label_makes_no_new_problem(story: Story) -> None:
    """The check is the same for every level that demands it: its clock goes on."""
    first = story.scan(shop(enforce="baseline", warn="privileged"))
    (before,) = {each.problem for each in first.findings()}
    raised = story.scan(shop(enforce="restricted", warn="privileged"))
    lowered = story.scan(shop(enforce="baseline", warn="privileged"))

    for later in (raised, lowered):
        assert before in {each.problem for each in later.findings() if each.status != "resolved"}
        problem = next(each for each in later.findings_by_problem() if each.stored.problem == before)
        assert "open" == problem.episode


def test_a_pod_and_its_deployment_have_one_problem(story: Story) -> None:
    """Where a living pod of the workload has the same finding there is one problem, with the strictest action."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    owned = pod("web-1", "shop", containers=[PRIVILEGED])
    owned["metadata"]["ownerReferences"] = [owner]
    made = versioned(deployment("web", "shop", PRIVILEGED), 1)
    scan = story.scan((labelled("shop", "baseline"), made, versioned(owned, 1)))

    assert 1 == len({each.problem for each in scan.findings()})


def test_a_scan_without_the_configuration_resolves_nothing_that_a_scan_with_it_found(story: Story) -> None:
    """It does not know the defaults by which the pod was judged."""
    documents = namespace("shop"), POD
    replace(story, languages=with_options(pod_security=CONFIGURED)).scan(documents)
    later = story.scan(documents)

    assert [] == list(later.resolved_findings())


def test_a_scan_without_pod_security_resolves_nothing(story: Story) -> None:
    """What was left out was not examined."""
    story.scan(shop(enforce="baseline"))
    later = replace(story, languages=with_options(pod_security=None)).scan(shop(enforce="baseline"))

    assert [] == list(later.resolved_findings())


@pytest.mark.parametrize("before", ["baseline", ""])
def test_a_label_added_during_a_scan_decides_from_the_next_scan_on(story: Story, before: str) -> None:
    """A scan lists Namespaces once, first, and judges every object by these labels; the next scan names the change as the cause."""
    space, other = labelled("shop", before), labelled("other", "restricted")
    documents = space, other, versioned(pod("web", "shop"), 1), versioned(deployment("web", "shop"), 1)

    def raise_label(resource: str) -> None:
        if resource == "pods":
            space["metadata"]["labels"][Mode.ENFORCE.level_key] = "restricted"

    during = story.scan(documents, at_list=raise_label)
    after = story.scan(documents)

    assert ([], ScanState.COMPLETE) == (list(during.findings()), during.scan.state)
    assert {"web"} == {each.finding.name for each in after.findings()}
    assert {("namespace",)} == set(facts(after).values())


def test_problems_are_counted_by_the_severity_of_their_checks(story: Story) -> None:
    """A privileged pod in the network of the host has a critical problem and another of high severity; a minimum leaves one."""
    agent = versioned(pod("web", "shop", containers=[PRIVILEGED], hostNetwork=True), 1)
    record = story.scan((labelled("shop", "baseline"), agent))
    document = document_of(record)
    below = document.triage.find_below(Severity.CRITICAL)

    assert {"critical": 2, "high": 2} == {
        str(each.severity): each.findings.total for each in document.severities if each.findings.total
    }
    assert [("critical", 1), ("high", 1)] == [(Severity.of_rank(each.rank), each.number) for each in document.groups]
    assert ["privileged", "hostNamespaces"] == [each.problem.check.expression for each in document.worst]
    assert 1 == story.store.count_problems(record.scan.id, below=below).denied
    workloads = story.store.read_scan(record.scan.id).open_workloads(document.triage.ranks, frozenset())
    assert {0: 1, 1: 1} == {each.rank: each.problems for each in workloads}


TEXTS = {"table": "pods refused", "csv": "RefusePods", "junit": "web", "markdown": "web"}


@pytest.mark.parametrize(("name", "text"), TEXTS.items(), ids=TEXTS)
def test_each_format_has_pods_that_would_be_refused(story: Story, name: str, text: str) -> None:
    """A workload that is admitted, and whose pods would be refused, is in every report."""
    record = story.scan((labelled("shop", "baseline"), versioned(deployment("web", "shop", PRIVILEGED), 1)))
    out = StringIO()
    FORMATS[name].render(document_of(record), out)

    assert text in out.getvalue()


def test_the_pages_begin_with_pods_that_would_be_refused(story: Story, tmp_path: Path) -> None:
    """The verdict leads to their list, and the chip of a row is *Pods*."""
    record = story.scan((labelled("shop", "baseline"), versioned(deployment("web", "shop", PRIVILEGED), 1)))
    folder_report.render(document_of(record), tmp_path / "report")

    summary = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert "the pods of 1 would be refused" in summary
    assert '<i aria-hidden="true">✕</i>Pods' in summary
