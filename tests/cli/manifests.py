"""Small manifests for the tests of the command line."""

from __future__ import annotations

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {name}
spec:
  matchConstraints:
    resourceRules:
      - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}
  validations:
    - {{expression: "{expression}", message: "{message}"}}
"""
BINDING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {name}
spec:
  policyName: {name}
  validationActions: [Deny]
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: {namespace}
"""


def policy(name: str, *, expression: str = "false", message: str = "not like this") -> str:
    """A policy on ConfigMaps."""
    return POLICY.format(name=name, expression=expression, message=message)


def bound(name: str, *, expression: str = "false", message: str = "not like this") -> str:
    """A policy on ConfigMaps, and a binding of the same name that denies."""
    return f"{policy(name, expression=expression, message=message)}---\n{BINDING.format(name=name)}"


def config_map(name: str, *, namespace: str = "shop") -> str:
    """A ConfigMap without data."""
    return CONFIG_MAP.format(name=name, namespace=namespace)
