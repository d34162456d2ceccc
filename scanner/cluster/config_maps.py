"""Lists the ConfigMaps with a label, in one namespace and, as far as the server allows, in all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from scanner.errors import ClusterError, ListFailed
from scanner.model.json import as_list, as_object, as_text, dig, text_map
from scanner.model.resource import Kind
from scanner.model.waiver import LabelledConfigMap
from scanner.scan.edges import Cluster

CONFIG_MAPS: Final = Kind("", "v1", "ConfigMap", "configmaps", namespaced=True)


def list_config_maps(cluster: Cluster, namespace: str, label: str) -> tuple[list[LabelledConfigMap], str]:
    """The ConfigMaps with a label, and the reason why those of other namespaces are not known, or an empty string.

    Raises ClusterError if those of the namespace cannot be listed.
    """
    try:
        return list(_list_from_pages(cluster, "", label)), ""
    except ListFailed as error:
        unlisted = error.why
    try:
        return list(_list_from_pages(cluster, namespace, label)), unlisted
    except ListFailed as error:
        raise ClusterError(f"the waivers of namespace {namespace} cannot be read: {error.why}") from error


def _list_from_pages(cluster: Cluster, namespace: str, label: str) -> Iterator[LabelledConfigMap]:
    for page in cluster.pages(CONFIG_MAPS, namespace=namespace, selector=label):
        for item in as_list(as_object(orjson.loads(page.data)).get("items")):
            metadata = as_object(dig(item, "metadata"))
            yield LabelledConfigMap(
                as_text(metadata.get("namespace")), as_text(metadata.get("name")), text_map(dig(item, "data"))
            )
