"""Kyverno's validating policies: what becomes of a manifest, of an exception, of a Pod's controllers."""
