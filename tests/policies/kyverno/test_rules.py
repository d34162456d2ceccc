"""The exceptions, global context entries and namespace labels that decide together with Kyverno's policies."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.model.scans.scan import ScanStart
from scanner.model.selector import parse_selector
from scanner.policies.kyverno.configuration import Configuration
from scanner.policies.kyverno.family import KyvernoOptions
from scanner.policies.kyverno.own_configuration import ConfigurationSource
from scanner.policies.language import with_options
from scanner.scan.options import Options
from tests.documents import KINDS
from tests.policies.kyverno.made import exception, policy
from tests.policies.kyverno.test_scanned import KYVERNO, TEAM
from tests.scan.fakes import FakeCluster, scanned

ENTRY = {
    "apiVersion": "kyverno.io/v2",
    "kind": "GlobalContextEntry",
    "metadata": {"name": "settings"},
    "spec": {"kubernetesResource": {"version": "v1", "resource": "configmaps", "namespace": "team"}},
}


def start(*documents: Any, namespace: Any = TEAM, configuration: Configuration | None = None) -> ScanStart:
    """The beginning of a scan of a cluster with Kyverno."""
    kyverno = KyvernoOptions(configuration=ConfigurationSource(given=configuration or Configuration()))
    cluster = FakeCluster([namespace, *documents], kinds=(*KINDS, *KYVERNO))
    return scanned(cluster, Options(languages=with_options(kyverno))).start


def names(begun: ScanStart) -> list[str]:
    """Type and name of the rules."""
    return [f"{rule.type.value} {rule.name}" for rule in begun.rules]


def test_exceptions_and_entries_are_rules() -> None:
    """An exception of another policy is none."""
    other = {**exception("other"), "spec": {"policyRefs": [{"name": "gone", "kind": "ValidatingPolicy"}]}}

    assert ["exception team/let-be", "globalContext settings"] == names(
        start(policy("true"), exception(), other, ENTRY)
    )


def test_without_policies_there_are_no_rules() -> None:
    """An entry that no policy can read decides nothing."""
    assert [] == names(start(exception(), ENTRY))


@pytest.mark.parametrize(
    "documents",
    [
        (exception(expiresAt="2030-01-01T00:00:00Z"), ENTRY),
        (exception(), {**ENTRY, "spec": {"apiCall": {"urlPath": "/api/v1/nodes"}}}),
        (ENTRY,),
        (exception(),),
    ],
)
def test_another_exception_or_entry_is_another_policy_set(documents: tuple[Any, ...]) -> None:
    """A wider exemption does not look like a corrected object."""
    before = start(policy("true"), exception(), ENTRY)

    assert before.policy_set_digest != start(policy("true"), *documents).policy_set_digest


def test_the_status_of_an_entry_is_no_rule() -> None:
    """Kyverno writes there when it refreshed the entry."""
    before, after = (
        start(policy("true"), {**ENTRY, "status": {"lastRefreshTime": moment}}) for moment in ("one", "other")
    )

    assert before.policy_set_digest == after.policy_set_digest


def test_labels_that_kyverno_s_webhooks_select_by_are_rules() -> None:
    """Kyverno's own configuration decides which namespaces its policies see."""
    labelled = {**TEAM, "metadata": {"name": "team", "labels": {"tier": "gold", "other": "label"}}}
    configuration = Configuration(namespace_selector=parse_selector({"matchLabels": {"tier": "gold"}}))
    [rule] = start(policy("true"), namespace=labelled, configuration=configuration).rules

    assert {"name": "team", "labels": {"tier": "gold"}} == rule.document["metadata"]


def test_credentials_of_an_entry_are_withheld() -> None:
    """A header of a service call can have a token."""
    service = {"url": "https://example.com", "headers": [{"key": "Authorization", "value": "Bearer hunter2"}]}
    [rule] = start(policy("true"), {**ENTRY, "spec": {"apiCall": {"service": service}}}).rules

    assert (True, False) == (rule.masked, "hunter2" in str(rule.document))
