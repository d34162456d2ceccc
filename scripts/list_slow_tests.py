"""Write `tests/slow.txt`: the tests that take longest, which `make test` leaves out.

`make slow` runs the whole suite and then this. A listed test stays while it takes half as long, so that the list changes when tests do
and not with every run, and also when it was skipped.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import mean
from typing import Final
from xml.etree import ElementTree as ET

TOP: Final = Path(__file__).parents[1]
LIST: Final = TOP / "tests" / "slow.txt"
SECONDS: Final = 0.4
HEAD: Final = f"""\
# The tests that take {SECONDS} seconds or longer with each of their parameters, on average, on two cores.
# `make test` leaves them out, `make check` runs all. Written by: make slow
"""


def slow_tests(junit: Path, listed: Collection[str]) -> list[str]:
    """The ids of the slow tests of a JUnit file of pytest, without parameters, in order; `listed` are those of the list before."""
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for case in ET.parse(junit).iter("testcase"):  # noqa: S314 - written by pytest
        ran = seconds[_id(case.attrib["classname"], case.attrib["name"])]
        if case.find("skipped") is None:
            ran.append(float(case.attrib["time"]))
    return sorted(name for name, ran in seconds.items() if _is_slow(ran, was_listed=name in listed))


def _is_slow(seconds: Sequence[float], *, was_listed: bool) -> bool:
    """Return whether a test is slow, by the seconds of its runs; one that did not run stays what it was."""
    return mean(seconds) >= SECONDS / (1 + was_listed) if seconds else was_listed


def _id(owner: str, name: str) -> str:
    """The id of a test, whose module and classes are joined with dots."""
    parts = owner.split(".")
    modules = next(
        count for count in range(len(parts), 0, -1) if TOP.joinpath(*parts[:count]).with_suffix(".py").is_file()
    )
    path = "/".join(parts[:modules]) + ".py"
    return "::".join((path, *parts[modules:], name.partition("[")[0]))


if __name__ == "__main__":
    names = slow_tests(Path(sys.argv[1]), frozenset(LIST.read_text().splitlines()))
    LIST.write_text(HEAD + "".join(f"{name}\n" for name in names))
