"""Servers outside the cluster, to which expressions of Kyverno's policies send requests."""
