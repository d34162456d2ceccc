"""Variables that begin with ASSAY_ are ours, those of Kubernetes, or an error."""

from __future__ import annotations

import pytest

from scanner.config.environment import is_foreign, report_unknown, select_variables

OF_A_SERVICE = [
    "ASSAY_SERVICE_HOST",
    "ASSAY_SERVICE_PORT",
    "ASSAY_SERVICE_PORT_HTTP",
    "ASSAY_PORT",
    "ASSAY_PORT_8080_TCP",
    "ASSAY_PORT_8080_TCP_PROTO",
    "ASSAY_PORT_8080_TCP_PORT",
    "ASSAY_PORT_8080_TCP_ADDR",
]


@pytest.mark.parametrize(
    "name",
    [
        *OF_A_SERVICE,
        *(name.replace("ASSAY", "ASSAY_DB") for name in OF_A_SERVICE),
        "ASSAY_TEST_POSTGRES",
        "ASSAY_CONFORMANCE",
    ],
)
def test_variables_of_services_and_tests_set_nothing(name: str) -> None:
    """Kubernetes names them after Services: assay, assay-db."""
    assert is_foreign(name)
    assert {} == select_variables({name: "tcp://10.0.0.1:80"})


@pytest.mark.parametrize("name", ["ASSAY_EXPORT", "ASSAY_REPORT", "ASSAY_PORTS", "ASSAY_PORT_80_XYZ", "ASSAY_TESTS"])
def test_similar_variables_are_ours(name: str) -> None:
    """A misspelled variable is not taken for one of a Service."""
    assert {name: "x"} == select_variables({name: "x", "PATH": "/bin"})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ASSAY_OUTPTU", "Did you mean ASSAY_OUTPUT?"),
        ("ASSAY_output", "Did you mean ASSAY_OUTPUT?"),
        ("ASSAY_CONFG", "Did you mean ASSAY_CONFIG?"),
        ("ASSAY_ZZZ", "`assay config view` lists the names"),
    ],
)
def test_an_unknown_variable_is_an_error_with_the_nearest_name(name: str, hint: str) -> None:
    """Its value is not shown."""
    [error] = report_unknown([name, "ASSAY_DEBUG"], ["ASSAY_OUTPUT", "ASSAY_DB"])
    assert f"the environment variable {name} is unknown: unset it, or correct its name. {hint}" == str(error)
