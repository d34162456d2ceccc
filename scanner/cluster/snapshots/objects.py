"""A snapshot whose objects are read one by one, as the objects that a cluster has now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from scanner.audit.items import decode_items
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.cluster.snapshots.replay import ReplayedCluster
from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_object, as_text, dig
from scanner.model.resource import NAMESPACES, Kind, ObjectKey
from scanner.mutate.schema import Conversion, Schema, Schemas


class SnapshotObjects(ReplayedCluster):
    """The cluster of a snapshot. Satisfies `Cluster` and `StoredObjects`: withheld parts of an object are marked."""

    def __init__(self, path: Path, *, kubernetes_version: str = "") -> None:
        """See ReplayedCluster."""
        super().__init__(path, kubernetes_version=kubernetes_version)
        self._objects: dict[tuple[Kind, str], Mapping[str, JsonObject] | ListFailed] = {}

    def read_objects(self, names: Sequence[ObjectKey]) -> list[JsonObject | ListFailed | None]:
        """See StoredObjects: an object of a kind that the snapshot does not have is the reason why."""
        return [self._find(name) for name in names]

    def _find(self, wanted: ObjectKey) -> JsonObject | ListFailed | None:
        within = wanted.name if wanted.kind == NAMESPACES else wanted.namespace
        if (wanted.kind, within) not in self._objects:
            self._objects[wanted.kind, within] = self._list_by_name(wanted.kind, within)
        objects = self._objects[wanted.kind, within]
        return objects if isinstance(objects, ListFailed) else objects.get(wanted.name)

    def _list_by_name(self, kind: Kind, namespace: str) -> Mapping[str, JsonObject] | ListFailed:
        try:
            items = [
                as_object(item)
                for page in self.pages(kind, namespace=namespace)
                for item in decode_items(page, withheld=True)
            ]
        except ListFailed as error:
            return error
        except ValueError as error:
            return ListFailed("failed", f"cannot read {kind.resource} of the snapshot: {error}")
        return {as_text(dig(item, "metadata", "name")): item for item in items}

    def schemas(self) -> Schemas:
        """See Cluster: those of built-in kinds are known although the scan did not ask for them."""
        return _BuiltInToo(super().schemas())


class _BuiltInToo:
    """Recorded schemas, and those of the built-in kinds."""

    def __init__(self, recorded: Schemas) -> None:
        self._recorded, self._builtin = recorded, KnownSchemas(builtin_schemas())

    def schema(self, kind: Kind) -> Schema | None:
        """See Schemas."""
        return self._recorded.schema(kind) or self._builtin.schema(kind)

    def conversion(self, kind: Kind) -> Conversion:
        """See Schemas."""
        return self._recorded.conversion(kind)
