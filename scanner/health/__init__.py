"""Policy health: the problems of policies and bindings, independent of objects."""

from scanner.health.observed import ObservedCounts, find_observed_problems
from scanner.health.static import find_static_problems

__all__ = ["ObservedCounts", "find_observed_problems", "find_static_problems"]
