"""Kyverno's ValidatingPolicy and NamespacedValidatingPolicy, with autogen and PolicyException, from manifest to outcomes.

Source of truth: `policies.kyverno.io` and Kyverno 1.18. Objects are judged as Kyverno's webhook would judge them when they are
written; `manner` is how to ask for Kyverno's own reports instead.
"""
