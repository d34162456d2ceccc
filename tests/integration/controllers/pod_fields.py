"""The environment of a container, from its pod and the objects that it refers to.

Source of truth: kubelet's makeEnvironmentVariables (pkg/kubelet/kubelet_pods.go) and the expansion of `$(NAME)`
(k8s.io/kubernetes/third_party/forked/golang/expansion).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.integration.apiserver import ApiServer

_OF_MAP = re.compile(r"metadata\.(annotations|labels)\['(.+)'\]")
_REFERENCE = re.compile(r"\$(?:\$|\(([^()\s]+)\))")


class MissingError(Exception):
    """An object that a pod needs does not exist yet; the kubelet tries again, as the real one does."""


class ConfigObjects:
    """The contents of ConfigMaps and Secrets in the namespace of a pod."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server, self._namespace = server, namespace

    def content(self, plural: str, name: str, *, optional: bool) -> dict[str, bytes]:
        """The keys of a ConfigMap or Secret with their values. Raises MissingError if there is none and it is not optional."""
        answer = self._server.request("GET", f"/api/v1/namespaces/{self._namespace}/{plural}/{name}")
        if answer.status == 200:
            return _content(answer.body, plural)
        if optional:
            return {}
        raise MissingError(f"{plural} {self._namespace}/{name} answered {answer.status}")


def variables_of(
    container: JsonObject, pod: JsonObject, objects: ConfigObjects, own: Mapping[str, str]
) -> dict[str, str]:
    """The variables of a container: those of its image, of `envFrom`, then of `env` in its order."""
    variables = dict(own)
    for source in as_list(container.get("envFrom")):
        for plural, key in (("configmaps", "configMapRef"), ("secrets", "secretRef")):
            reference = dig(source, key)
            if reference:
                content = objects.content(
                    plural, as_text(dig(reference, "name")), optional=dig(reference, "optional") is True
                )
                variables |= {as_text(dig(source, "prefix")) + name: value.decode() for name, value in content.items()}
    for item in as_list(container.get("env")):
        value = _value(as_object(item), pod, objects, variables)
        if value is not None:
            variables[as_text(dig(item, "name"))] = value
    return variables


def expanded(texts: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """The texts with `$(NAME)` replaced by variables; `$$` is a dollar sign, and an unknown name stays as it is."""
    return [_expanded(text, variables) for text in texts]


def field_of(pod: JsonObject, path: str) -> str:
    """The field of a pod that a `fieldRef` names; a missing label or annotation is an empty text."""
    if match := _OF_MAP.fullmatch(path):
        return as_text(dig(pod, "metadata", match[1], match[2]))
    return as_text(dig(pod, *path.split(".")))


def _value(item: JsonObject, pod: JsonObject, objects: ConfigObjects, variables: Mapping[str, str]) -> str | None:
    source = as_object(item.get("valueFrom"))
    if not source:
        return _expanded(as_text(item.get("value")), variables)
    if "fieldRef" in source:
        return field_of(pod, as_text(dig(source, "fieldRef", "fieldPath")))
    for plural, key in (("configmaps", "configMapKeyRef"), ("secrets", "secretKeyRef")):
        if key in source:
            return _of_key(source[key], plural, objects)
    raise NotImplementedError(f"the test kubelet does not know the source {sorted(source)} of {item['name']}")


def _of_key(reference: Json, plural: str, objects: ConfigObjects) -> str | None:
    name, key = as_text(dig(reference, "name")), as_text(dig(reference, "key"))
    optional = dig(reference, "optional") is True
    content = objects.content(plural, name, optional=optional)
    if key in content:
        return content[key].decode()
    if optional:
        return None
    raise MissingError(f"{plural} {name} has no key {key}")


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda match: variables.get(match[1], match[0]) if match[1] else "$", text)


def _content(body: Json, plural: str) -> dict[str, bytes]:
    data = {name: as_text(value) for name, value in as_object(dig(body, "data")).items()}
    if plural == "secrets":
        return {name: base64.b64decode(value) for name, value in data.items()}
    binary = {name: as_text(value) for name, value in as_object(dig(body, "binaryData")).items()}
    return {name: value.encode() for name, value in data.items()} | {
        name: base64.b64decode(value) for name, value in binary.items()
    }
