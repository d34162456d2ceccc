"""Since when the rules of a scan have had their content, as earlier scans of the same scope show it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scanner.model.policy import VALIDATING
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.rule_times import RuleKey, RuleTimes
from scanner.model.scans.scan import ScanStart, ScanState, Scope
from scanner.store import SqlStore, prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.made import Round, binding, ended, policy

LIMIT = RuleKey("policy", VALIDATING, "", "limit")
BINDING = RuleKey("binding", VALIDATING, "limit", "limit-binding")
PARAM = RuleKey("param", "", "", "ConfigMap shop/limits")


@dataclass(frozen=True)
class Ruled(Round):
    """A scan with these digests: of the policy `limit`, None without it, and of a param."""

    limit: str | None = "a"
    param: str = ""

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        params = (RuleObject(RuleType.PARAM, PARAM.name, self.param, {"data": {"max": self.param}}),)
        own = () if self.limit is None else (replace(policy("limit"), digest=self.limit),)
        return replace(
            super().start(number),
            policies=(*own, policy("owner")),
            bindings=(binding("limit"),) if own else (),
            rules=params if self.param else (),
        )


def times(store: SqlStore, number: int, key: RuleKey = LIMIT) -> RuleTimes | None:
    """The times of a rule in a scan."""
    return store.read_scan(f"scan-{number}").rule_times().get(key)


def record(store: SqlStore, *digests: str | None) -> None:
    """Scans whose policy has these digests, one after the other."""
    for number, digest in enumerate(digests, 1):
        Ruled(limit=digest).record(store, number)


def test_a_rule_that_every_scan_has_is_as_old_as_the_first_scan(store: SqlStore) -> None:
    """Or older: nothing before is known."""
    record(store, "a", "a", "a")
    assert RuleTimes(ended(1), None, ()) == times(store, 3) == times(store, 3, BINDING)


def test_a_rule_that_changed_is_in_force_since_its_change(store: SqlStore) -> None:
    """The change happened after the scan before; a change back is another change."""
    record(store, "a", "b", "b", "a")

    assert RuleTimes(ended(4), ended(3), (ended(4), ended(2))) == times(store, 4)
    assert RuleTimes(ended(2), ended(1), (ended(2),)) == times(store, 3)


def test_a_rule_that_was_added_is_in_force_since_then(store: SqlStore) -> None:
    """A scan before it saw everything, and had no such rule."""
    record(store, None, "a", "a")
    assert RuleTimes(ended(2), ended(1), (ended(2),)) == times(store, 3)


def test_a_rule_that_is_gone_has_no_row(store: SqlStore) -> None:
    """It is not in force any more."""
    record(store, "a", None)
    assert times(store, 2) is None


def test_an_incomplete_scan_proves_no_absence(store: SqlStore) -> None:
    """It may not have been able to list policies."""
    Ruled(limit="a").record(store, 1)
    Ruled(limit=None, state=ScanState.INCOMPLETE).record(store, 2)
    Ruled(limit="a").record(store, 3)

    assert RuleTimes(ended(1), None, ()) == times(store, 3)


def test_scans_of_another_scope_do_not_count(store: SqlStore) -> None:
    """A scan of some policies records these alone."""
    Ruled(limit="a").record(store, 1)
    Ruled(limit=None, scope=Scope(policies=("owner",))).record(store, 2)
    Ruled(limit="a").record(store, 3)

    assert RuleTimes(ended(1), None, ()) == times(store, 3)


def test_params_have_times_too(store: SqlStore) -> None:
    """So do exceptions and labels: a rule is what decides."""
    for number, param in enumerate(("x", "x", "y"), 1):
        Ruled(param=param).record(store, number)
    assert RuleTimes(ended(3), ended(2), (ended(3),)) == times(store, 3, PARAM)


def test_a_pruned_scan_shows_nothing(store: SqlStore, url: str) -> None:
    """The oldest kept scan is the first that is known."""
    record(store, "a", "b", "b")
    prune(url, RetentionRule(days=1), ended(3))

    known = times(store, 3)
    assert known is not None
    assert None is known.before
    assert known.since in {ended(2), ended(3)}
