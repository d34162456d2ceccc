"""ServiceAccount: the account of a pod, the volume with its token, its pull secrets, and the secrets that it may not use.

Source of truth: `plugin/pkg/admission/serviceaccount` of kube-apiserver 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.preview.plugins.refusal import PluginRefusal

DEFAULT: Final = "default"
MIRROR: Final = "kubernetes.io/config.mirror"
"""The annotation of the pods that kubelets create for those of their own files."""
ENFORCES: Final = "kubernetes.io/enforce-mountable-secrets"
"""The only annotation of an account that the plug-in reads."""
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
"""The texts that Go's `strconv.ParseBool` reads as true."""
_VOLUME: Final = "kube-api-access-"
_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_CONTAINERS: Final = (("initContainers", "init container"), ("containers", "container"))
_SOURCES: Final[list[Json]] = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
]


def name_account(pod: JsonObject) -> str:
    """The name of the account of a pod."""
    return as_text(dig(pod, "spec", "serviceAccountName")) or DEFAULT


def set_account(pod: JsonObject, account: JsonObject) -> JsonObject:
    """The pod with its account, the token of the account and its pull secrets. The name of the new volume ends as no real one does."""
    name = name_account(pod)
    spec = {**as_object(pod.get("spec")), "serviceAccountName": name, "serviceAccount": name}
    if _mounts_token(spec, account):
        spec = _mount_token(spec)
    secrets: list[Json] = [{"name": dig(each, "name")} for each in as_list(account.get("imagePullSecrets"))]
    if secrets and not as_list(spec.get("imagePullSecrets")):
        spec["imagePullSecrets"] = secrets
    return {**pod, "spec": spec}


def _mounts_token(spec: JsonObject, account: JsonObject) -> bool:
    """Return whether containers get the token: the pod decides, else the account, else they do."""
    wishes = (each.get("automountServiceAccountToken") for each in (spec, account))
    return next((wish for wish in wishes if isinstance(wish, bool)), True)


def _mount_token(spec: dict[str, Json]) -> dict[str, Json]:
    """The spec with the volume, if a container has no mount of its own at the path of the token."""
    names = [as_text(dig(volume, "name")) for volume in as_list(spec.get("volumes"))]
    present = next((name for name in names if name.startswith(_VOLUME)), "")
    mount: JsonObject = {"name": present or f"{_VOLUME}xxxxx", "readOnly": True, "mountPath": _MOUNT_PATH}
    mounted = {
        field: [_add_mount(as_object(each), mount) for each in as_list(spec[field])]
        for field, _ in _CONTAINERS
        if as_list(spec.get(field))
    }
    if present or all(mounted[field] == spec[field] for field in mounted):
        return {**spec, **mounted}
    volume: JsonObject = {"name": mount["name"], "projected": {"sources": _SOURCES, "defaultMode": 420}}
    return {**spec, **mounted, "volumes": [*as_list(spec.get("volumes")), volume]}


def _add_mount(container: JsonObject, mount: JsonObject) -> JsonObject:
    mounts = as_list(container.get("volumeMounts"))
    if any(dig(each, "mountPath") == _MOUNT_PATH for each in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, mount]}


def reject_secrets(pod: JsonObject, account: JsonObject) -> None:
    """Raise PluginRefusal for the first secret that the account does not have, if the account is limited to its own."""
    if as_text(dig(account, "metadata", "annotations", ENFORCES)) not in _TRUE:
        return
    spec, name = as_object(pod.get("spec")), as_text(dig(account, "metadata", "name"))
    own = {as_text(dig(each, "name")) for each in as_list(account.get("secrets"))}
    for use, secret, field in _list_secrets(spec):
        if secret not in own:
            why = f"is not allowed because service account {name} does not reference that secret"
            raise PluginRefusal(f"{use} {why}", field)
    pulled = {as_text(dig(each, "name")) for each in as_list(account.get("imagePullSecrets"))}
    for index, each in enumerate(as_list(spec.get("imagePullSecrets"))):
        secret = as_text(dig(each, "name"))
        if secret not in pulled:
            why = f"is not allowed because service account {name} does not reference that imagePullSecret"
            raise PluginRefusal(f'imagePullSecrets[{index}].name="{secret}" {why}', f"spec.imagePullSecrets[{index}]")


def _list_secrets(spec: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Each use of a secret in the words of the API server, the name of the secret, and the path of the field."""
    for index, volume in enumerate(as_list(spec.get("volumes"))):
        if as_object(volume).get("secret") is not None:
            secret = as_text(dig(volume, "secret", "secretName"))
            yield f'volume with secret.secretName="{secret}"', secret, f"spec.volumes[{index}].secret"
    for field, noun in _CONTAINERS:
        for index, container in enumerate(as_list(spec.get(field))):
            whose, path = f"{noun} {as_text(dig(container, 'name'))}", f"spec.{field}[{index}]"
            for variable in as_list(dig(container, "env")):
                if dig(variable, "valueFrom", "secretKeyRef") is not None:
                    secret = as_text(dig(variable, "valueFrom", "secretKeyRef", "name"))
                    use = (
                        f'{whose} with envVar {as_text(dig(variable, "name"))} referencing secret.secretName="{secret}"'
                    )
                    yield use, secret, f"{path}.env"
            for source in as_list(dig(container, "envFrom")):
                if dig(source, "secretRef") is not None:
                    secret = as_text(dig(source, "secretRef", "name"))
                    yield f'{whose} with envFrom referencing secret.secretName="{secret}"', secret, f"{path}.envFrom"
