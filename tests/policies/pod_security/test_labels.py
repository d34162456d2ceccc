"""What six labels demand of the pods of a namespace."""

from __future__ import annotations

import pytest

from scanner.policies.pod_security.labels import NO_DEMANDS, Demand, Mode, read_labels
from scanner.policies.pod_security.standards import Level, Version

PREFIX = "pod-security.kubernetes.io/"


def demanded(**labels: str) -> dict[str, str]:
    """What labels demand, given without their prefix and with underscores."""
    policy = read_labels({f"{PREFIX}{key.replace('_', '-')}": value for key, value in labels.items()})
    return {mode.value: str(demand) for mode, demand in policy.demands.items()}


@pytest.mark.parametrize(
    ("labels", "enforce", "audit", "warn"),
    [
        ({}, "privileged:latest", "privileged:latest", "privileged:latest"),
        ({"enforce": "baseline"}, "baseline:latest", "privileged:latest", "baseline:latest"),
        (
            {"enforce": "restricted", "enforce_version": "v1.24"},
            "restricted:v1.24",
            "privileged:latest",
            "restricted:v1.24",
        ),
        ({"enforce": "baseline", "warn": "privileged"}, "baseline:latest", "privileged:latest", "privileged:latest"),
        ({"enforce": "baseline", "warn": "BAD"}, "baseline:latest", "privileged:latest", "privileged:latest"),
        ({"enforce": "baseline", "warn_version": "v1.3"}, "baseline:latest", "privileged:latest", "baseline:v1.3"),
        ({"enforce": "strict"}, "restricted:latest", "privileged:latest", "privileged:latest"),
        ({"audit": "strict"}, "privileged:latest", "privileged:latest", "privileged:latest"),
        ({"enforce": "baseline", "enforce_version": "1.25"}, "baseline:latest", "privileged:latest", "baseline:latest"),
        ({"warn": "restricted", "warn_version": "v1.99"}, "privileged:latest", "privileged:latest", "restricted:v1.99"),
    ],
)
def test_labels_demand_a_level_and_a_version_in_each_mode(
    labels: dict[str, str], enforce: str, audit: str, warn: str
) -> None:
    """An invalid `enforce` fails closed, the other modes fail open, and a valid `enforce` warns, too."""
    assert {"enforce": enforce, "audit": audit, "warn": warn} == demanded(**labels)


def test_defaults_of_the_server_fill_what_labels_leave_out() -> None:
    """The version of the default stays where a label names the level alone."""
    defaults = {**NO_DEMANDS, Mode.ENFORCE: Demand(Level.BASELINE, Version(24))}
    policy = read_labels({Mode.ENFORCE.level_key: "restricted"}, defaults)

    assert "restricted:v1.24" == str(policy.demands[Mode.ENFORCE])


@pytest.mark.parametrize("version", ["", "1.25", "v1.025", "v1.25.0", "v2.0", "LATEST", "v1.9223372036854775808"])
def test_an_invalid_version_has_the_error_of_the_server(version: str) -> None:
    """The value stands in it as Go quotes it."""
    policy = read_labels({Mode.WARN.version_key: version})

    assert [
        f'metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "{version}": must be "latest" or "v1.x"'
    ] == list(map(str, policy.faults))
