"""The CEL environment of Kyverno's policies: Kubernetes' own, and the libraries that Kyverno adds to it.

Mirrors `pkg/cel/compiler` of Kyverno and the libraries of kyverno/sdk: one file each, listed here. `declared` has the declarations
of each release, the files the code. The environment is Kyverno's own and does not depend on the cluster's release.
"""

from __future__ import annotations

from functools import cache

from scanner.cel.checking.env import VARIABLES, Environment
from scanner.cel.functions.declaration import Library
from scanner.cel.releases import Version
from scanner.cel.types.type_system import TIMESTAMP
from scanner.cel.values.values import Struct, Timestamp, Value
from scanner.model.release import Minor, format_minor
from scanner.policies.kyverno.libraries import (
    certificates,
    documents,
    encodings,
    images,
    network,
    numbers,
    patterns,
    records,
    resources,
    syntax,
    times,
)
from scanner.policies.kyverno.libraries.cluster_data import (
    Call,
    ClusterData,
    Collection,
    Network,
    NoClusterData,
    SecretSafe,
    Unavailable,
)
from scanner.policies.kyverno.libraries.declared import Declarations, declarations, library
from scanner.policies.kyverno.releases import CONFINED_GLOBAL_CONTEXT, CONFINED_HTTP, MISSING_IS_NULL, NEWEST

__all__ = [
    "Call",
    "ClusterData",
    "Collection",
    "Network",
    "NoClusterData",
    "Unavailable",
    "environment",
    "exempted",
    "library_values",
    "rules_of",
    "secret_safe",
]

_RULES: dict[Minor, Version] = {
    (1, 16): (1, 34),
    (1, 17): (1, 35),
    (1, 18): (1, 35, 27, 26),
    (1, 19): (1, 36, 30, 26),
}
"""The Kubernetes release whose libraries each release is built with, and the minor versions of cel-go and Go if Kubernetes has others."""


def rules_of(release: Minor) -> Version:
    """Return the version of Kubernetes' libraries, and of cel-go, that a release is built with."""
    return _RULES[release]


def environment(release: Minor = NEWEST, *, namespaced: bool) -> Environment:
    """Return the declarations of a policy's expressions; a namespaced policy's `resource` functions take no namespace."""
    return _environment(release, namespaced=namespaced)


@cache
def _environment(release: Minor, *, namespaced: bool) -> Environment:
    declared = declarations(format_minor(release), namespaced=namespaced)
    return Environment(
        variables=(*(declared.variables | {"variables": VARIABLES}).items(), (syntax.NOW, TIMESTAMP)),
        objects=tuple(declared.objects.items()),
        version=rules_of(release),
        extras=_libraries(release, declared, namespaced=namespaced),
    )


def _libraries(release: Minor, declared: Declarations, *, namespaced: bool) -> tuple[Library, ...]:
    """The libraries in the order in which Kyverno adds them: the overloads of a function are tried in this order."""
    implementations = {
        "syntax": (syntax.IMPLEMENTATION,),
        "encodings": (encodings.IMPLEMENTATION,),
        "numbers": (numbers.IMPLEMENTATION,),
        "patterns": (patterns.IMPLEMENTATION,),
        "globalcontext": (resources.ENTRIES,),
        "resource": (resources.NAMESPACED if namespaced else resources.CLUSTER,),
        "image": (images.implementation(release),),
        "records": (records.IMPLEMENTATION,),
        "documents": (documents.implementation(release), documents.ENCODE),
        "certificates": (certificates.IMPLEMENTATION,),
        "times": (times.IMPLEMENTATION,),
        "network": (network.REQUESTS, network.OTHERS),
    }
    return (
        Library("kyverno.now", (), macros=(syntax.NOW_MACRO,) if "time.now" in declared.functions else ()),
        *(
            library(f"kyverno.{name}", files, declared, syntax.MACROS if name == "syntax" else ())
            for name, files in implementations.items()
        ),
    )


def library_values(
    cluster_data: ClusterData, now: Timestamp, namespace: str = "", release: Minor = NEWEST
) -> dict[str, Value]:
    """Return the values of the libraries' variables; `namespace` is a namespaced policy's own."""
    missing_is_null = MISSING_IS_NULL.holds(release)
    is_entry_confined = CONFINED_GLOBAL_CONTEXT.holds(release) and bool(namespace)
    return {
        "resource": resources.ResourceReader(cluster_data, namespace, missing_is_null=missing_is_null),
        "globalContext": resources.GlobalContext(cluster_data, confined=is_entry_confined),
        "http": network.Http(cluster_data, namespace if CONFINED_HTTP.holds(release) else ""),
        "image": network.ImageData(cluster_data),
        "json": documents.JsonReader(),
        "yaml": documents.YamlReader(cluster_data),
        syntax.NOW: now,
    }


def exempted(images_: list[str], values: list[str]) -> Struct:
    """Return the value of `exceptions`: what partial exceptions offer to a policy's expressions."""
    return Struct(records.EXCEPTIONS, {"allowedImages": images_, "allowedValues": values})


def secret_safe(cluster_data: ClusterData) -> dict[str, Value]:
    """Return the values of the variables that differ for a Secret; none if no data leave the process."""
    if not cluster_data.reaches_out:
        return {}
    return {"http": network.Http(SecretSafe()), "image": network.ImageData(SecretSafe())}
