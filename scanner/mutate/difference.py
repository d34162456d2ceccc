"""The smallest patch that turns one JSON value into another, and only where they differ.

The patch is RFC 6902 with `add`, `remove` and `replace`. Objects are compared member by member; lists are aligned first, by
equality and then by the fields that name their elements, so that an inserted container is one `add`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from scanner.model.outcome import Change
from scanner.mutate.operations import Node, is_same_json

NAMING = ("name", "key", "containerPort", "port", "mountPath", "type", "ip", "topologyKey", "uid")
_MOST_PAIRS = 250_000


class _ComparisonBudget:
    """The pairs of elements that a difference may still compare; beyond them, lists are compared place by place."""

    def __init__(self) -> None:
        self._left = _MOST_PAIRS

    def allow(self, pairs: int) -> bool:
        """Return whether a table of so many pairs may be made, and count it."""
        if pairs > self._left:
            return False
        self._left -= pairs
        return True


def find_changes(before: Node, after: Node) -> tuple[Change, ...]:
    """The changes from `before` to `after`, in the order in which they apply; none when the values are equal."""
    return tuple(_find_changes(before, after, "", _ComparisonBudget()))


def _find_changes(before: Node, after: Node, path: str, comparisons: _ComparisonBudget) -> Iterator[Change]:
    if is_same_json(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _find_member_changes(before, after, path, comparisons)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _find_element_changes(before, after, path, comparisons)
    else:
        yield Change("replace", path, after, was=before)


def _find_member_changes(
    before: dict[str, Node], after: dict[str, Node], path: str, comparisons: _ComparisonBudget
) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        place = f"{path}/{escape_name(name)}"
        if name not in after:
            yield Change("remove", place, was=before[name])
        elif name not in before:
            yield Change("add", place, after[name])
        else:
            yield from _find_changes(before[name], after[name], place, comparisons)


def escape_name(name: str) -> str:
    """A member's name inside a path: `~` is `~0`, `/` is `~1` (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _find_element_changes(
    before: Sequence[Node], after: Sequence[Node], path: str, comparisons: _ComparisonBudget
) -> Iterator[Change]:
    """The changes from the end of the list to its beginning, so that every index still refers to the original list."""
    at, to = len(before), len(after)
    for left, right in (*reversed(_align(before, after, comparisons)), (-1, -1)):
        yield from _fill_gap(before, after, (left + 1, at), (right + 1, to), path, comparisons)
        if left >= 0:
            yield from _find_changes(before[left], after[right], f"{path}/{left}", comparisons)
        at, to = left, right


def _fill_gap(
    before: Sequence[Node],
    after: Sequence[Node],
    ours: tuple[int, int],
    theirs: tuple[int, int],
    path: str,
    comparisons: _ComparisonBudget,
) -> Iterator[Change]:
    """The changes between two aligned pairs: elements are replaced while both lists have them, then removed or added."""
    (first, end), (start, stop) = ours, theirs
    common = min(end - first, stop - start)
    yield from (
        Change("remove", f"{path}/{index}", was=before[index]) for index in reversed(range(first + common, end))
    )
    yield from (Change("add", f"{path}/{first + common}", value) for value in reversed(after[start + common : stop]))
    for offset in reversed(range(common)):
        yield from _find_changes(before[first + offset], after[start + offset], f"{path}/{first + offset}", comparisons)


def align(before: Sequence[Node], after: Sequence[Node]) -> list[tuple[int, int]]:
    """Pairs of the indexes of elements that are equal or have the same name, in order."""
    return _align(before, after, _ComparisonBudget())


def _align(before: Sequence[Node], after: Sequence[Node], comparisons: _ComparisonBudget) -> list[tuple[int, int]]:
    head = sum(1 for _ in takewhile(lambda pair: is_same_json(*pair), zip(before, after, strict=False)))
    rest = zip(reversed(before[head:]), reversed(after[head:]), strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: is_same_json(*pair), rest))
    middle = _find_longest(before[head : len(before) - tail], after[head : len(after) - tail], comparisons)
    return [
        *((index, index) for index in range(head)),
        *((head + left, head + right) for left, right in middle),
        *((len(before) - tail + index, len(after) - tail + index) for index in range(tail)),
    ]


def _find_longest(
    before: Sequence[Node], after: Sequence[Node], comparisons: _ComparisonBudget
) -> list[tuple[int, int]]:
    """The longest common subsequence; an equal pair counts for more than one of the same name."""
    if not before or not after or not comparisons.allow(len(before) * len(after)):
        return []
    weights = [[_weigh(left, right) for right in after] for left in before]
    best = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in reversed(range(len(before))):
        for j in reversed(range(len(after))):
            paired = weights[i][j] and weights[i][j] + best[i + 1][j + 1]
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    return list(_walk_back(weights, best))


def _walk_back(weights: list[list[int]], best: list[list[int]]) -> Iterator[tuple[int, int]]:
    i = j = 0
    while i < len(weights) and j < len(weights[0]):
        if weights[i][j] and best[i][j] == weights[i][j] + best[i + 1][j + 1]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def _weigh(left: Node, right: Node) -> int:
    if is_same_json(left, right):
        return 3
    if not isinstance(left, dict) or not isinstance(right, dict):
        return 0
    names = [name for name in NAMING if name in left or name in right]
    return 2 if names and is_same_json(left.get(names[0]), right.get(names[0])) else 0
