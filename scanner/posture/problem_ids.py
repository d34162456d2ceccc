"""The ids of checks and problems. A problem is one check of one policy that one workload breaks, however often its objects are replaced.

The ids follow from names alone, so that two databases and a baseline file agree on them. A check keeps its id from one version of its
policy to the next if its expression is the same, or the same but for spaces and comments, wherever it stands; and if it is the only one
that changed between two checks that stayed, or between such a check and an end of the list. Any other check is a new one: a wrong
continuation would call a new problem old.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, groupby
from typing import Final, NamedTuple, TypeAlias

from scanner.model.outcome import CheckKind
from scanner.model.policy import Policy

_DIGITS: Final = 12
_SEPARATOR: Final = "\0"


def check_id(language: str, policy: str, kind: str, expression: str, ordinal: int, again: int = 0) -> str:
    """The id of a check: `c-` and 12 hex digits of a SHA-256. `expression` is trimmed, `ordinal` counts equal ones before it.

    `again` tells apart checks that would have the same id: 0 unless another check of the policy has it.
    """
    parts = (language, policy, kind, expression, str(ordinal), *([str(again)] if again else []))
    return f"c-{_digest(parts)[:_DIGITS]}"


def workload_key(group: str, kind: str, namespace: str, name: str) -> int:
    """The number that stands for a workload in `problem_number`: the first 64 bits of a SHA-256."""
    return int(_digest((group, kind, namespace, name))[:16], 16)


def problem_number(check: str, workload: int) -> int:
    """The problem of a check, by its id, and of a workload, by its key: 48 bits, which `problem_id` shows."""
    digest = hashlib.sha256(check.encode())
    digest.update(workload.to_bytes(8))
    return int.from_bytes(digest.digest()[: _DIGITS // 2])


def problem_id(number: int) -> str:
    """The id of a problem: `p-` and 12 hex digits."""
    return f"p-{number:0{_DIGITS}x}"


def _digest(parts: tuple[str, ...]) -> str:
    return hashlib.sha256(_SEPARATOR.join(parts).encode("utf-8", "surrogatepass")).hexdigest()


CONTINUATION_RULES: Final = 2
"""The version of these rules and of those of `posture.history.continuations`. Scans record it: newer rules do not regroup findings of the past.

Version 1 carried on the ids of checks alone; version 2 joins findings, too.
"""


class CheckKey(NamedTuple):
    """A check as a version of its policy has it. `ordinal` counts the equal expressions before it."""

    language: str
    policy: str
    kind: str
    expression: str
    ordinal: int


_Place: TypeAlias = tuple[CheckKey | None, CheckKey | None]


def check_keys(policy: Policy) -> dict[tuple[str, int], CheckKey]:
    """The checks of a policy by kind and position. Its match conditions are one check, and so is its configuration."""
    keys: dict[tuple[str, int], CheckKey] = {}
    for kind, texts in list_expressions(policy):
        seen: list[str] = []
        for index, text in enumerate(texts):
            expression = text.strip()
            keys[kind, index] = CheckKey(policy.language, policy.name, kind, expression, seen.count(expression))
            seen.append(expression)
    return keys


def names_of(now: Policy, before: Policy | None, known: Mapping[CheckKey, str]) -> dict[CheckKey, str]:
    """The id of every check of a policy, given the version before, if there is one, and the ids of its earlier checks."""
    keys = list(check_keys(now).values())
    names: dict[CheckKey, str] = {}
    if before is not None:
        for earlier, key in _pair_checks(list(check_keys(before).values()), keys):
            if earlier in known:
                names[key] = known[earlier]
    for key in keys:
        if key not in names:
            names[key] = _new_name(key, known, frozenset(names.values()))
    return names


def _new_name(key: CheckKey, known: Mapping[CheckKey, str], used: frozenset[str]) -> str:
    earlier = known.get(key)
    if earlier is not None and earlier not in used:
        return earlier
    return next(name for again in count() if (name := check_id(*key, again)) not in used)


def list_expressions(policy: Policy) -> Iterator[tuple[str, list[str]]]:
    """The texts of the checks of a policy by kind."""
    yield CheckKind.VALIDATION.value, [validation.expression for validation in policy.validations]
    yield CheckKind.AUDIT_ANNOTATION.value, [annotation.value_expression for annotation in policy.audit_annotations]
    yield CheckKind.MUTATION.value, [mutation.expression for mutation in policy.mutations]
    yield CheckKind.CONDITIONS.value, [""]
    yield CheckKind.CONFIGURATION.value, [""]


def _pair_checks(before: Sequence[CheckKey], now: Sequence[CheckKey]) -> Iterator[tuple[CheckKey, CheckKey]]:
    """The pairs of an earlier check and the check that continues it."""
    for kind, earlier in groupby(before, key=lambda key: key.kind):
        yield from _align(list(earlier), [key for key in now if key.kind == kind])


def _align(before: list[CheckKey], now: list[CheckKey]) -> Iterator[tuple[CheckKey, CheckKey]]:
    """Equal checks first, wherever they stand; then those that alone changed between checks that stayed."""
    earlier_of = {key: key for key in now if key in before}
    for form in dict.fromkeys(split_tokens(key.expression) for key in now):
        left = [key for key in before if key not in earlier_of.values() and split_tokens(key.expression) == form]
        right = [key for key in now if key not in earlier_of and split_tokens(key.expression) == form]
        if len(left) == len(right):
            earlier_of |= dict(zip(right, left, strict=True))
    gaps_before = _gaps(before, {key: key for key in earlier_of.values()})
    for place, right in _gaps(now, earlier_of).items():
        left = gaps_before.get(place, [])
        if len(left) == len(right) == 1:
            earlier_of[right[0]] = left[0]
    for key, earlier in earlier_of.items():
        yield earlier, key


def _gaps(keys: Sequence[CheckKey], stayed: Mapping[CheckKey, CheckKey]) -> dict[_Place, list[CheckKey]]:
    """The checks that did not stay, by the earlier checks that stand before and behind them; None is an end of the list."""
    gaps: dict[_Place, list[CheckKey]] = {}
    before: CheckKey | None = None
    gap: list[CheckKey] = []
    for key in (*keys, None):
        earlier = None if key is None else stayed.get(key)
        if key is not None and earlier is None:
            gap.append(key)
        else:
            gaps[before, earlier] = gap
            before, gap = earlier, []
    return gaps


@lru_cache(maxsize=4096)
def split_tokens(expression: str) -> tuple[str, ...]:
    """The tokens of an expression, without spaces and comments; the text alone if it has characters that CEL does not know."""
    # Commands that only read stored scans need no compiler, whose import takes as long as many of their answers.
    from scanner.cel.syntax.lexer import UNKNOWN, tokenize  # noqa: PLC0415

    *recognized, last = tokenize(expression)
    return (expression,) if last.kind == UNKNOWN else tuple(token.text for token in recognized)
