"""Small repositories of manifests and libraries of policies, laid out as public ones are: the manifests stand among files of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}{more}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: c, image: "registry.example.com/{name}:1"}}]}}
"""
SERVICE: Final = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}}\n"
NAMESPACE: Final = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
POLICY: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:{params}
  matchConstraints:
    resourceRules:
      - {{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}}
  validations:
    - {{expression: "{expression}"}}
"""
BINDING: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]{more}}}
"""
KUSTOMIZATION: Final = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [{}]\n"
CHART: Final = "apiVersion: v2\nname: web\nversion: 0.1.0\n"
TEMPLATE: Final = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\n"
DEFINITION: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.rules.example.com}
spec:
  group: rules.example.com
  names: {kind: Limit, plural: limits}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true}]
"""
LIMIT: Final = "apiVersion: rules.example.com/v1\nkind: Limit\nmetadata: {name: limit}\nspec: {most: 3}\n"


def deployment(name: str = "web", **metadata: str) -> str:
    """A Deployment with one container."""
    more = "".join(f", {key}: {value}" for key, value in metadata.items())
    return DEPLOYMENT.format(name=name, more=more)


def custom(kind: str, group: str, name: str = "a") -> str:
    """An object of a kind without a definition."""
    return f"apiVersion: {group}/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n"


def bound(name: str, expression: str = "true", *, params: str = "", more: str = "") -> str:
    """A policy on Deployments, and its binding."""
    return (
        f"{POLICY.format(name=name, expression=expression, params=params)}---\n{BINDING.format(name=name, more=more)}"
    )


@dataclass(frozen=True, slots=True)
class Repository:
    """The files of a repository, and the result of a scan: exit code, number of gaps, and the kinds that are out of scope."""

    files: Mapping[str, str]
    code: int
    gaps: int
    outside: tuple[str, ...]


REPOSITORIES: Final = {
    "kustomize overlays": Repository(
        {
            "base/kustomization.yaml": KUSTOMIZATION.format("deployment.yaml, service.yaml"),
            "base/deployment.yaml": deployment(),
            "base/service.yaml": SERVICE,
            "overlays/prod/kustomization.yaml": "resources: [../../base]\npatches: [{path: replicas.yaml}, {path: json.yaml}]\n",
            "overlays/prod/replicas.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 5}\n",
            "overlays/prod/json.yaml": "- {op: replace, path: /spec/replicas, value: 3}\n",
        },
        0,
        0,
        ("kustomization", "kustomization", "kustomizeInput", "kustomizeInput"),
    ),
    "a chart beside manifests": Repository(
        {
            "deploy/web.yaml": deployment(),
            "charts/web/Chart.yaml": CHART,
            "charts/web/values.yaml": "kind: Deployment\nreplicas: 3\n",
            "charts/web/templates/deployment.yaml": TEMPLATE,
            "charts/web/templates/tests/pod.yaml": "{{- if .Values.tests }}\nkind: Pod\n{{- end }}\n",
        },
        0,
        0,
        ("helmChart", "helmTemplate", "helmTemplate", "helmValues"),
    ),
    "continuous delivery": Repository(
        {
            "apps/web.yaml": f"{deployment()}---\n{custom('Application', 'argoproj.io')}",
            "clusters/prod/sync.yaml": custom("Kustomization", "kustomize.toolkit.fluxcd.io"),
            "clusters/prod/release.yaml": custom("HelmRelease", "helm.toolkit.fluxcd.io"),
            "clusters/prod/kustomization.yaml": KUSTOMIZATION.format("sync.yaml"),
        },
        0,
        0,
        ("document", "document", "document", "kustomization"),
    ),
    "monitoring": Repository(
        {
            "manifests/prometheus.yaml": custom("Prometheus", "monitoring.coreos.com"),
            "manifests/monitor.yaml": custom("ServiceMonitor", "monitoring.coreos.com"),
            "manifests/deployment.yaml": deployment("operator"),
            "dashboards/nodes.json": '{"title": "Nodes", "panels": []}',
            "tests/rules.yaml": "rule_files: [a.yaml]\nevaluation_interval: 1m\n",
        },
        0,
        0,
        ("document", "document", "noManifest", "noManifest"),
    ),
    "an application": Repository(
        {
            "k8s/web.yaml": deployment(),
            "docker-compose.yml": "services: {web: {image: web}}\n",
            "package.json": '{"name": "web", "version": "1.0.0"}',
            "skaffold.yaml": "apiVersion: skaffold/v4beta1\nkind: Config\nmanifests: {rawYaml: [k8s/*]}\n",
        },
        0,
        0,
        ("document", "noManifest", "packageMetadata"),
    ),
    "jobs with generated names": Repository(
        {
            "job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: migrate-}\n",
            "web.yaml": deployment(),
            "copies/web.yaml": deployment(),
        },
        0,
        0,
        ("repeated",),
    ),
    "two releases of one object": Repository(
        {"v1/web.yaml": deployment(), "v2/web.yaml": deployment(labels="{release: two}"), "v2/service.yaml": SERVICE},
        3,
        1,
        (),
    ),
    "an old manifest": Repository(
        {
            "web.yaml": deployment().replace("apps/v1", "extensions/v1beta1"),
            "other.yaml": deployment("other"),
            "set.yaml": custom("PodSecurityPolicy", "policy"),
            "broken.yaml": "kind: Deployment\nmetadata: {name: broken}\n",
        },
        3,
        2,
        ("document",),
    ),
}
"""A policy is about Deployments: everything that cannot be one is out of scope."""

LIBRARIES: Final = {
    "metadata and tests beside each policy": Repository(
        {
            "kustomization.yaml": KUSTOMIZATION.format("owner/policy.yaml"),
            "owner/policy.yaml": bound("owner"),
            "owner/artifacthub-pkg.yml": "name: owner\nversion: 1.0.0\n",
            "owner/tests.json": '[{"name": "a deployment", "expected": "fail"}]',
            "owner/resources.yaml": f"{deployment()}---\n{SERVICE}",
        },
        0,
        0,
        ("kustomization", "noManifest", "packageMetadata", "unusedDocument", "unusedDocument"),
    ),
    "suites of the Kyverno CLI": Repository(
        {
            "owner/owner.yaml": bound("owner"),
            "owner/.kyverno-test/kyverno-test.yaml": "name: hidden\n",
            "owner/kyverno-test.yaml": "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: owner}\n",
            "owner/chainsaw-test.yaml": "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: owner}\n",
            "old/policy.yaml": custom("ClusterPolicy", "kyverno.io"),
        },
        0,
        0,
        ("legacyPolicy", "testSuite", "testSuite"),
    ),
    "params and their definition": Repository(
        {
            "controls/replicas.yaml": bound(
                "replicas",
                "object.spec.?replicas.orValue(1) <= params.spec.most",
                params="\n  paramKind: {apiVersion: rules.example.com/v1, kind: Limit}",
                more=", paramRef: {name: limit, parameterNotFoundAction: Deny}",
            ),
            "apis/limit.yaml": DEFINITION,
            "configuration/limit.yaml": LIMIT,
            "tests/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: test-}\n",
        },
        0,
        0,
        ("unusedDocument",),
    ),
    "a chart of policies beside them": Repository(
        {
            "policies/owner.yaml": bound("owner"),
            "charts/policies/Chart.yaml": CHART,
            "charts/policies/templates/owner.yaml": "kind: ValidatingAdmissionPolicy\nmetadata: {name: {{ .Values.name }}}\n",
            "docs/broken.yaml": "a: [\n",
        },
        0,
        0,
        ("helmChart", "helmTemplate", "unusedDocument"),
    ),
    "a policy that cannot be read": Repository(
        {"a.yaml": bound("owner"), "b.yaml": "kind: ValidatingAdmissionPolicy\nspec: [\n"},
        2,
        0,
        (),
    ),
}
"""A folder that `-f` names."""
