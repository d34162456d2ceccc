"""The built-in plug-ins in the order of the API server, with the objects that they read.

Source of truth: `AllOrderedPlugins` of `pkg/kubeapiserver/options` of kube-apiserver 1.36: these plug-ins are on by default, and change
new objects before any policy does; after all changes, they validate pods and claims. Whether a server has disabled one is not written in
the API.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

from msgspec import Struct

from scanner.admission.params import ParamSource
from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_text, dig
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource, resource_of
from scanner.model.withheld import has_withheld
from scanner.mutate import registry
from scanner.mutate.schema import Schemas
from scanner.preview.plugins import classes, defaults, limit_ranger, service_account
from scanner.preview.plugins.refusal import (
    ACCOUNTS,
    INGRESS_CLASSES,
    LIMIT_RANGES,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    PluginRefusal,
)
from scanner.preview.verdict import Decision, Effect

LIMIT_RANGER: Final = "LimitRanger"
SERVICE_ACCOUNT: Final = "ServiceAccount"
PRIORITY: Final = "Priority"
TOLERATIONS: Final = "DefaultTolerationSeconds"
STORAGE_CLASS: Final = "DefaultStorageClass"
IN_USE: Final = "StorageObjectInUseProtection"
RUNTIME_CLASS: Final = "RuntimeClass"
INGRESS_CLASS: Final = "DefaultIngressClass"
BUILT_IN: Final = (
    LIMIT_RANGER,
    SERVICE_ACCOUNT,
    PRIORITY,
    TOLERATIONS,
    STORAGE_CLASS,
    IN_USE,
    RUNTIME_CLASS,
    INGRESS_CLASS,
)
"""The plug-ins in their order."""
LISTED: Final = (LIMIT_RANGES, PRIORITY_CLASSES)
"""The kinds that plug-ins list for pods; the others are read by name."""
NAMED: Final = (ACCOUNTS, RUNTIME_CLASSES)
DEFAULTS: Final = (STORAGE_CLASSES, INGRESS_CLASSES)
"""The kinds that plug-ins list for claims and Ingresses."""
_PODS: Final = "pods"
_CLAIMS: Final = "persistentvolumeclaims"
_ORDER: Final = "the result depends on the order of LimitRanges, which an API server does not define"
_MIRROR: Final = "the pod is a mirror pod, which only kubelets create"
_T = TypeVar("_T")
_Step = Callable[[JsonObject], JsonObject]


class Plugins(Struct, frozen=True):
    """The plug-ins of a server, which read `objects` by name or list them. `namespaces` are those of the requests.

    `files` tells that files stand for the cluster: an object that they do not have is not known. `disabled` are the plug-ins that the
    server does not run.
    """

    objects: ParamSource
    schemas: Schemas
    namespaces: Mapping[str, JsonObject]
    release: Minor
    files: bool = False
    disabled: Collection[str] = ()

    def change(self, resource: Resource, decisions: list[Decision], *, created: bool) -> Resource | None:
        """The object as the plug-ins leave it, None if one refuses it; `decisions` gets refusals and what is undecided."""
        body = resource.body
        for name, step in self._list_steps(resource, decisions, created=created).items():
            changed = self._run(name, lambda step=step, body=body: step(body), decisions)  # type: ignore[misc]
            if any(each.effect is Effect.REFUSES and each.policy == name for each in decisions):
                return None
            body = body if changed is None else changed
        return resource if body is resource.body else resource_of(resource.kind, body)

    def _list_steps(self, resource: Resource, decisions: list[Decision], *, created: bool) -> dict[str, _Step]:
        """The plug-ins that change objects of a kind."""
        plural = resource.kind.plural
        match (resource.kind.group, plural, created):
            case ("", "pods", False):
                return {TOLERATIONS: classes.set_tolerations}
            case ("", "pods", True):
                return {
                    LIMIT_RANGER: lambda pod: self._set_limits(pod, resource.namespace, decisions),
                    SERVICE_ACCOUNT: lambda pod: self._set_account(pod, resource.namespace, decisions),
                    PRIORITY: self._set_priority,
                    TOLERATIONS: classes.set_tolerations,
                    RUNTIME_CLASS: self._set_runtime,
                }
            case ("networking.k8s.io", "ingresses", True):
                return {INGRESS_CLASS: lambda body: defaults.set_ingress_class(body, self._list(INGRESS_CLASSES))}
            case ("" | "storage.k8s.io", _, True) if plural in defaults.PROTECTED:
                steps: dict[str, _Step] = {IN_USE: lambda body: defaults.protect(plural, body)}
                if plural == _CLAIMS:
                    steps[STORAGE_CLASS] = lambda body: defaults.set_storage_class(body, self._list(STORAGE_CLASSES))
                return steps
            case _:
                return {}

    def _list(self, kind: Kind) -> defaults.Classes:
        return lambda: map(_known, self.objects.list_all(kind, ""))

    def validate(self, resource: Resource, decisions: list[Decision], *, created: bool) -> None:
        """Add what plug-ins refuse in the object that mutating policies leave."""
        if _is(resource, _CLAIMS) or (_is(resource, _PODS) and created):
            self._run(LIMIT_RANGER, lambda: self._check_limits(resource), decisions)
        if _is(resource, _PODS) and created:
            self._run(SERVICE_ACCOUNT, lambda: self._check_secrets(resource), decisions)
            self._run(RUNTIME_CLASS, lambda: self._check_overhead(resource.body), decisions)

    def _run(self, name: str, step: Callable[[], _T], decisions: list[Decision]) -> _T | None:
        """The result of a plug-in, None if it is disabled, refuses or cannot be evaluated: then `decisions` gets the reason."""
        if name in self.disabled:
            return None
        try:
            return step()
        except PluginRefusal as refusal:
            fields = (refusal.field,) if refusal.field else ()
            decisions.append(Decision(Effect.REFUSES, str(refusal), name, fields=fields))
        except (ListFailed, ValueError) as error:
            _add_undecided(decisions, name, str(error))
        return None

    # LimitRanger.

    def _list_limit_ranges(self, namespace: str) -> list[JsonObject]:
        ranges = [_known(each) for each in self.objects.list_all(LIMIT_RANGES, namespace)]
        schema = self.schemas.schema(LIMIT_RANGES) if ranges else None
        return [registry.decode(schema, each.body) if schema else each.body for each in ranges]

    def _set_limits(self, pod: JsonObject, namespace: str, decisions: list[Decision]) -> JsonObject:
        ranges = self._list_limit_ranges(namespace)
        changed = limit_ranger.set_defaults(pod, ranges)
        if changed.get("spec") != limit_ranger.set_defaults(pod, ranges[::-1]).get("spec"):
            _add_undecided(decisions, LIMIT_RANGER, _ORDER)
        return changed

    def _check_limits(self, resource: Resource) -> None:
        ranges = self._list_limit_ranges(resource.namespace)
        for fault in limit_ranger.find_faults(resource.body, ranges, self.release):
            raise PluginRefusal(fault, "spec.resources" if _is(resource, _CLAIMS) else "spec.containers")

    # ServiceAccount.

    def _find_account(self, pod: JsonObject, namespace: str) -> JsonObject:
        """The account of a pod. Raises PluginRefusal without one, and ListFailed if it is not known."""
        name = service_account.name_account(pod)
        account = self.objects.get(ACCOUNTS, namespace, name)
        if account is not None:
            return _known(account).body
        is_new = not dig(self.namespaces.get(namespace), "metadata", "uid")
        if name == service_account.DEFAULT and (self.files or is_new):
            return {"metadata": {"name": name}}  # a controller makes it in every namespace
        if self.files:
            raise ListFailed("failed", f"the files do not have the service account {namespace}/{name}")
        raise PluginRefusal(
            f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found',
            "spec.serviceAccountName",
        )

    def _set_account(self, pod: JsonObject, namespace: str, decisions: list[Decision]) -> JsonObject:
        if dig(pod, "metadata", "annotations", service_account.MIRROR) is not None:
            _add_undecided(decisions, SERVICE_ACCOUNT, _MIRROR)
            return pod
        return service_account.set_account(pod, self._find_account(pod, namespace))

    def _check_secrets(self, resource: Resource) -> None:
        if dig(resource.body, "metadata", "annotations", service_account.MIRROR) is None:
            account = self._find_account(resource.body, resource.namespace)
            service_account.reject_secrets(resource.body, account)

    # Priority and RuntimeClass.

    def _set_priority(self, pod: JsonObject) -> JsonObject:
        """The pod with its priority; files need not have the classes of the system."""
        listed = {each.name: _known(each).body for each in self.objects.list_all(PRIORITY_CLASSES, "")}
        known = {**classes.SYSTEM_CLASSES, **listed} if self.files else listed
        name = as_text(dig(pod, "spec", "priorityClassName"))
        if self.files and name and name not in known:
            raise ListFailed("failed", f"the files do not have the PriorityClass {name}")
        return classes.set_priority(pod, known.values())

    def _find_runtime_class(self, pod: JsonObject) -> JsonObject | None:
        """The RuntimeClass of a pod, None if it names none. Raises PluginRefusal if it does not exist, and ListFailed if it is not known."""
        name = dig(pod, "spec", "runtimeClassName")
        if name is None:
            return None
        if found := self.objects.get(RUNTIME_CLASSES, "", as_text(name)):
            return _known(found).body
        if self.files:
            raise ListFailed("failed", f"the files do not have the RuntimeClass {as_text(name)}")
        raise PluginRefusal(f'pod rejected: RuntimeClass "{as_text(name)}" not found', "spec.runtimeClassName")

    def _set_runtime(self, pod: JsonObject) -> JsonObject:
        found = self._find_runtime_class(pod)
        return classes.set_runtime(pod, found) if found else pod

    def _check_overhead(self, pod: JsonObject) -> None:
        classes.reject_overhead(pod, self._find_runtime_class(pod))


def concerns_plugins(kind: Kind) -> bool:
    """Return whether a plug-in may change or refuse the objects of a kind."""
    return not kind.group and kind.plural in (_PODS, _CLAIMS)


def _known(resource: Resource) -> Resource:
    """An object that a plug-in reads. Raises ListFailed if a snapshot withholds a part that may decide."""
    if any(has_withheld(value) for field, value in resource.body.items() if field != "metadata"):
        raise ListFailed("failed", f"the snapshot withholds a part of {resource.kind.kind} {resource.name}")
    return resource


def _is(resource: Resource, plural: str) -> bool:
    return (resource.kind.group, resource.kind.plural) == ("", plural)


def _add_undecided(decisions: list[Decision], name: str, why: str) -> None:
    """Add that a plug-in is undecided, once for each reason."""
    decision = Decision(Effect.UNDECIDED, why, name)
    if decision not in decisions:
        decisions.append(decision)
