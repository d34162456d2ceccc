"""Tallies in groups without namespaces."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scanner.model.outcome import Check, CheckKind
from scanner.model.scans.tally import OutcomeName, TallyKey, group_tallies

checks = st.builds(Check, st.sampled_from(CheckKind), st.integers(0, 1), st.sampled_from(["true", "false"]))
keys = st.builds(
    TallyKey,
    policy=st.sampled_from("pq"),
    binding=st.just("b"),
    param_namespace=st.just(""),
    param_name=st.sampled_from(["", "c"]),
    check=checks,
    api_version=st.just("v1"),
    kind=st.just("Pod"),
    namespace=st.sampled_from(["", "shop", "web"]),
    outcome=st.sampled_from([OutcomeName.PASSED, OutcomeName.VIOLATED]),
    requester=st.booleans(),
    language=st.sampled_from(["vap", "kyverno"]),
)


@given(tallies=st.dictionaries(keys, st.integers(0, 9)))
def test_groups_have_each_tally_once(tallies: dict[TallyKey, int]) -> None:
    """Checks that are equal, but not the same object, are included."""
    ungrouped = [
        (group.key._replace(namespace=namespace), number)
        for group in group_tallies(tallies)
        for namespace, number in group.numbers
    ]

    assert Counter(tallies.items()) == Counter(ungrouped)
    assert all(not group.key.namespace for group in group_tallies(tallies))
