"""The permissions that a scan needs for its lists, computed before the scan.

Source of truth: the requests of a scan (`scanner.scan.run`), and their attributes for RBAC (k8s.io/apiserver, RequestInfo): a list of
all namespaces needs a ClusterRole, a list in one namespace a Role in it, and a Namespace object belongs to the namespace of its
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypeAlias

from scanner.admission.dispatch import BoundPolicy
from scanner.model.missing_right import parse_missing_right
from scanner.model.outcome import Gap
from scanner.model.policy import Policy
from scanner.model.reading import Auditability
from scanner.model.resource import NAMESPACES, Kind
from scanner.model.scans.scan import COUNTS_PATH
from scanner.policies.bound_language import BoundLanguage
from scanner.policies.language import list_deciding_kinds, list_document_kinds
from scanner.policies.other_sources import list_rights
from scanner.policies.plan import KindPlan, find_other_versions, plan
from scanner.policies.pod_security.pods import TEMPLATES
from scanner.policies.webhooks import list_webhook_kinds
from scanner.posture.workloads import list_usual_controllers
from scanner.scan.edges import Cluster
from scanner.scan.options import Options
from scanner.scan.param_table import ParamTable
from scanner.scan.prepare import prepare

_REVIEWS: Final = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
DEFINITIONS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
CONTROLLER_ACCOUNTS: Final = (
    "cronjob-controller",
    "daemon-set-controller",
    "deployment-controller",
    "generic-garbage-collector",
    "job-controller",
    "pv-protection-controller",
    "pvc-protection-controller",
    "replicaset-controller",
    "replication-controller",
    "statefulset-controller",
)
"""The service accounts in kube-system whose requests `assay preview` makes."""
_HOME: Final = "kube-system"
_ANY_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""A fixed moment: permissions do not depend on the time, as policy exceptions do."""
_CLASSES: Final = (("storage.k8s.io", "storageclasses"), ("networking.k8s.io", "ingressclasses"))


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """A permission: a verb on a resource, in a namespace or (empty) in all, on an object or (empty) on all; or on a `url`.

    A `url` is a path of the API server that is no resource, such as `/metrics`; group, resource, namespace and name are empty then.
    `why` is its purpose. A scan without an `optional` permission is still complete; `without` is the difference, or empty.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""
    why: str = ""
    optional: bool = False
    without: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class RequiredPermissions:
    """The permissions of a scan, ordered by API group, resource and verb.

    `gaps` are policies and kinds that could not be read, and that may need further permissions; a list that a permission among
    `rights` allows is none.
    """

    rights: tuple[Permission, ...]
    gaps: tuple[Gap, ...]


def list_permissions(cluster: Cluster, options: Options, waivers_namespace: str = "") -> RequiredPermissions:
    """The permissions that a scan with these options needs, and to read the waivers of a namespace.

    Raises ClusterError and UsageError as `prepare` does.
    """
    prepared = prepare(cluster, options, _ANY_MOMENT)
    kinds = cluster.discover().kinds
    languages, operations = prepared.evaluation.languages, prepared.context.operations
    bound = tuple(bound_policy for language in languages for bound_policy in language.bound)
    permissions = [
        *_document_permissions(kinds, options),
        *_identity_permissions(),
        *_namespace_permissions(options.scope.namespaces),
        *_param_permissions(kinds, bound, options.scope.namespaces),
        *_authorizer_permissions(bound),
        *_inventory_permissions(languages),
        *_language_permissions(languages),
        *_metrics_permissions(options),
        *_waiver_permissions(waivers_namespace),
    ]
    lines = plan(kinds, bound, operations, prepared.evaluation_context.relabelled)
    kind_plans = [line for line in lines if not prepared.listing.find_exclusion(line.kind)]
    for kind_plan in kind_plans:
        names = sorted({bound.policy.name for bound, _ in kind_plan.policies})
        permissions.extend(_list_permissions(kind_plan.kind, prepared.listing.namespaces, f"policy {', '.join(names)}"))
    permissions.extend(
        _conversion_permissions(
            find_other_versions(kinds, ((each.policy, each.bindings) for each in bound), operations)
        )
    )
    permissions.extend(_workload_permissions(kinds, kind_plans, options.scope.namespaces))
    unread = {
        f"{kind.api_version}/{kind.kind}"
        for language in options.languages
        for kind in list_deciding_kinds(language, kinds)
    }
    gaps = (gap for gap in prepared.gaps if gap.where in unread or not parse_missing_right(gap.why))
    return RequiredPermissions(_merge(permissions), tuple(gaps))


def list_check_permissions(cluster: Cluster, options: Options) -> RequiredPermissions:
    """The permissions that `assay check` needs for manifests of any kind that a bound policy matches.

    The objects of manifests, their namespaces and params are read one by one. Raises ClusterError and UsageError as `prepare` does.
    """
    prepared = prepare(cluster, options, _ANY_MOMENT)
    kinds = cluster.discover().kinds
    languages, operations = prepared.evaluation.languages, prepared.context.operations
    bound = tuple(bound_policy for language in languages for bound_policy in language.bound)
    webhooks = {kind.plural for kind in list_webhook_kinds(kinds)}
    permissions = [
        *(
            replace(need, optional=False) if need.resource in webhooks else need
            for need in _document_permissions(kinds, options)
        ),
        *_identity_permissions(),
        Permission("", NAMESPACES.plural, "get", why="the namespaces of manifests"),
        *_plugin_permissions(),
        *(Permission(*each, "list", why="the default classes of claims and Ingresses") for each in _CLASSES),
        *_read_param_permissions(kinds, bound),
        *_authorizer_permissions(bound),
        *_inventory_permissions(languages),
        *_language_permissions(languages),
        *_conversion_permissions(
            find_other_versions(kinds, ((each.policy, each.bindings) for each in bound), operations)
        ),
    ]
    for kind_plan in plan(kinds, bound, operations, prepared.evaluation_context.relabelled):
        why = "the objects of manifests as they are now"
        permissions.append(Permission(kind_plan.kind.group, kind_plan.kind.plural, "get", why=why))
    unread = {
        f"{kind.api_version}/{kind.kind}"
        for language in options.languages
        for kind in list_deciding_kinds(language, kinds)
    }
    gaps = (gap for gap in prepared.gaps if gap.where in unread or not parse_missing_right(gap.why))
    return RequiredPermissions(_merge(permissions), tuple(gaps))


def list_preview_permissions(cluster: Cluster, options: Options, *, asks_server: bool = False) -> RequiredPermissions:
    """The permissions that `assay preview` needs: those of a scan, and the lists of pods, their workloads and what plug-ins read.

    If it `asks_server`, also those of `--ask-server`. Raises ClusterError and UsageError as `prepare` does.
    """
    needs = list_permissions(cluster, options)
    kinds = cluster.discover().kinds
    resources = {(kind.group, kind.plural) for kind in kinds}
    workloads = sorted({*TEMPLATES, ("", "pods")} & resources)
    webhooks = [(kind.group, kind.plural) for kind in list_webhook_kinds(kinds)]
    permissions = [
        *needs.rights,
        *(Permission(*each, "list", why="workloads that could not start again") for each in workloads),
        *(Permission(*each, "list", why="webhooks that change pods") for each in webhooks),
        *(replace(need, verb="list") for need in _plugin_permissions()),
        *(_asking_permissions(workloads) if asks_server else ()),
    ]
    return RequiredPermissions(_merge(permissions), needs.gaps)


def _asking_permissions(workloads: Iterable[tuple[str, str]]) -> Iterator[Permission]:
    """Those of `assay preview --ask-server`: dry runs need the same permissions as writes."""
    for account in CONTROLLER_ACCOUNTS:
        yield Permission(
            "", "serviceaccounts", "impersonate", _HOME, account, "the requests of controllers, as dry runs"
        )
    yield Permission("", "pods", "create", why="pods without a controller, as dry runs")
    for each in workloads:
        yield Permission(*each, "patch", why="edits by the user, as dry runs")
    yield Permission(
        "apiregistration.k8s.io", "apiservices", "list", why="kinds of aggregated API servers, which may ignore dryRun"
    )


def _plugin_permissions() -> Iterator[Permission]:
    """What built-in admission plug-ins read about pods and claims."""
    for group, plural, verb in (
        ("", "serviceaccounts", "get"),
        ("", "limitranges", "list"),
        ("scheduling.k8s.io", "priorityclasses", "list"),
        ("node.k8s.io", "runtimeclasses", "get"),
    ):
        yield Permission(group, plural, verb, why="what built-in admission plug-ins do with pods")


def _read_param_permissions(kinds: tuple[Kind, ...], bound: Iterable[BoundPolicy]) -> Iterator[Permission]:
    """The params of policies: those that bindings name are read, those that they select are listed."""
    table = ParamTable(kinds)
    for kind, users in table.list_needed(bound).items():
        for user in users:
            for reference in (binding.param_ref for binding in user.bindings if binding.param_ref):
                verb = "get" if reference.name else "list"
                namespace = reference.namespace if kind.namespaced else ""
                name = reference.name if verb == "get" else ""
                why = f"params of policy {user.policy.name}"
                yield Permission(kind.group, kind.plural, verb, namespace, name, why)


def _conversion_permissions(users: Mapping[Kind, tuple[Policy, ...]]) -> Iterator[Permission]:
    """The definitions of custom resources that policies read in another version than that of the request."""
    for kind, policies in users.items():
        why = f"the conversion of its versions, for policy {', '.join(sorted({policy.name for policy in policies}))}"
        yield Permission(DEFINITIONS.group, DEFINITIONS.plural, "get", name=kind.resource, why=why)


def _document_permissions(kinds: tuple[Kind, ...], options: Options) -> Iterator[Permission]:
    if options.cluster_policies:
        for kind in list_document_kinds(options.languages, kinds):
            yield from _list_permissions(kind, ("",), "policies and bindings")
    for group, plural, namespace, why, optional, without in list_rights(kinds, options.scope.namespaces or ("",)):
        yield Permission(group, plural, "list", namespace, why=why, optional=optional, without=without)


def _identity_permissions() -> Iterator[Permission]:
    why = "to identify the cluster under another name"
    yield Permission("", NAMESPACES.plural, "get", _HOME, _HOME, why, optional=True)


def _namespace_permissions(names: tuple[str, ...]) -> Iterator[Permission]:
    why = "every object's namespace"
    if not names:
        yield Permission("", NAMESPACES.plural, "list", why=why)
    for name in names:
        yield Permission("", NAMESPACES.plural, "get", name, name, why)


def _param_permissions(
    kinds: tuple[Kind, ...], bound: Iterable[BoundPolicy], within: tuple[str, ...]
) -> Iterator[Permission]:
    table = ParamTable(kinds)
    for kind, users in table.list_needed(bound).items():
        names = ", ".join(user.policy.name for user in users)
        yield from _list_permissions(kind, table.list_namespaces(kind, users, within), f"params of policy {names}")


def _authorizer_permissions(bound: Iterable[BoundPolicy]) -> Iterator[Permission]:
    names = [policy.policy.name for policy in bound if Auditability.AUTHORIZER in policy.reading.classes]
    if names:
        why = f"authorizer checks of policy {', '.join(names)}"
        yield Permission(_REVIEWS.group, _REVIEWS.plural, "create", why=why, optional=True)


def _inventory_permissions(languages: Iterable[BoundLanguage]) -> Iterator[Permission]:
    """The objects that the expressions of policies read."""
    for bound, reads in (policy for language in languages for policy in language.reads()):
        for kind, namespaces in reads.items() if not bound.reading.reason else ():
            yield from _list_permissions(kind, namespaces, f"expressions of policy {bound.policy.name}")


def _language_permissions(languages: Iterable[BoundLanguage]) -> Iterator[Permission]:
    """The objects that a language lists for itself, such as its configuration."""
    for right in (right for language in languages for right in language.rights()):
        group, plural, namespace, why, optional, without = right
        yield Permission(group, plural, "list", namespace, why=why, optional=optional, without=without)


def _waiver_permissions(namespace: str) -> Iterator[Permission]:
    """The ConfigMaps with waivers. Those of other namespaces waive nothing, so a scan needs no right to list them."""
    if namespace:
        yield Permission("", "configmaps", "list", namespace, why="waivers")


def _metrics_permissions(options: Options) -> Iterator[Permission]:
    """The metrics with the API server's own counts of objects, for scans of whole kinds."""
    if not options.scope.namespaces:
        without = "the objects of a scan are not compared with the API server's own counts"
        yield Permission(
            "", "", "get", why="the API server's own counts of objects", optional=True, without=without, url=COUNTS_PATH
        )


