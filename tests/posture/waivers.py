"""Waivers, subjects and scans for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from scanner.model.waiver import Waiver, WaiverSubject

DAY = date(2026, 3, 10)


def waiver(name: str = "legacy", **more: Any) -> Waiver:
    """A waiver for the policy `replicas` in the namespace `shop`, until the end of March."""
    made = Waiver(name, "replicas", date(2026, 3, 31), "legacy", "ann", "bob", namespace="shop")
    return replace(made, **more)


def subject(**more: Any) -> WaiverSubject:
    """A pod of the Deployment `web` in the namespace `shop`."""
    made = WaiverSubject(
        *("replicas", "c-1", "object.spec.replicas <= 5", "shop", "Pod", "web-1", "Deployment", "web"),
        (("app", "web"), ("team", "shop")),
    )
    return made._replace(**more)
