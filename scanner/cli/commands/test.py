"""`assay test`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.kyverno import KYVERNO_VERSION
from scanner.cli.terminal.stdout import standard_output
from scanner.config.values import parse_kyverno_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scanner.model.release import Minor
    from scanner.suite import Checked, Suite

EPILOG = (
    "A suite is a file named kyverno-test.yaml (Kyverno's format, evaluated as the Kyverno CLI does) or assay-test.yaml "
    "(kind: PolicyTest, with policies, params, resources and results, evaluated as admission does). "
    "Exit codes: 0 all as expected · 1 a difference · 2 usage or configuration."
)
_DIFFERENT = 1


def command(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Suites, or folders that contain suites.")],
    kyverno_release: Annotated[
        str,
        typer.Option(
            KYVERNO_VERSION,
            metavar="RELEASE",
            help="Release of Kyverno whose rules apply, such as 1.18. Default: the newest.",
            show_default=False,
        ),
    ] = "",
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Also print results that are as expected.")] = False,
) -> None:
    """Run policy test suites and print every result that differs from the expected one."""
    from scanner.cluster.files.suites import read_suites

    release = _find_release(parse_kyverno_version(kyverno_release))
    suites = [suite for path in paths for suite in read_suites(path)]
    right = wrong = 0
    with standard_output() as out:
        for suite in suites:
            for checked in _check_suite(suite, release):
                right, wrong = right + checked.right, wrong + (not checked.right)
                if verbose or not checked.right:
                    out.write(f"{_describe_check(suite, checked)}\n")
        out.write(
            f"{right + wrong:,} expectations in {len(suites):,} suites: {right:,} as expected, {wrong:,} different\n"
        )
    raise typer.Exit(_DIFFERENT if wrong else 0)


def _find_release(version: str) -> Minor:
    """The release of Kyverno whose rules apply, by the version of the flag; a note on stderr if it is another one."""
    from scanner.policies.kyverno.releases import NEWEST, release_of

    if not version:
        return NEWEST
    release = release_of(version)
    if release.note:
        typer.echo(f"assay: {release.note}", err=True)
    return release.rules


def _check_suite(suite: Suite, release: Minor) -> Iterator[Checked]:
    from scanner.cluster.definitions import builtin_kinds
    from scanner.cluster.schemas import KnownSchemas, builtin_schemas
    from scanner.cluster.yaml import load
    from scanner.suite import check

    yield from check(suite, builtin_kinds(), KnownSchemas(builtin_schemas()), datetime.now(UTC), load, release)


def _describe_check(suite: Suite, checked: Checked) -> str:
    expectation = checked.expectation
    actual = "; ".join(dict.fromkeys(_describe_result(result.status, result.message) for result in checked.results))
    expected = _describe_result(expectation.result, expectation.message)
    objects = checked.resource or "every object"
    mark = "as expected" if checked.right else "DIFFERENT"
    return f"{mark}  {suite.name}\n  {expectation.policy} on {objects}: expected {expected}, got {actual}"


def _describe_result(status: str, message: str) -> str:
    return f"{status}: {message}" if message else status
