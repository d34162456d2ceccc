"""The pod that a template would create: the template with what the API server adds to pods only.

Source of truth: defaults and strategy of pods in Kubernetes 1.30 to 1.37 (`SetDefaults_PodSpec`, `applyAppArmorVersionSkew`).

Rules: `docs/semantics/pod-security.md#pods-of-templates`.
"""

from __future__ import annotations

from typing import Final

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, text_map
from scanner.model.release import Minor
from scanner.policies.pod_security.baseline import APP_ARMOR
from scanner.policies.pod_security.pods import LISTS, Pod

_LOCALHOST: Final = "localhost/"
_WRITES_ANNOTATIONS_UNTIL: Final[Minor] = (1, 33)
_PORT_LISTS: Final = ("containers", "initContainers")


def differs(template: Pod) -> bool:
    """Return whether a pod of a template may differ from the template in a field that Pod Security reads."""
    is_shared = template.spec.get("hostNetwork") is True
    return is_shared or "appArmorProfile" in template.secured or any(map(_is_app_armor, template.annotations))


def _is_app_armor(annotation: str) -> bool:
    return annotation.startswith(APP_ARMOR)


def make_pod(template: JsonObject, release: Minor) -> dict[str, Json]:
    """The metadata and the spec of the pod that a template creates, as far as Pod Security reads them."""
    spec = dict(as_object(template.get("spec")))
    if spec.get("hostNetwork") is True:
        for name in _PORT_LISTS:
            if name in spec:
                spec[name] = [_set_host_ports(as_object(item)) for item in as_list(spec[name])]
    annotations = text_map(dig(template, "metadata", "annotations"))
    if dig(spec, "os", "name") != "windows":
        own = as_object(dig(spec, "securityContext", "appArmorProfile"))
        for name in LISTS:
            if name in spec:
                containers = [as_object(item) for item in as_list(spec[name])]
                spec[name] = [_set_profile(container, annotations, own, release) for container in containers]
    metadata = {**as_object(template.get("metadata")), **({"annotations": annotations} if annotations else {})}
    return {**template, "metadata": metadata, "spec": spec}


def _set_host_ports(container: JsonObject) -> JsonObject:
    ports = as_list(container.get("ports"))
    if not ports:
        return container
    filled = [as_object(port) for port in ports]
    return {
        **container,
        "ports": [port if port.get("hostPort") else {**port, "hostPort": port.get("containerPort")} for port in filled],
    }


def _set_profile(container: JsonObject, annotations: dict[str, str], of_pod: JsonObject, release: Minor) -> JsonObject:
    """Copy the profile of an annotation into the container, or in older releases that of the field into an annotation."""
    key = f"{APP_ARMOR}{as_text(container.get('name'))}"
    own = as_object(dig(container, "securityContext", "appArmorProfile"))
    if key not in annotations:
        if release <= _WRITES_ANNOTATIONS_UNTIL and (value := _write_annotation(own or of_pod)):
            annotations[key] = value
        return container
    profile = _read_annotation(annotations[key])
    if own or profile is None or profile == of_pod:
        return container
    return {
        **container,
        "securityContext": {**as_object(container.get("securityContext")), "appArmorProfile": profile},
    }


def _read_annotation(value: str) -> dict[str, Json] | None:
    if value == "unconfined":
        return {"type": "Unconfined"}
    if value == "runtime/default":
        return {"type": "RuntimeDefault"}
    if value.startswith(_LOCALHOST) and value != _LOCALHOST:
        return {"type": "Localhost", "localhostProfile": value.removeprefix(_LOCALHOST)}
    return None


def _write_annotation(profile: JsonObject) -> str:
    match profile.get("type"):
        case "Unconfined":
            return "unconfined"
        case "RuntimeDefault":
            return "runtime/default"
        case "Localhost":
            return f"{_LOCALHOST}{as_text(profile.get('localhostProfile'))}"
        case _:
            return ""
