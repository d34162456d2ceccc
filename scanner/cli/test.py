"""`assay test`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.output import standard_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scanner.suite import Checked, Suite

EPILOG = (
    "Suites are files named kyverno-test.yaml, Kyverno's own form judged as its command line judges, or assay-test.yaml "
    "(kind: PolicyTest, with policies, params, resources and results), judged as admission would. "
    "Exit codes: 0 as expected · 1 a difference · 2 usage."
)
_DIFFERENT = 1


def command(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Suites, or folders in which there are some.")],
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show what is as expected, too.")] = False,
) -> None:
    """Judge objects in files by policies in files, and print where that is not what was expected."""
    from scanner.cluster.suites import read_suites

    suites = [suite for path in paths for suite in read_suites(path)]
    right = wrong = 0
    with standard_output() as out:
        for suite in suites:
            for checked in _checked(suite):
                right, wrong = right + checked.right, wrong + (not checked.right)
                if verbose or not checked.right:
                    out.write(f"{_line(suite, checked)}\n")
        out.write(f"{right + wrong:,} expectations in {len(suites):,} suites: {right:,} met, {wrong:,} not\n")
    raise typer.Exit(_DIFFERENT if wrong else 0)


def _checked(suite: Suite) -> Iterator[Checked]:
    from scanner.cluster.definitions import builtin_kinds
    from scanner.cluster.schemas import KnownSchemas, builtin_schemas
    from scanner.cluster.yaml import load
    from scanner.suite import check

    yield from check(suite, builtin_kinds(), KnownSchemas(builtin_schemas()), datetime.now(UTC), load)


def _line(suite: Suite, checked: Checked) -> str:
    it = checked.expectation
    said = "; ".join(
        dict.fromkeys(f"{one.status}: {one.message}" if one.message else one.status for one in checked.said)
    )
    expected = f"{it.result}: {it.message}" if it.message else it.result
    mark = "as expected" if checked.right else "DIFFERENT"
    return f"{mark}  {suite.name}\n  {it.policy} on {checked.resource or 'every object'}: expected {expected}; it is {said}"