def _workload_permissions(
    kinds: tuple[Kind, ...], kind_plans: Iterable[KindPlan], within: tuple[str, ...]
) -> Iterator[Permission]:
    """The usual controllers above the evaluated objects. A scan of namespaces needs no cluster-scoped ones."""
    usual = list_usual_controllers((kind_plan.kind.group, kind_plan.kind.kind) for kind_plan in kind_plans)
    preferred = {(kind.group, kind.kind): kind for kind in reversed(kinds)}
    for kind in (preferred[name] for name in usual if name in preferred):
        if kind.namespaced or not within:
            for need in _list_permissions(kind, within or ("",), "workloads (metadata only)"):
                yield replace(need, optional=True, without="workloads are derived from names and owner references")


def _list_permissions(kind: Kind, namespaces: Iterable[str], why: str) -> Iterator[Permission]:
    for namespace in namespaces if kind.namespaced else ("",):
        yield Permission(kind.group, kind.plural, "list", namespace, why=why)


_Right: TypeAlias = tuple[str, str, str, str, str, str]
"""Group, resource, verb, namespace, name and URL of a permission."""


def _merge(wanted: Iterable[Permission]) -> tuple[Permission, ...]:
    """Each permission once, with all its purposes; a permission in all namespaces includes that in one.

    An optional permission in all namespaces does not include one that is needed in a namespace.
    """
    needs_of: dict[_Right, list[Permission]] = {}
    for need in wanted:
        right = (need.group, need.resource, need.verb, need.namespace, need.name, need.url)
        needs_of.setdefault(right, []).append(need)
    merged = {right: _join(same) for right, same in needs_of.items()}
    everywhere = {right[:3]: need for right, need in merged.items() if not any(right[3:])}
    return tuple(sorted(need for right, need in merged.items() if not _is_included(need, everywhere.get(right[:3]))))


def _join(same: list[Permission]) -> Permission:
    optional = all(need.optional for need in same)
    effects = dict.fromkeys(need.without for need in same if need.without) if optional else ()
    why = "; ".join(dict.fromkeys(need.why for need in same))
    return replace(same[0], why=why, optional=optional, without="; ".join(effects))


def _is_included(need: Permission, everywhere: Permission | None) -> bool:
    return bool(need.namespace) and everywhere is not None and (need.optional or not everywhere.optional)
