"""Facts about the types of the population."""

from __future__ import annotations

import pytest

from scanner.model.population import DEFAULT_KEYS, Controller


@pytest.mark.parametrize("key", ["team", "owner", "app", "app.kubernetes.io/name", "app.kubernetes.io/part-of"])
def test_the_labels_that_name_teams_and_applications_are_kept(key: str) -> None:
    """These labels are kept without any flag."""
    assert DEFAULT_KEYS.keeps_label(key)


@pytest.mark.parametrize("key", ["pod-template-hash", "application", "app.kubernetes.io", "example.com/team", "Team"])
def test_other_labels_are_not_kept(key: str) -> None:
    """A key is kept if it equals a kept key or begins with a kept prefix."""
    assert not DEFAULT_KEYS.keeps_label(key)


def test_flags_add_keys() -> None:
    """The default keys stay kept."""
    keys = DEFAULT_KEYS.add_keys(("example.com/team",), ("example.com/ticket",))
    assert [True, True, False] == [keys.keeps_label(key) for key in ("team", "example.com/team", "tier")]
    assert frozenset({"example.com/ticket"}) == keys.annotations


@pytest.mark.parametrize(
    ("api_version", "group"), [("v1", ""), ("apps/v1", "apps"), ("argoproj.io/v1alpha1", "argoproj.io")]
)
def test_a_controller_is_found_by_group_and_kind(api_version: str, group: str) -> None:
    """The version in a reference is that of its writer, and may differ from that of the list."""
    assert (group, "Set") == Controller(api_version, "Set", "name", "uid").group_kind
