"""`assay verify-parity` without a cluster: usage errors and exit codes."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Assay


@pytest.mark.parametrize(
    "flags",
    [("--sample", "0"), ("--sample", "many"), ("--seed", "-1"), ("--operation", "delete"), ("-o", "html")],
)
def test_a_flag_without_effect_is_a_usage_error(assay: Assay, flags: tuple[str, ...]) -> None:
    """No request is sent to a cluster."""
    ran = assay("verify-parity", *flags)

    assert (2, b"") == (ran.code, ran.stdout)


def test_an_empty_value_does_not_widen_the_scope(assay: Assay) -> None:
    """An unset variable in a script must not write objects of every namespace."""
    ran = assay("verify-parity", "-n", "")

    assert (2, b"") == (ran.code, ran.stdout)
    assert ran.stderr.startswith("assay: -n has an empty value")


def test_without_a_cluster_the_command_could_not_run(assay: Assay) -> None:
    """The message is one sentence, and the exit code is 4."""
    ran = assay("verify-parity", "--kubeconfig", "nowhere")

    assert (4, b"") == (ran.code, ran.stdout)
    assert "there is no kubeconfig nowhere" in ran.stderr
