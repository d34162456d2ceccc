"""The history of policies that follow from labels of namespaces: causes, resolutions and digests as those of written policies."""

from __future__ import annotations

import json
from io import BytesIO, StringIO

import pytest

from scanner.model.scans.scan import Scope
from scanner.policies.language import LANGUAGES
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.store import SqlStore
from tests.documents import Document, binding, namespace, pod, policy
from tests.policies.pod_levels import ENFORCE, NAME, WARN, PodLevels
from tests.store.scanned import Facts, Story, facts, versioned

OTHERS = (namespace("other", **{ENFORCE: "strict"}), versioned(pod("web", "other", hostNetwork=True), 1))
HOST = versioned(pod("host", "shop", hostNetwork=True), 1)
WITHOUT = Scope(namespaces=("other",))


@pytest.fixture
def story(store: SqlStore) -> Story:
    """Scans of a changing cluster by policies of all languages."""
    return Story(store, languages=(*LANGUAGES, PodLevels()))


def shop(**labels: str) -> tuple[Document, ...]:
    """A cluster with a namespace that has some labels and a pod in the host's network, and another namespace."""
    return (namespace("shop", **labels), HOST, *OTHERS)


def resolved(*facts_of_host: str) -> Facts:
    """The facts of the finding in the namespace `shop`."""
    return {("resolved", "validation", "shop/host"): facts_of_host}


def test_a_removed_label_resolves_nothing_as_fixed(story: Story) -> None:
    """The namespace is not covered any more: the cause is its label, and the object was not corrected."""
    story.scan(shop(**{ENFORCE: "strict", WARN: "none"}))
    ended = story.scan(shop())

    assert resolved("notMatched", "namespace") == facts(ended)


def test_a_corrected_object_is_fixed(story: Story) -> None:
    """Labels of other namespaces are other rules, and change nothing about it."""
    labels = {ENFORCE: "strict", WARN: "none"}
    story.scan(shop(**labels))
    corrected = versioned(pod("host", "shop", containers=[{"securityContext": {"runAsNonRoot": True}}]), 2)
    ended = story.scan((namespace("shop", **labels), corrected, *OTHERS, namespace("new", **{ENFORCE: "strict"})))

    assert resolved("fixed", "objectChanged") == facts(ended)


def test_a_new_label_is_the_cause_of_new_findings(story: Story) -> None:
    """The policy is in force for another namespace already."""
    story.scan(shop())
    begun = story.scan(shop(**{ENFORCE: "strict", WARN: "none"}))

    assert {("new", "validation", "shop/host"): ("namespace",)} == facts(begun)


def test_the_last_label_takes_the_policy_with_it(story: Story) -> None:
    """Without any label there is no policy: findings are unbound."""
    story.scan(shop(**{ENFORCE: "strict", WARN: "none"})[:2])
    ended = story.scan(shop()[:2])

    assert resolved("unbound", "policy", "binding") == facts(ended)


def test_a_level_that_no_namespace_has_any_more_is_unbound(story: Story) -> None:
    """The binding does not exist any more; the label of the namespace changed, too."""
    story.scan(shop(**{ENFORCE: "basic", WARN: "none"}))
    ended = story.scan(shop(**{ENFORCE: "none"}))

    assert resolved("unbound", "binding", "namespace") == facts(ended)


def test_a_raised_label_keeps_the_problem(story: Story) -> None:
    """Another binding denies the same check of the same workload: a problem is of a check, not of a level."""
    before = story.scan(shop(**{ENFORCE: "basic", WARN: "none"}))
    raised = story.scan(shop(**{ENFORCE: "strict", WARN: "none"}))

    problems = [
        {
            stored.problem
            for stored in record.findings()
            if stored.finding.namespace == "shop" and stored.finding.check.expression == "hostNetwork"
        }
        for record in (before, raised)
    ]
    assert problems[0] == problems[1]


def test_a_scan_that_cannot_list_namespaces_resolves_nothing(story: Story) -> None:
    """The policies of the language are not known to it."""
    story.scan(shop(**{ENFORCE: "strict", WARN: "none"}))
    blind = story.scan(shop(), refused=("namespaces",))

    assert ({}, "incomplete") == (facts(blind), blind.scan.state)


def test_a_scan_of_other_namespaces_resolves_nothing(story: Story) -> None:
    """It saw no label of the namespace `shop`."""
    story.scan(shop(**{ENFORCE: "basic", WARN: "none"}))

    assert {} == facts(story.scan(shop(), scope=WITHOUT))


@pytest.mark.parametrize(
    ("labels", "equal"),
    [
        ({ENFORCE: "strict"}, True),
        ({ENFORCE: "strict", "team": "a"}, True),
        ({ENFORCE: "basic"}, False),
        ({}, False),
        ({ENFORCE: "strict", WARN: "none"}, False),
    ],
    ids=["equal", "another label", "another level", "no label", "another mode"],
)
def test_the_digest_of_the_policy_set_covers_labels_that_decide(
    story: Story, labels: dict[str, str], *, equal: bool
) -> None:
    """A namespace with another level is another set of rules, also with the same bindings."""
    before = story.scan(shop(**{ENFORCE: "strict"}))
    after = story.scan(shop(**labels))

    assert equal is (before.scan.policy_set_digest == after.scan.policy_set_digest)


def test_json_has_the_evidence_of_fields(story: Story) -> None:
    """A field and the label of the namespace, as the parts of expressions have it."""
    record = story.scan(shop(**{ENFORCE: "strict", WARN: "none"})[:2])
    out = BytesIO()
    FORMATS["json"].render(document_of(record), out)
    report = json.loads(out.getvalue())
    reasons = [[each["path"], each["value"]] for each in report["findings"][0]["evidence"]["reasons"]]

    assert [["spec.hostNetwork", "true"], [f"namespaceObject.metadata.labels['{ENFORCE}']", '"strict"']] == reasons
    assert [(NAME, "namespace labels")] == [(each["name"], each["source"]) for each in report["policies"]]


def test_html_has_the_evidence_of_fields(story: Story) -> None:
    """The page of a finding shows the field, its value, and the source of the policy."""
    record = story.scan(shop(**{ENFORCE: "strict", WARN: "none"})[:2])
    out = StringIO()
    FORMATS["html-single"].render(document_of(record), out)

    assert (True, True) == ("object.spec.hostNetwork" in out.getvalue(), NAME in out.getvalue())


def test_written_policies_are_beside_derived_ones(story: Story) -> None:
    """A finding of each, with its own cause: a binding that is deleted, and a label that is removed."""
    written = (policy("p", "false"), binding("b", "p"))
    story.scan((*shop(**{ENFORCE: "strict", WARN: "none"}), *written))
    ended = facts(story.scan((*shop(), written[0])))

    assert {"shop/host", "other/web"} == {name for _, _, name in ended}
