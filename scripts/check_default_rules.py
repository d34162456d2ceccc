"""Lists the defaulting functions of Kubernetes for which `scanner/mutate/defaulting` has no rule, and fails when there is one.

Run it as `python -m scripts.check_default_rules`, with Go at hand; the sources are those of the modules that `tests/apiserver` pins.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from scanner.mutate.defaulting import RULES

_PINNED = Path(__file__).parent.parent / "tests" / "apiserver"
_FUNCTION = re.compile(r"^func SetDefaults_(\w+)\(", re.MULTILINE)
_TAGGED = re.compile(r"// \+default=(?!\"\"|0\n)(?:.*\n\s*//)*.*\n\s*\w+ +\S+ +`json")
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_API = "io.k8s.api."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_GONE = {
    "abac", "apps/v1beta1", "apps/v1beta2", "authentication", "authorization", "batch/v1beta1", "extensions",
    "flowcontrol/v1beta1", "flowcontrol/v1beta2", "policy/v1beta1", "rbac/v1alpha1", "rbac/v1beta1",
}  # fmt: skip
"""Groups and versions that hold nothing stored, or that no supported server serves."""
_ELSEWHERE = {
    "ConfigMap": "an empty map is not written",
    "CertificateSigningRequestCondition": "certificates.k8s.io/v1beta1 no longer has this kind",
    "CertificateSigningRequestSpec": "certificates.k8s.io/v1beta1 no longer has this kind",
    "CustomResourceDefinitionSpec": "CustomResourceDefinition",
    "Device": "NodeAllocatableResourceMapping",
    "BasicDevice": "NodeAllocatableResourceMapping",
    "DeviceTaint": "the time of the request cannot be known",
    "EndpointPort": "Endpoints",
    "HorizontalPodAutoscalerBehavior": "HorizontalPodAutoscaler",
    "NamespaceStatus": "Namespace",
    "PodLogOptions": "not stored",
    "ResourceList": "the types that hold one",
    "Rule": "RuleWithOperations",
    "ServicePort": "Service",
}


def missing(kubernetes: Path, api: Path, extensions: Path) -> Iterator[str]:
    """Yield the types that have defaults upstream and no rule here."""
    for path in sorted(kubernetes.glob("pkg/apis/*/*/defaults.go")):
        group, version = path.parts[-3:-1]
        yield from _without_rule(group, version, _FUNCTION.findall(path.read_text(encoding="utf-8")))
    for path in sorted(api.glob("*/*/types*.go")):
        group, version = path.parts[-3:-1]
        yield from _without_rule(group, version, _tagged(path.read_text(encoding="utf-8")))
    types = _FUNCTION.findall((extensions / "pkg/apis/apiextensions/v1/defaults.go").read_text(encoding="utf-8"))
    yield from (name for name in types if name not in _ELSEWHERE and f"{_EXTENSIONS}{name}" not in RULES)


def _without_rule(group: str, version: str, types: list[str]) -> Iterator[str]:
    if group in _GONE or f"{group}/{version}" in _GONE:
        return
    for name in types:
        if f"{_API}{group}.{version}.{name}" not in RULES and name not in _ELSEWHERE:
            yield f"{group}/{version} {name}"


def _tagged(source: str) -> list[str]:
    """Return the structs that have a field with a default in its comment."""
    return [name for name, body in _STRUCT.findall(source) if _TAGGED.search(body)]


def _module(name: str) -> Path:
    command = ["go", "list", "-m", "-f", "{{.Dir}}", name]
    completed = subprocess.run(command, cwd=_PINNED, check=True, capture_output=True, text=True)  # noqa: S603 - fixed words
    return Path(completed.stdout.strip())


def main() -> int:
    """Print the types without a rule. Exit code 1 when there is one."""
    modules = [_module(f"k8s.io/{name}") for name in ("kubernetes", "api", "apiextensions-apiserver")]
    names = sorted(set(missing(*modules)))
    print("\n".join(names) if names else f"{len(RULES)} types have rules, and none is missing")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
