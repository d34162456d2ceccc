"""From scan to scan: what changed, why, and which findings continue others."""
