"""Reads waivers from files, and from the data of ConfigMaps.

Source of truth: `docs/waiver.schema.json` for the fields, `metav1.LabelSelector` for `spec.selector`. A file with an error is
refused as a whole. Of ConfigMaps, which other people write at any time, a key with an error is left out and named, so that one
mistake neither ends a scan nor waives anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from scanner.documents.composer import compose
from scanner.documents.files import read
from scanner.documents.nodes import BadDocument, Node, shorten_key
from scanner.model.population import KeptKeys
from scanner.model.selector import EVERYTHING, Requirement, Selector
from scanner.model.waiver import LabelledConfigMap, Waiver, WaiverSet

API_VERSION: Final = "assay.dev/v1alpha1"
KIND: Final = "Waiver"
LABEL: Final = "assay.dev/waivers"
"""The label of the ConfigMaps that have waivers, with any value."""

FIELDS: Final = (
    *("cluster", "policy", "check", "checkDigest", "namespace", "workload", "object", "selector", "reason", "requestedBy", "approvedBy"),
    *("ticket", "from", "until", "control"),
)  # fmt: skip
REQUIRED: Final = ("policy", "reason", "requestedBy", "approvedBy", "until")
_ROOT: Final = ("apiVersion", "kind", "metadata", "spec", "$schema")
_METADATA: Final = ("name", "labels", "annotations")
_PLACEHOLDER: Final = re.compile(r"<.*>", re.DOTALL)
_REFERENCE: Final = re.compile(r"([A-Za-z][A-Za-z0-9]*/)?[^/\s]+")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_LONGEST_NAME: Final = 253


class _Operator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(slots=True)
class _WaiverReader:
    """Reads waivers, each of which has a name of its own. `kept` are the labels that selectors may name; None for any."""

    kept_keys: KeptKeys | None
    places: dict[str, str] = field(default_factory=dict)

    def read(self, nodes: Iterable[Node]) -> list[Waiver]:
        """The waivers of some documents. Raises BadDocument."""
        waivers: list[Waiver] = []
        names: dict[str, str] = {}
        for node in nodes:
            waiver = self._read_waiver(node)
            if earlier := (self.places | names).get(waiver.name):
                node.fail(f"there is another waiver of this name in {earlier}: each needs a name of its own")
            names[waiver.name] = str(node.place)
            waivers.append(waiver)
        self.places |= names
        return waivers

    def _read_waiver(self, node: Node) -> Waiver:
        root = node.fields(_ROOT)
        _expect(node, root, "apiVersion", API_VERSION)
        _expect(node, root, "kind", KIND)
        metadata, spec_node = _get_required(node, root, "metadata"), _get_required(node, root, "spec")
        name = _get_required(metadata, metadata.fields(_METADATA), "name")
        spec = spec_node.fields(FIELDS)
        for missing in REQUIRED:
            _get_required(spec_node, spec, missing)
        since = spec["from"].day() if "from" in spec else None
        until = spec["until"].day()
        if since is not None and since > until:
            spec["until"].fail(f"{until} is before from, {since}")
        text = {key: _read_text(value) for key, value in spec.items() if key not in {"selector", "from", "until"}}
        return Waiver(
            name=_read_name(name),
            policy=text["policy"],
            until=until,
            reason=text["reason"],
            requested_by=text["requestedBy"],
            approved_by=text["approvedBy"],
            cluster=text.get("cluster", ""),
            check=text.get("check", ""),
            namespace=text.get("namespace", ""),
            workload=_read_reference(spec, "workload"),
            object=_read_reference(spec, "object"),
            selector=self._read_selector(spec["selector"]) if "selector" in spec else EVERYTHING,
            ticket=text.get("ticket", ""),
            since=since,
            control=text.get("control", ""),
            source=node.place.source,
            check_digest=_read_check_digest(spec),
        )

    def _read_selector(self, node: Node) -> Selector:
        fields = node.fields(("matchLabels", "matchExpressions"))
        requirements: list[Requirement] = []
        if labels := fields.get("matchLabels"):
            values = labels.string_map()
            for key in sorted(values):
                self._reject_unkept(labels.entries()[key], key)
                requirements.append(Requirement(key, _Operator.IN.value, (values[key],)))
        if expressions := fields.get("matchExpressions"):
            requirements += map(self._read_requirement, expressions.items())
        return Selector(tuple(requirements))

    def _read_requirement(self, node: Node) -> Requirement:
        fields = node.fields(("key", "operator", "values"))
        key, operator = _get_required(node, fields, "key"), _get_required(node, fields, "operator")
        self._reject_unkept(key, key.string())
        values = tuple(value.any_string() for value in fields["values"].items()) if "values" in fields else ()
        requirement = Requirement(key.string(), operator.choice(_Operator).value, values)
        if fault := requirement.find_fault():
            node.fail(fault)
        return requirement

    def _reject_unkept(self, node: Node, key: str) -> None:
        """A label that scans do not keep is no label of any stored object: the waiver would be unused, or match everything."""
        kept_keys = self.kept_keys
        if kept_keys is not None and not kept_keys.keeps_label(key):
            node.fail(f"the scan does not keep the label {shorten_key(key)}: scan with --keep-label {shorten_key(key)}")


def read_waivers(path: Path, kept: KeptKeys | None) -> WaiverSet:
    """The waivers in a file or folder. `kept` are the labels that the scan keeps, or None if that is not known.

    Raises UsageError for a path that cannot be read, BadDocument for an error in a file.
    """
    return WaiverSet(tuple(_WaiverReader(kept).read(read(path))))


def read_config_map_waivers(config_maps: Iterable[LabelledConfigMap], namespace: str, kept: KeptKeys) -> WaiverSet:
    """The waivers in the data of the labelled ConfigMaps of a namespace; those of other namespaces waive nothing and are named."""
    reader = _WaiverReader(kept)
    waivers: list[Waiver] = []
    faults: list[str] = []
    notes: list[str] = []
    for config_map in sorted(config_maps):
        place = f"ConfigMap {config_map.namespace}/{config_map.name}"
        if config_map.namespace != namespace:
            notes.append(
                f"{place} has the label {LABEL} and waives nothing: only namespace {namespace} may have waivers"
            )
            continue
        for key, text in sorted(config_map.data.items()):
            try:
                waivers += reader.read(compose(text.encode("utf-8", "replace"), f"{place}, key {shorten_key(key)}"))
            except BadDocument as error:
                faults.append(str(error))
    return WaiverSet(tuple(waivers), tuple(faults), tuple(notes))


def _expect(root: Node, fields: Mapping[str, Node], key: str, value: str) -> None:
    node = _get_required(root, fields, key)
    if node.value != value:
        node.fail(f"must be {value}")


def _get_required(node: Node, fields: Mapping[str, Node], key: str) -> Node:
    if key not in fields:
        path = f"{node.path}.{key}" if node.path else key
        raise BadDocument(node.place, f"{path} is missing")
    return fields[key]


def _read_text(node: Node) -> str:
    text = node.string().strip()
    if _PLACEHOLDER.fullmatch(text):
        node.fail("is a placeholder: write the value")
    return text


def _read_name(node: Node) -> str:
    name = _read_text(node)
    if len(name) > _LONGEST_NAME:
        node.fail(f"must have at most {_LONGEST_NAME} characters")
    return name


def _read_check_digest(fields: Mapping[str, Node]) -> str:
    """The digest of the question of a check; empty if the field is missing."""
    if "checkDigest" not in fields:
        return ""
    node = fields["checkDigest"]
    if "check" not in fields:
        node.fail("there is no check: write its id into check, or delete checkDigest")
    text = _read_text(node)
    if not _DIGEST.fullmatch(text):
        node.fail("must be a digest: write sha256: and 64 hex digits, as `assay waiver propose` does")
    return text


def _read_reference(fields: Mapping[str, Node], key: str) -> str:
    """`Kind/name` or a name; empty if the field is missing."""
    if key not in fields:
        return ""
    text = _read_text(fields[key])
    if not _REFERENCE.fullmatch(text):
        fields[key].fail("must be an object: write Kind/name, such as Deployment/web, or a name")
    return text
