"""Policy health: the problems of policies and bindings, independent of objects."""

from scanner.health.observed import ObservedCounts, health_after
from scanner.health.static import health_before

__all__ = ["ObservedCounts", "health_after", "health_before"]
