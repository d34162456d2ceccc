"""Values of the chart: the ways in which it is installed."""

from __future__ import annotations

from typing import Final

from scanner.model.json import JsonObject

RULES: Final[JsonObject] = {"apiGroups": ["example.com"], "resources": ["limits"], "verbs": ["get", "list"]}
SERVE: Final[JsonObject] = {
    "database": {"existingSecret": "assay-db"},
    "config": {"oidcIssuer": "https://id.example.com", "oidcClientId": "assay", "oidcGroup": ["auditors"]},
    "serve": {"enabled": True},
}
FLEET: Final[JsonObject] = {
    "database": {"existingSecret": "assay-db"},
    "fleet": {
        "clusters": [
            {"name": "prod-eu", "kubeconfigSecret": {"name": "assay-kubeconfigs", "key": "prod-eu"}},
            {
                "name": "prod-us",
                "kubeconfigSecret": {"name": "assay-kubeconfigs", "key": "prod-us"},
                "context": "admin",
            },
        ],
        "parallelism": 2,
    },
}
FLEET_AND_SERVE: Final[JsonObject] = {
    **FLEET,
    **SERVE,
    "fleet": {
        "clusters": [
            {
                "name": name,
                "kubeconfigSecret": {"name": f"{name}-kubeconfig", "key": "kubeconfig"},
                "schedule": "@weekly",
                "timeZone": "Europe/Berlin",
            }
            for name in ("east", "west.example.com", "3")
        ],
        "parallelism": 2,
    },
    "networkPolicy": {"enabled": True},
}
TOKEN: Final[JsonObject] = {"name": "prometheus", "sha256": "0" * 64, "expires": "2027-03-31"}
SCRAPED: Final[JsonObject] = {
    **SERVE,
    "config": {"tokens": [TOKEN]},
    "serviceMonitor": {"enabled": True, "token": {"existingSecret": "assay-token"}},
}
PAGES: Final[JsonObject] = {"matchLabels": {"app.kubernetes.io/component": "serve"}}
EVERYTHING: Final[JsonObject] = {
    "image": {"repository": "registry.example.com/assay", "digest": f"sha256:{'0' * 64}", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "fullnameOverride": "audit",
    "commonLabels": {"team": "platform"},
    "serviceAccount": {"name": "auditor", "annotations": {"example.com/role": "audit"}},
    "rbac": {"extraRules": [RULES], "roles": [{"namespace": "settings", "rules": [RULES]}]},
    "clusterName": "production",
    "config": {
        "skipKind": ["secrets"],
        "failOn": ["new"],
        "schedule": {"tolerance": "30m"},
        "oidcIssuer": "https://id.example.com",
        "oidcClientId": "assay",
        "oidcGroup": ["auditors"],
    },
    "waivers": {"enabled": True},
    "database": {"existingSecret": "assay-db", "key": "address", "timeout": "5m", "limit": "50Gi"},
    "schedule": "@daily",
    "timeZone": "Europe/Berlin",
    "suspend": True,
    "kindTimeout": "1h30m",
    "activeDeadlineSeconds": 10800,
    "exitZeroOn": "",
    "logFormat": "text",
    "extraArgs": ["--verbose"],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example.com"}],
    "extraEnvFrom": [{"secretRef": {"name": "push"}}],
    "extraVolumes": [{"name": "controls", "configMap": {"name": "controls"}}],
    "extraVolumeMounts": [{"name": "controls", "mountPath": "/controls"}],
    "podAnnotations": {"example.com/note": "scan"},
    "podLabels": {"network": "api"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "spot", "operator": "DoesNotExist"}]}}
            ]
        }
    },
    "priorityClassName": "system-cluster-critical",
    "serve": {
        "enabled": True,
        "replicas": 2,
        "annotations": {"reloader.stakater.com/auto": "true"},
        "database": {"existingSecret": "assay-db-reader"},
        "sessionKey": {"existingSecret": "assay-session"},
        "oidcClientSecret": {"existingSecret": "assay-oidc"},
        "service": {"type": "NodePort", "annotations": {"example.com/note": "pages"}},
        "metrics": {"enabled": True},
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "annotations": {"example.com/note": "pages"},
            "hosts": [{"host": "audit.example.com", "paths": [{"path": "/", "pathType": "Prefix"}]}],
            "tls": [{"secretName": "audit-tls", "hosts": ["audit.example.com"]}],
        },
        "httpRoute": {
            "enabled": True,
            "annotations": {"example.com/note": "pages"},
            "parentRefs": [{"name": "gateway"}],
            "hostnames": ["audit.example.com"],
        },
        "podDisruptionBudget": {"enabled": True},
        "extraArgs": ["--session-time=1h"],
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example.com"}],
        "extraVolumes": [{"name": "controls", "configMap": {"name": "controls"}}],
        "extraVolumeMounts": [{"name": "controls", "mountPath": "/controls"}],
        "podAnnotations": {"example.com/note": "pages"},
        "podLabels": {"network": "pages"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": PAGES}}
                ]
            }
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": PAGES,
            }
        ],
        "priorityClassName": "system-cluster-critical",
    },
    "networkPolicy": {
        "enabled": True,
        "extraEgress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        "ingressFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
    },
    "serviceMonitor": {
        "enabled": True,
        "labels": {"release": "monitoring"},
        "interval": "1m",
        "scrapeTimeout": "30s",
    },
    "prometheusRule": {"enabled": True, "labels": {"release": "monitoring"}},
}
BACKUP: Final[JsonObject] = {
    "backup": {
        "enabled": True,
        "schedule": "@weekly",
        "suspend": True,
        "keep": 3,
        "activeDeadlineSeconds": 600,
        "existingClaim": "copies",
        "resources": {"limits": {"memory": "128Mi"}},
    },
    "networkPolicy": {"enabled": True},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": EVERYTHING["affinity"],
    "priorityClassName": "system-cluster-critical",
    "podLabels": {"network": "none"},
    "podAnnotations": {"example.com/note": "backup"},
    "imagePullSecrets": [{"name": "registry"}],
}
READER: Final[JsonObject] = {**SERVE, "upgrade": {"grantSelect": ["assay_reader", "Grafana, eu"]}}
MATRIX: Final[dict[str, JsonObject]] = {
    "defaults": {},
    "postgresql": {"database": {"existingSecret": "assay-db"}},
    "existing claim": {"persistence": {"existingClaim": "history"}},
    "storage class": {"persistence": {"storageClass": "fast", "size": "10Gi", "annotations": {}}},
    "no storage class": {"persistence": {"storageClass": "-"}},
    "no volume": {"persistence": {"enabled": False}},
    "no upgrade": {"upgrade": {"enabled": False}},
    "no identity": {"serviceAccount": {"create": False, "name": "mine"}, "rbac": {"create": False}},
    "least privilege": {"rbac": {"rules": [RULES], "roles": [{"namespace": "settings", "rules": [RULES]}]}},
    "waivers": {"waivers": {"enabled": True}},
    "serve": SERVE,
    "serve without upgrade": {**SERVE, "upgrade": {"enabled": False}},
    "fleet": FLEET,
    "fleet and serve": FLEET_AND_SERVE,
    "alerts": {"prometheusRule": {"enabled": True}},
    "metrics with a token": SCRAPED,
    "backup": {"backup": {"enabled": True}},
    "backup with values": BACKUP,
    "reader": READER,
    "everything": EVERYTHING,
}
