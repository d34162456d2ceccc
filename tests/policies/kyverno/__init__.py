"""Kyverno's validating policies: manifests, exceptions, and the controllers of Pods."""
