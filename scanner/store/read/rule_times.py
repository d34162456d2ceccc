"""Reads since when the rules of a scan have had their content: see `model.scans.rule_times`.

Only scans of the same scope count, because a scan of some policies records these alone. Scans share equal lists of rules, so each
list is read once. An incomplete scan may not have seen a rule: a rule that it lacks is no rule that was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, case, select

from scanner.model.scans.rule_times import RuleKey, RuleTimes
from scanner.model.scans.scan import ScanState
from scanner.store.database.engine import select_numbers
from scanner.store.rows.tables import BINDINGS, POLICIES, RULES, SCAN_BINDINGS, SCAN_POLICIES, SCAN_RULES, SCANS

MOST: Final = 1_000
"""The scans that are read, the newest ones."""
_OWNERS: Final = ("policies_of", "bindings_of", "rules_of")
_Rules = dict[RuleKey, str]
"""The digests of rules."""


class _ScanOfRules(NamedTuple):
    """A scan, and the scans that own its lists of policies, bindings and other rules."""

    ended: datetime
    complete: bool
    owners: tuple[int, ...]


def read_rule_times(connection: Connection, cluster: int, number: int) -> dict[RuleKey, RuleTimes]:
    """The times of the rules of a scan, by its number."""
    scans = _list_scans(connection, cluster, number)
    if not scans:
        return {}
    lists = [_by_scan(read(connection, {scan.owners[place] for scan in scans})) for place, read in enumerate(_READERS)]
    rules = [_join(lists, scan.owners) for scan in scans]
    return {key: _follow(key, scans, rules) for key in rules[-1]}


def _list_scans(connection: Connection, cluster: int, number: int) -> list[_ScanOfRules]:
    """The scans of the scope of a scan up to that one, in the order of history."""
    table = SCANS.c
    scope, revision = connection.execute(select(table.scope, table.revision).where(table.number == number)).one()
    owners = (case((table[name] == 0, table.number), else_=table[name]) for name in _OWNERS)
    wanted = (
        select(table.finished_at, table.state, *owners)
        .where(table.cluster == cluster, table.scope == scope, table.revision <= revision)
        .where(table.pruned_at.is_(None), (table.number == number) | ~table.preview)
        .order_by(table.revision.desc())
        .limit(MOST)
    )
    rows = connection.execute(wanted).all()
    scans = (_ScanOfRules(ended, state == ScanState.COMPLETE.value, tuple(owned)) for ended, state, *owned in rows)
    return list(scans)[::-1]


_Row = tuple[int, RuleKey, str]


def _read_policies(connection: Connection, owners: Iterable[int]) -> Iterator[_Row]:
    used, policy = SCAN_POLICIES.c, POLICIES.c
    wanted = select(used.scan, policy.language, policy.name, policy.spec_digest)
    wanted = wanted.join(POLICIES, policy.id == used.policy).where(used.scan.in_(select_numbers(connection, owners)))
    for scan, language, name, digest in connection.execute(wanted):
        yield scan, RuleKey("policy", language, "", name), digest


def _read_bindings(connection: Connection, owners: Iterable[int]) -> Iterator[_Row]:
    used, binding = SCAN_BINDINGS.c, BINDINGS.c
    wanted = select(used.scan, binding.language, binding.policy_name, binding.name, binding.spec_digest)
    wanted = wanted.join(BINDINGS, binding.id == used.binding).where(used.scan.in_(select_numbers(connection, owners)))
    for scan, language, policy, name, digest in connection.execute(wanted):
        yield scan, RuleKey("binding", language, policy, name), digest


def _read_others(connection: Connection, owners: Iterable[int]) -> Iterator[_Row]:
    used, rule = SCAN_RULES.c, RULES.c
    wanted = select(used.scan, rule.type, rule.name, rule.content_digest)
    wanted = wanted.join(RULES, rule.id == used.rule).where(used.scan.in_(select_numbers(connection, owners)))
    for scan, rule_type, name, digest in connection.execute(wanted):
        yield scan, RuleKey(rule_type, "", "", name), digest


_READERS: Final[tuple[Callable[[Connection, Iterable[int]], Iterator[_Row]], ...]] = (
    _read_policies,
    _read_bindings,
    _read_others,
)
"""In the order of `_OWNERS`."""


def _by_scan(rows: Iterable[_Row]) -> dict[int, _Rules]:
    by_scan: dict[int, _Rules] = {}
    for scan, key, digest in rows:
        by_scan.setdefault(scan, {})[key] = digest
    return by_scan


def _join(lists: list[dict[int, _Rules]], owners: tuple[int, ...]) -> _Rules:
    return {
        key: digest for each, owner in zip(lists, owners, strict=True) for key, digest in each.get(owner, {}).items()
    }


@dataclass
class _Content:
    """What the scans up to one show of a rule: its digest, None if there is no such rule, since when, and the scan before that."""

    digest: str | None = None
    known: bool = False
    since: datetime | None = None
    before: datetime | None = None
    changed: list[datetime] = field(default_factory=list)


def _follow(key: RuleKey, scans: list[_ScanOfRules], rules: list[Mapping[RuleKey, str]] | list[_Rules]) -> RuleTimes:
    """The times of a rule that the last scan has."""
    content, seen = _Content(), scans[0].ended
    for scan, of_scan in zip(scans, rules, strict=True):
        digest = of_scan.get(key)
        if digest is None and not scan.complete:
            continue
        if not content.known or digest != content.digest:
            content.before = seen if content.known else None
            content.changed += [scan.ended] if content.known else []
            content.digest, content.since, content.known = digest, scan.ended, True
        seen = scan.ended
    return RuleTimes(content.since or scans[-1].ended, content.before, tuple(reversed(content.changed)))
