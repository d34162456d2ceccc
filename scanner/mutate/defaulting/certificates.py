"""Defaults of certificate requests: `+default` in `certificates/v1beta1/types.go`."""

from __future__ import annotations

from scanner.mutate.defaulting.rules import when_absent
from scanner.mutate.walk import Rules

RULES: Rules = {
    f"io.k8s.api.certificates.{version}.PodCertificateRequestSpec": when_absent(maxExpirationSeconds=86400)
    for version in ("v1alpha1", "v1beta1")
}
