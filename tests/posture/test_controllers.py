"""Facts about the kinds that usually stand between objects and their workloads."""

from __future__ import annotations

import pytest

from scanner.model.population import GroupKind
from scanner.posture.workloads import list_usual_controllers

JOBS = ("batch", "Job")
CRON_JOBS = ("batch", "CronJob")


def test_pods_have_every_controller_of_kubernetes() -> None:
    """And the controllers of these; a Node controls mirror Pods."""
    expected = (
        ("", "Node"),
        ("", "ReplicationController"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        CRON_JOBS,
        JOBS,
    )
    assert expected == list_usual_controllers([("", "Pod")])


@pytest.mark.parametrize(
    ("kinds", "controllers"),
    [
        ([], ()),
        ([("", "ConfigMap")], ()),
        ([JOBS], (CRON_JOBS,)),
        ([JOBS, CRON_JOBS], (CRON_JOBS,)),
        ([("example.com", "Pod")], ()),
    ],
)
def test_other_kinds_have_few_or_none(kinds: list[GroupKind], controllers: tuple[GroupKind, ...]) -> None:
    """The top of a chain has none."""
    assert controllers == list_usual_controllers(kinds)
