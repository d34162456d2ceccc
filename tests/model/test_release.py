"""The version that the server reports selects the rules."""

from __future__ import annotations

import pytest

from scanner.model.release import NEWEST, OLDEST, release_of
from scanner.model.scans.scan import ClusterIdentity


@pytest.mark.parametrize(
    ("version", "rules"),
    [
        ("v1.30.0", (1, 30)),
        ("v1.36.2", (1, 36)),
        ("1.34", (1, 34)),
        ("v1.33.5-gke.100+abc", (1, 33)),
        ("v1.37.0-alpha.1", (1, 37)),
    ],
)
def test_the_minor_version_selects_the_rules(version: str, rules: tuple[int, int]) -> None:
    """Patch, build and vendor have no effect, and the release has no note."""
    assert (rules, "") == (release_of(version).rules, release_of(version).note)


def test_a_newer_server_gets_the_newest_rules_and_a_note() -> None:
    """The changes of 1.99 are not known yet."""
    release = release_of("v1.99.1")

    assert (1, 37) == NEWEST == release.rules
    note = (
        "The server is Kubernetes 1.99, which is newer than Assay supports. Assay applied the rules of Kubernetes 1.37."
    )
    assert note == release.note


def test_an_older_server_gets_the_oldest_rules_and_a_note() -> None:
    """Before 1.30 the policies were no stable API."""
    release = release_of("v1.28.3")

    assert (1, 30) == OLDEST == release.rules
    note = (
        "The server is Kubernetes 1.28, which is older than Assay supports. Assay applied the rules of Kubernetes 1.30."
    )
    assert note == release.note


@pytest.mark.parametrize("version", ["", "unknown", "v1", "v1.x", "v12345.1"])
def test_a_server_without_a_version_gets_the_newest_rules_and_a_note(version: str) -> None:
    """A version that cannot be read stops no scan."""
    release = ClusterIdentity("c", server_version=version).release

    assert NEWEST == release.rules
    assert "The server reports no version. Assay applied the rules of Kubernetes 1.37." == release.note
