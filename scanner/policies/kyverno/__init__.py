"""Kyverno's ValidatingPolicy and NamespacedValidatingPolicy, with autogen and PolicyException, from manifest to outcomes.

Source of truth: `policies.kyverno.io` and Kyverno 1.19. Objects are evaluated as Kyverno's webhook evaluates a request for them;
a `KyvernoMode` selects the evaluation of Kyverno's own reports instead.
"""
