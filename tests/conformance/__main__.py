"""`make conformance`: one line per recorded file; differences go to `build/conformance`.

The files of the other folder come first, under their names; then those of the repository, as `recorded/NAME`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.cases import RECORDED, absent, folder, is_copy, label, load
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


def main() -> int:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(prog="make conformance")
    parser.add_argument("--cases", type=Path, default=folder())
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if not arguments.cases.is_dir():
        sys.stderr.write(f"{absent('all', arguments.cases)}, or with CASES=DIR\n")
    for name, result in run(arguments.cases, arguments.only):
        sys.stdout.write(f"{name} {result}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
