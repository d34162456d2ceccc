"""`assay test`."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.kyverno import KYVERNO_VERSION
from scanner.cli.terminal.stdout import standard_output
from scanner.config.values import parse_kyverno_version
from scanner.report.text.numbers import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scanner.model.release import Minor
    from scanner.suite import BrokenSuite, Checked, Suite

EPILOG = (
    "A suite is a file named kyverno-test.yaml (Kyverno's format, evaluated as the Kyverno CLI does) or assay-test.yaml "
    "(kind: PolicyTest, with policies, params, resources and results, evaluated as admission does). "
    "Expectations about policies that Assay does not evaluate are not supported: they are counted, and change no exit code. "
    "Exit codes: 0 no difference · 1 a difference · 2 usage or configuration, or a suite that cannot be run."
)
_RIGHT = "as expected"
_WRONG = "DIFFERENT"
_UNSUPPORTED = "not supported"
_ERROR = "ERROR"
_DIFFERENT = 1
_BROKEN = 2


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
    counts: Counter[str] = Counter()
    with standard_output() as out:
        for suite in suites:
            for text in _run_suite(suite, release, counts, verbose=verbose):
                out.write(f"{text}\n")
        out.write(f"{_describe_counts(counts, len(suites))}\n")
    raise typer.Exit(_BROKEN if counts[_ERROR] else _DIFFERENT if counts[_WRONG] else 0)


def _run_suite(suite: Suite | BrokenSuite, release: Minor, counts: Counter[str], *, verbose: bool) -> Iterator[str]:
    """Check the expectations of a suite, count them, and yield a text for each result to print."""
    from scanner.errors import AssayError
    from scanner.suite import BrokenSuite

    if isinstance(suite, BrokenSuite):
        counts[_ERROR] += 1
        yield f"{_ERROR}  {suite.name}\n  {suite.error}"
        return
    unsupported: Counter[str] = Counter()
    try:
        for checked in _check_suite(suite, release):
            mark = _UNSUPPORTED if checked.unsupported else _RIGHT if checked.right else _WRONG
            counts[mark] += 1
            unsupported[checked.unsupported] += mark == _UNSUPPORTED
            if mark == _WRONG or (verbose and mark == _RIGHT):
                yield _describe_check(suite, checked, mark)
    except AssayError as error:
        counts[_ERROR] += 1
        yield f"{_ERROR}  {suite.name}\n  {error}"
    for reason, number in unsupported.items():
        if number:
            yield f"{_UNSUPPORTED}  {suite.name}\n  {reason}: {plural(number, 'expectation')}"


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


def _describe_counts(counts: Counter[str], suites: int) -> str:
    """The last line: the number of expectations, by their results."""
    total = counts[_RIGHT] + counts[_WRONG] + counts[_UNSUPPORTED]
    parts = [f"{counts[_RIGHT]:,} as expected", f"{counts[_WRONG]:,} different"]
    if counts[_UNSUPPORTED]:
        parts.append(f"{counts[_UNSUPPORTED]:,} not supported")
    if counts[_ERROR]:
        parts.append(f"{plural(counts[_ERROR], 'suite')} with an error")
    return f"{plural(total, 'expectation')} in {plural(suites, 'suite')}: {', '.join(parts)}"


def _describe_check(suite: Suite, checked: Checked, mark: str) -> str:
    expectation = checked.expectation
    actual = "; ".join(dict.fromkeys(_describe_result(result.status, result.message) for result in checked.results))
    expected = _describe_result(expectation.result, expectation.message)
    objects = checked.resource or "every object"
    return f"{mark}  {suite.name}\n  {expectation.policy} on {objects}: expected {expected}, got {actual}"


def _describe_result(status: str, message: str) -> str:
    return f"{status}: {message}" if message else status
