"""`make conformance`: one line per recorded file; differences go to `build/conformance`.

The files of the other folder come first, under their names; then those of the repository, as `recorded/NAME`.
With `REPLAYS=1`, a table of the replays of snapshots instead.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.cases import RECORDED, absent, files, folder, is_copy, label, load
from tests.conformance.replay_suites import SUITES
from tests.conformance.replays import HEADS, score_suites, write_line
from tests.conformance.scores import COMPARISONS, Score, score

_REPORTS = Path("build/conformance")


def run(cases: Path, only: str = "") -> Iterator[tuple[str, Score]]:
    """Score every known file of a folder and of the repository; a file that is the same in both is evaluated once."""
    scored: dict[Path, Score] = {}
    for parent in dict.fromkeys((cases.resolve(), RECORDED)):
        for name in COMPARISONS:
            path = parent / f"{name}.json.gz"
            if not path.exists() or only not in ("", name):
                continue
            twin = cases.resolve() / path.name
            same = scored.get(twin) if parent == RECORDED and twin in scored and is_copy(twin, path) else None
            scored[path] = same or score(COMPARISONS[name](load(path)), _REPORTS / f"{label(path)}.json")
            yield label(path), scored[path]


def replay(only: str = "") -> Iterator[tuple[str, ...]]:
    """A line for each file: scans that write a snapshot, compared with their replays and with what is recorded."""
    yield write_line("suite", HEADS), ""
    for path in files(*(name for name in SUITES if only in ("", name))):
        with tempfile.TemporaryDirectory() as scratch:
            name = path.name.removesuffix(".json.gz")
            score = score_suites(SUITES[name](load(path)), Path(scratch))
        yield write_line(label(path), score.cells()), *(f"\n  {each}" for each in score.differences)


def main() -> int:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(prog="make conformance")
    parser.add_argument("--cases", type=Path, default=folder())
    parser.add_argument("--only", default="")
    parser.add_argument("--replays", action="store_true")
    arguments = parser.parse_args()
    if arguments.replays:
        for line in replay(arguments.only):
            print(*line, sep="", flush=True)  # noqa: T201
        return 0
    if not arguments.cases.is_dir():
        sys.stderr.write(f"{absent('all', arguments.cases)}, or with CASES=DIR\n")
    for name, result in run(arguments.cases, arguments.only):
        sys.stdout.write(f"{name} {result}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
