"""The volumes of a pod as folders, filled when the pod starts; a claim keeps its folder from pod to pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.integration.apiserver import ApiServer
from tests.integration.controllers.container_process import Mount
from tests.integration.controllers.pod_fields import ConfigObjects, MissingError, expanded, field_of

FIXED = {"configMap", "secret", "projected", "downwardAPI"}
"""The volumes that a container cannot write."""


def claim_folder(kubelet: Path, namespace: str, name: str) -> Path:
    """The folder of a claim."""
    return kubelet / "claims" / namespace / name


class Volumes:
    """The volumes of one pod: claims below `kubelet/claims`, by namespace and name, all others below `kubelet/pods`, by UID."""

    def __init__(self, server: ApiServer, pod: JsonObject, kubelet: Path) -> None:
        self._server, self._pod, self._kubelet = server, pod, kubelet
        self._namespace = as_text(dig(pod, "metadata", "namespace"))
        self._objects = ConfigObjects(server, self._namespace)
        self._volumes = {
            as_text(dig(volume, "name")): as_object(volume) for volume in as_list(dig(pod, "spec", "volumes"))
        }

    def fill(self) -> None:
        """Make all folders with their content. Raises MissingError if an object does not exist yet."""
        for name, volume in self._volumes.items():
            folder = self._folder(name)
            folder.mkdir(parents=True, exist_ok=True)
            for path, content in self._files(volume):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)

    def mounts(self, container: JsonObject, variables: Mapping[str, str]) -> list[Mount]:
        """The mounts of a container with its variables, with sources relative to the kubelet's folder."""
        return [self._mount(as_object(item), variables) for item in as_list(container.get("volumeMounts"))]

    def _mount(self, item: JsonObject, variables: Mapping[str, str]) -> Mount:
        name = as_text(item["name"])
        [path] = expanded([as_text(item.get("subPathExpr"))], variables)
        source = self._folder(name) / (path or as_text(item.get("subPath")))
        if not source.exists():
            source.mkdir(parents=True)
        fixed = item.get("readOnly") is True or bool(FIXED & self._volumes[name].keys())
        relative = str(source.relative_to(self._kubelet))
        return Mount(relative, as_text(item["mountPath"]), is_file=source.is_file(), read_only=fixed)

    def _folder(self, name: str) -> Path:
        claim = as_text(dig(self._volumes[name], "persistentVolumeClaim", "claimName"))
        if claim:
            return claim_folder(self._kubelet, self._namespace, claim)
        return self._kubelet / "pods" / as_text(dig(self._pod, "metadata", "uid")) / "volumes" / name

    def _files(self, volume: JsonObject) -> Iterator[tuple[str, bytes]]:
        if "projected" in volume:
            for source in as_list(dig(volume, "projected", "sources")):
                yield from self._files(as_object(source))
        elif "configMap" in volume:
            yield from self._items(volume["configMap"], "configmaps")
        elif "secret" in volume:
            yield from self._items(volume["secret"], "secrets")
        elif "downwardAPI" in volume:
            for item in as_list(dig(volume, "downwardAPI", "items")):
                yield (
                    as_text(dig(item, "path")),
                    field_of(self._pod, as_text(dig(item, "fieldRef", "fieldPath"))).encode(),
                )
        elif "serviceAccountToken" in volume:
            yield (
                as_text(dig(volume, "serviceAccountToken", "path")),
                self._token(as_object(volume["serviceAccountToken"])),
            )
        elif "persistentVolumeClaim" in volume:
            self._reject_missing_claim(as_text(dig(volume, "persistentVolumeClaim", "claimName")))
        elif "emptyDir" not in volume:
            raise NotImplementedError(f"the test kubelet does not know the volume {volume}")

    def _reject_missing_claim(self, name: str) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims/{name}"
        if self._server.request("GET", path).status != 200:
            raise MissingError(f"there is no {path}")

    def _items(self, source: Json, plural: str) -> Iterator[tuple[str, bytes]]:
        name = as_text(dig(source, "name")) or as_text(dig(source, "secretName"))
        content = self._objects.content(plural, name, optional=dig(source, "optional") is True)
        items = as_list(dig(source, "items"))
        paths = {as_text(dig(item, "key")): as_text(dig(item, "path")) for item in items} or {
            key: key for key in content
        }
        for key, path in paths.items():
            if key in content:
                yield path, content[key]

    def _token(self, source: JsonObject) -> bytes:
        """A token of the pod's service account that is valid while the pod exists."""
        account = as_text(dig(self._pod, "spec", "serviceAccountName"))
        metadata = as_object(self._pod["metadata"])
        bound: JsonObject = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        spec: dict[str, Json] = {"boundObjectRef": bound, "expirationSeconds": source.get("expirationSeconds", 3600)}
        audience = as_text(source.get("audience"))
        if audience:
            spec["audiences"] = [audience]
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token"
        answer = self._server.request("POST", path, {"spec": spec})
        if answer.status != 201:
            raise MissingError(f"{path} answered {answer.status}: {dig(answer.body, 'message')}")
        return as_text(dig(answer.body, "status", "token")).encode()
