"""The defaults of the kinds that are compiled into the API server, set in a whole document.

Mirrors `runtime.Scheme.Default` with the `SetObjectDefaults_*` functions of Kubernetes 1.36: the rules of a type first, then
those of the types inside it. The rules are grouped by API group; each names the upstream function. The defaults of alpha features
that are off unless a cluster switches them on are not set.

A document is as Go's encoder writes it: an absent member is nil. An object that a server has stored has its defaults, and is
returned as it is; all of a document that does not change is shared with the result.
"""

from __future__ import annotations

from scanner.model.json import JsonObject
from scanner.mutate.defaulting import api_server, core, infrastructure, pods, workloads
from scanner.mutate.schema import Schema
from scanner.mutate.walk import Rules, RuleSet

RULES: Rules = {
    **core.RULES,
    **pods.RULES,
    **workloads.APPS_RULES,
    **workloads.BATCH_RULES,
    **workloads.AUTOSCALING_RULES,
    **api_server.ADMISSION_RULES,
    **api_server.CERTIFICATES_RULES,
    **infrastructure.NETWORKING_RULES,
    **api_server.FLOWCONTROL_RULES,
    **api_server.RBAC_RULES,
    **infrastructure.RESOURCE_RULES,
    **workloads.SCHEDULING_RULES,
    **infrastructure.STORAGE_RULES,
    **api_server.EXTENSION_RULES,
}
"""The rule of each type, by the name of its definition."""
_DEFAULTS = RuleSet(RULES)


def set_defaults(schema: Schema, document: JsonObject) -> JsonObject:
    """A document of a built-in kind with all its defaults (`SetDefaults_*`); the same document if nothing is missing."""
    return _DEFAULTS.apply(schema, document)
