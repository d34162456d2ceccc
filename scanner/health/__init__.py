"""Policy health: what is wrong with policies and bindings, whatever the objects are like."""

from scanner.health.observed import Counted, health_after
from scanner.health.static import health_before

__all__ = ["Counted", "health_after", "health_before"]
