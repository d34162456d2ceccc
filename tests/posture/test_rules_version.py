"""Which parts of the rules differ between two scans, as their tombstones tell."""

from __future__ import annotations

import pytest

from scanner.posture.history.rule_digests import RulesPart, RulesVersion, list_changed_parts

NOW = RulesVersion("ab", "v1.36.0", "0.2.0", "1.19")


@pytest.mark.parametrize(
    ("before", "parts"),
    [
        (NOW, ()),
        (NOW._replace(policy_set_digest="cd"), (RulesPart.RULES,)),
        (NOW._replace(server="v1.35.0", assay="0.1.0"), (RulesPart.SERVER, RulesPart.ASSAY)),
        (NOW._replace(kyverno="1.18"), (RulesPart.KYVERNO,)),
        (NOW._replace(kyverno=""), ()),
        (NOW._replace(policy_set_digest=""), None),
        (None, None),
    ],
)
def test_parts_are_compared_if_both_digests_are_known(
    before: RulesVersion | None, parts: tuple[RulesPart, ...] | None
) -> None:
    """Else nothing is known."""
    assert parts == list_changed_parts(before, NOW)


def test_an_unknown_digest_of_the_later_scan_tells_nothing() -> None:
    """Withheld content of a param has no version."""
    assert list_changed_parts(NOW, NOW._replace(policy_set_digest="")) is None
