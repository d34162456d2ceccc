"""`assay explain` of a policy that no document contains, and of its findings: as of any other policy."""

from __future__ import annotations

from pathlib import Path

from scanner.policies.language import LANGUAGES
from scanner.store import open_store
from tests.cli.conftest import Assay
from tests.documents import namespace, pod
from tests.policies.pod_levels import ENFORCE, NAME, WARN, PodLevels
from tests.store.made import clock
from tests.store.scanned import Story, versioned

LABELLED = namespace("shop", **{ENFORCE: "basic", WARN: "none"})
HOST = versioned(pod("host", "shop", hostNetwork=True), 1)


def scanned(home: Path) -> str:
    """The URL of a database with a scan, and the id of its finding."""
    url = f"sqlite:///{home / 'a.db'}"
    with open_store(url, clock) as store:
        record = Story(store, languages=(*LANGUAGES, PodLevels())).scan((LABELLED, HOST))
        (stored,) = record.findings()
    return stored.id


def test_a_derived_policy_is_explained(assay: Assay, home: Path) -> None:
    """Its source, its title, its checks and its binding."""
    scanned(home)
    shown = assay("explain", NAME, "--db", "sqlite:///a.db").stdout.decode()

    assert shown.startswith(f"PodLevel {NAME}  (from namespace labels, failurePolicy Fail)\n")
    assert all(text in shown for text in ("Title: Pod levels", "hostNetwork", "enforce-basic", "1 finding"))


def test_a_finding_names_the_label_that_binds(assay: Assay, home: Path) -> None:
    """The evidence has the field, and the label of the namespace with its level."""
    identifier = scanned(home)
    shown = assay("explain", identifier, "--db", "sqlite:///a.db").stdout.decode().splitlines()
    first = shown.index("Evidence:") + 1

    assert [
        "    object.spec.hostNetwork is true",
        f"""    namespaceObject.metadata.labels['{ENFORCE}'] is "basic\"""",
    ] == shown[first : first + 2]
    assert [f"Policy {NAME}, binding enforce-basic, validation 0"] == [
        each for each in shown if each.startswith("Policy")
    ]
