"""Values of one source conflict; a value never conflicts with one of a higher source."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scanner.config.combinations import Excludes, Requires, SourcedValue, ValueSource, find_left_out
from scanner.errors import UsageError

FLAG, ENVIRONMENT, FILE = ValueSource.FLAG, ValueSource.ENVIRONMENT, ValueSource.FILE
RULES = (
    Excludes("--from", ("--context", "--as"), "files are no cluster"),
    Requires("--version", "--from", "a cluster has its own"),
    Requires("--as-group", "--as", belongs=True),
    Requires("--baseline", "--gate", values=("new",)),
)


def given(sources: Mapping[str, ValueSource], values: Mapping[str, object] | None = None) -> dict[str, SourcedValue]:
    """Values of these sources, named after their flags."""
    return {flag: SourcedValue((values or {}).get(flag, "x"), source, flag) for flag, source in sources.items()}


@pytest.mark.parametrize(
    ("sources", "removed"),
    [
        ({"--from": FLAG, "--context": FILE}, {"--context"}),
        ({"--from": FILE, "--context": FLAG}, {"--from"}),
        ({"--from": ENVIRONMENT, "--context": FILE, "--as": FILE}, {"--context", "--as"}),
        ({"--from": FILE, "--context": ENVIRONMENT, "--as": FILE}, {"--from"}),
        ({"--from": FILE, "--version": FILE, "--context": FLAG}, {"--from", "--version"}),
        ({"--from": FLAG, "--version": FILE}, set()),
        ({"--as": FLAG, "--as-group": FILE}, {"--as-group"}),
        ({"--as": FILE, "--as-group": FLAG}, set()),
        ({"--as": FILE, "--as-group": FILE, "--from": FLAG}, {"--as", "--as-group"}),
        ({"--context": FILE}, set()),
    ],
)
def test_a_higher_source_leaves_out_lower_values(sources: Mapping[str, ValueSource], removed: set[str]) -> None:
    """What needs a value that is left out is left out, too, and so are details of another user."""
    assert removed == find_left_out(given(sources), RULES)


@pytest.mark.parametrize("source", [FLAG, ENVIRONMENT, FILE])
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--from", "--context", "--as"), "--from cannot be combined with --context, --as: files are no cluster"),
        (("--version",), "--version needs --from: a cluster has its own"),
        (("--as-group",), "--as-group needs --as"),
        (("--baseline",), "--baseline needs --gate new"),
    ],
)
def test_values_of_one_source_conflict(source: ValueSource, flags: tuple[str, ...], message: str) -> None:
    """Variables and keys are as strict as flags."""
    with pytest.raises(UsageError) as error:
        find_left_out(given(dict.fromkeys(flags, source)), RULES)
    assert message == str(error.value)


def test_a_lower_value_does_not_help_against_a_conflict() -> None:
    """The two flags conflict with every content of the file."""
    with pytest.raises(UsageError, match="--from cannot be combined with --context: "):
        find_left_out(given({"--from": FLAG, "--context": FLAG, "--as": FILE}), RULES)


@pytest.mark.parametrize(
    ("gate", "baseline", "removed"),
    [(FLAG, FILE, {"--baseline"}), (ENVIRONMENT, FILE, {"--baseline"})],
)
def test_another_value_of_a_higher_source_leaves_out_what_needs_the_former(
    gate: ValueSource, baseline: ValueSource, removed: set[str]
) -> None:
    """The command line asks for another gate than the one that the baseline of the file is for."""
    values = given({"--gate": gate, "--baseline": baseline}, {"--gate": ("deny",)})
    assert removed == find_left_out(values, RULES)


def test_a_default_that_is_given_excludes_nothing() -> None:
    """A variable that turns a flag off is no conflict, and what needs the flag is left out."""
    off = {"--from": SourcedValue(None, ENVIRONMENT, "ASSAY_FROM", is_default=True)}
    assert frozenset() == find_left_out(off | given({"--context": FILE}), RULES)
    assert {"--version"} == find_left_out(off | given({"--version": FILE}), RULES)
